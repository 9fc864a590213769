"""nest_asyncio on our loop: loops within loops, as in notebooks. It swaps asyncio's classes, hence the processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAD = """
import asyncio
from abeyant import aio

ran = []

async def inner(name, delay):
    loop = asyncio.get_running_loop()
    began = loop.time()
    loop.call_later(delay / 2, ran.append, name)
    await asyncio.sleep(delay)
    assert loop.time() >= began + delay
    return name
"""

APPLIED_BEFORE = """
loop = aio.EventLoop()
asyncio.set_event_loop(loop)
nest_asyncio.apply(loop)

async def main():
    loop.call_later(0.01, ran.append, "outer")
    assert loop.run_until_complete(inner("inner", 0.05)) == "inner"
    assert loop.run_until_complete(asyncio.wait_for(inner("second", 0.01), 30)) == "second"
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(30)
    except TimeoutError:
        ran.append("timeout")

loop.run_until_complete(main())
loop.close()
assert ran == ["outer", "inner", "second", "timeout"], ran
"""

APPLIED_WITHIN = """
async def main():
    loop = asyncio.get_running_loop()
    nest_asyncio.apply(loop)
    loop.call_soon(ran.append, "soon")
    loop.call_soon(ran.append, "soon, too")
    loop.call_later(0.01, ran.append, "outer")
    assert loop.run_until_complete(inner("inner", 0.05)) == "inner"
    await inner("after", 0.01)

aio.run(main())
assert ran == ["soon", "soon, too", "outer", "inner", "after"], ran
"""

WAITS = """
waits = []

import selectors

class Counting(selectors.DefaultSelector):
    def select(self, timeout=None):
        waits.append(timeout)
        return super().select(timeout)

loop = aio.EventLoop(Counting())
asyncio.set_event_loop(loop)
nest_asyncio.apply(loop)
cancelled = loop.call_later(0.01, ran.append, "cancelled")
cancelled.cancel()
never = loop.call_later(3600, ran.append, "never")
loop.run_until_complete(inner("inner", 0.2))
assert ran == ["inner"], ran
assert len(waits) < 30, len(waits)  # it sleeps, and for no bucket more than on our own turn
loop.close()
"""


@pytest.mark.parametrize(
    ("package", "debug"), [("nest_asyncio", False), ("nest_asyncio2", False), ("nest_asyncio2", True)]
)
@pytest.mark.parametrize("program", [APPLIED_BEFORE, APPLIED_WITHIN, WAITS], ids=["before", "within", "waits"])
def test_nested_runs_keep_their_timers(package: str, program: str, debug: bool) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    if package == "nest_asyncio" and sys.version_info >= (3, 14):
        pytest.skip("nest_asyncio does not know Python 3.14: a nested wait_for fails on asyncio's own loop, too")
    mode = ["-X", "dev", "-W", "ignore"] if debug else []
    text = f"import {package} as nest_asyncio\n{HEAD}{program}"
    done = subprocess.run([sys.executable, *mode, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
