"""Protocols of what the purgatory needs: a timer and a lock.

A purgatory depends on no particular timer. `abeyant.timer.SystemTimer` and `ManualTimer` fit `Timer`; so does
anything else that starts and stops a one-shot timer, as long as it never runs the callback inside `call_later` and
holds no lock of its own while a callback runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVarTuple, Unpack, runtime_checkable

Ts = TypeVarTuple("Ts")


class Stoppable(Protocol):
    """A started timer."""

    def cancel(self) -> bool:
        """Stop the timer; return True exactly if that prevented the run."""


class Timer(Protocol):
    """Starts one-shot timers. One serves any number of purgatories (law P8)."""

    def call_later(self, delay: float, callback: Callable[[Unpack[Ts]], object], /, *args: Unpack[Ts]) -> Stoppable:
        """Run `callback(*args)` once, `delay` seconds from now or later, never sooner, never in this call."""


@runtime_checkable
class ReentrantLock(Protocol):
    """`threading.RLock`, or anything that behaves as it does: its holder may take it again."""

    def acquire(self, blocking: bool = True, /) -> bool:
        """Take the lock; with `blocking` False, return False at once if another thread holds it."""

    def release(self) -> None:
        """Release the lock, once for each time it was taken."""
