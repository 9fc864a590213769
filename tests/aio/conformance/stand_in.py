"""Put the wheel under every selector loop that asyncio makes, by every name it goes by, and count the loops made.

CPython's tests make loops of the public class, of the default policy, and of the abstract bases with a mock for what is
missing. So each of those classes is replaced by one with `WheelTimers` in front of it, before the tests are imported.
"""

from __future__ import annotations

import asyncio
from asyncio import base_events, events, selector_events, unix_events
from collections import defaultdict
from typing import Any

from abeyant.aio.loop import EventLoop, WheelTimers

made: dict[str, dict[str, int]] = defaultdict(lambda: {"stock": 0, "wheel": 0})  # loops, by test module and kind
module = ""  # the test module that runs now


class _AlsoStock(type):
    """Of a stand-in: a loop of the class that it stands for is an instance of it too, as tests ask."""

    def __instancecheck__(cls, loop: object) -> bool:
        return isinstance(loop, cls.__mro__[2])


def count_loops() -> None:
    """Count every asyncio loop that is made from now on."""
    original: Any = base_events.BaseEventLoop.__init__

    def __init__(self: Any) -> None:  # noqa: N807
        made[module]["wheel" if isinstance(self, WheelTimers) else "stock"] += 1
        original(self)

    base_events.BaseEventLoop.__init__ = __init__  # type: ignore[method-assign]


def put_wheel_in_place() -> None:
    """Replace asyncio's selector loops by ours."""
    stock: Any = unix_events._UnixSelectorEventLoop
    stand_ins: dict[Any, Any] = {
        base: _AlsoStock(base.__name__, (WheelTimers, base), {"__module__": base.__module__})
        for base in (base_events.BaseEventLoop, selector_events.BaseSelectorEventLoop)
    }
    stand_ins[stock] = EventLoop
    for namespace in (asyncio, base_events, events, selector_events, unix_events):
        for name, value in list(vars(namespace).items()):
            if isinstance(value, type) and value in stand_ins:
                setattr(namespace, name, stand_ins[value])
    policy: Any = unix_events._UnixDefaultEventLoopPolicy
    policy._loop_factory = EventLoop
