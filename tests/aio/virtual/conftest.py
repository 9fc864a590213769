"""Each of the loops in turn."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from abeyant import aio
from aio.virtual.loops import LOOPS, Main, RunReal, RunVirtual, T


@pytest.fixture(autouse=True)
def pythons_own_ctrl_c() -> Iterator[None]:
    """Spark, which may have run before in this process, leaves a handler of its own, and virtual time would name it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=LOOPS)
def loop_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run_virtual(loop_name: str) -> RunVirtual:
    """`aio.run_virtual`."""

    def run(main: Main[T], clock: aio.VirtualClock | None = None) -> T:
        return aio.run_virtual(main, clock=clock, loop_factory=LOOPS[loop_name])

    return run


@pytest.fixture
def run(loop_name: str) -> RunReal:
    """`asyncio.run`."""

    def run(main: Main[T], debug: bool | None = None) -> T:
        with asyncio.Runner(loop_factory=LOOPS[loop_name], debug=debug) as runner:
            return runner.run(main)

    return run


# freezegun reads every attribute of every module, and those of a lazy package import all that it has, over and over.
with suppress(ImportError):
    import freezegun

    freezegun.configure(extend_ignore_list=["abeyant.pipeline", "aiohttp"])
