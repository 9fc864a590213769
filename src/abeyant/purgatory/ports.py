"""Protocols of the timer and the lock that a purgatory needs.

A purgatory depends on no particular timer. `abeyant.timer.SystemTimer` and `ManualTimer` fit `Timer`; so does
any object that starts and stops one-shot timers, as long as it never runs the callback inside `call_later` and holds no
lock of its own while a callback runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVarTuple, Unpack, runtime_checkable

Ts = TypeVarTuple("Ts")


class Stoppable(Protocol):
    """A started one-shot timer, which `call_later` returns."""

    def cancel(self) -> bool:
        """Stop the timer; return True exactly if this prevented its run."""


class Timer(Protocol):
    """An object that starts one-shot timers, for any number of purgatories (law P8)."""

    def call_later(self, delay: float, callback: Callable[[Unpack[Ts]], object], /, *args: Unpack[Ts]) -> Stoppable:
        """Run `callback(*args)` once, `delay` seconds from now or later, never sooner, never in this call."""


@runtime_checkable
class ReentrantLock(Protocol):
    """A `threading.RLock`, or a lock that behaves like it: the thread that holds it may acquire it again."""

    def acquire(self, blocking: bool = True, /) -> bool:
        """Acquire the lock; with `blocking` False, return False at once if another thread holds it."""

    def release(self) -> None:
        """Release the lock, once for each time it was acquired."""
