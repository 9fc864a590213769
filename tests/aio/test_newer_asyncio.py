"""What newer versions of asyncio bring works on our loop: eager tasks, the call graph, `python -m asyncio ps`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from abeyant import aio

newer: Any = asyncio  # names that the oldest Python has not


def run(main: Callable[[], Any]) -> Any:
    with asyncio.Runner(loop_factory=aio.EventLoop) as runner:  # and no policy: those go
        return runner.run(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_begin_at_once_and_their_time_outs_ride_the_wheel() -> None:
    async def child(ran: list[int]) -> None:
        ran.append(1)
        await asyncio.sleep(0.001)
        ran.append(2)

    async def main() -> list[int]:
        asyncio.get_running_loop().set_task_factory(newer.eager_task_factory)
        ran: list[int] = []
        task = asyncio.create_task(child(ran))
        assert ran == [1]
        async with asyncio.timeout(30):
            await task
        return ran

    assert run(main) == [1, 2]


@pytest.mark.skipif(sys.version_info < (3, 14), reason="the call graph came with 3.14")
def test_the_call_graph_shows_who_waits_for_whom() -> None:
    async def inner() -> None:
        await asyncio.sleep(30)

    async def outer(task: asyncio.Task[None]) -> None:
        await task

    async def main() -> None:
        task = asyncio.create_task(inner(), name="inner")
        waiting = asyncio.create_task(outer(task), name="outer")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        graph = newer.capture_call_graph(task)
        assert [waiter.future.get_name() for waiter in graph.awaited_by] == ["outer"]
        assert "inner" in newer.format_call_graph(task)
        waiting.cancel()
        task.cancel()

    run(main)


WAITS = """
import asyncio
from abeyant import aio

async def child():
    await asyncio.sleep(3600)

async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(child(), name="the child")
        await asyncio.sleep(0)
        print("ready", flush=True)

with asyncio.Runner(loop_factory=aio.EventLoop) as runner:
    runner.run(main())
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="`python -m asyncio ps` came with 3.14")
@pytest.mark.parametrize("command", ["ps", "pstree"])
def test_the_tasks_of_a_process_are_seen_from_outside(command: str) -> None:
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", WAITS], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        look = [sys.executable, "-m", "asyncio", command, str(process.pid)]
        seen = subprocess.run(look, capture_output=True, text=True, check=False)
        if seen.returncode and os.geteuid() != 0:
            pytest.skip(f"to look into another process is not allowed here: {seen.stderr.strip()}")
        assert seen.returncode == 0, seen.stderr
        assert "the child" in seen.stdout
        assert "Task-1" in seen.stdout
    finally:
        process.kill()
        process.communicate()
