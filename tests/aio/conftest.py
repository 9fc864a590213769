"""Settings that the tests of virtual time share."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

import pytest

from abeyance import aio
from aio.virtual_loops import LOOPS

T = TypeVar("T")
Main = Coroutine[Any, Any, T]


class RunVirtual(Protocol):
    def __call__(self, main: Main[T], clock: aio.VirtualClock | None = None) -> T: ...


@pytest.fixture(params=LOOPS)
def new_loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """Each of the loops in turn."""
    return LOOPS[request.param]


@pytest.fixture
def run_virtual(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> RunVirtual:
    """`aio.run_virtual` on each of the loops in turn."""

    def run(main: Main[T], clock: aio.VirtualClock | None = None) -> T:
        return aio.run_virtual(main, clock=clock, loop_factory=new_loop)

    return run


class RunReal(Protocol):
    def __call__(self, main: Main[T], debug: bool | None = None) -> T: ...


@pytest.fixture
def run(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> RunReal:
    """`asyncio.run` on each of the loops in turn."""

    def run(main: Main[T], debug: bool | None = None) -> T:
        with asyncio.Runner(loop_factory=new_loop, debug=debug) as runner:
            return runner.run(main)

    return run
