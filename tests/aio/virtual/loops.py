"""The loops on which virtual time is tested, and how: one that is added here goes through all of the tests."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from abeyant import aio

T = TypeVar("T")
Main = Coroutine[Any, Any, T]

HOUR = 3600.0

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "abeyant": aio.EventLoop,
}


class RunVirtual(Protocol):
    def __call__(self, main: Main[T], clock: aio.VirtualClock | None = None) -> T: ...


class RunReal(Protocol):
    def __call__(self, main: Main[T], debug: bool | None = None) -> T: ...


def now() -> float:
    return asyncio.get_running_loop().time()
