"""The interface through which a timer is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

from lab.benchmarks.measurement import Steps

T = TypeVar("T")
Handle = Any  # whatever the rival's own start returns


def noop() -> None:
    """Do nothing; the callback of every measured timer."""


class Rival:
    """A timer under measurement, with the loops that are timed and its driver.

    The loops call the timer's own functions directly, as its users do. These defaults fit timers that start with one
    call and whose handles have a `cancel`. Other rivals override the loops with loops of the same shape. Delays are in
    the timer's own unit; `units` converts them before the clock runs.
    """

    largest: ClassVar[int] = 1_000_000  # the most pending timers it is measured with
    holds: ClassVar[bool] = True  # whether due timers can be held back, to run all at once
    stalls: ClassVar[bool] = True  # whether it runs concurrently with its caller and can stall it
    forgets: ClassVar[bool] = True  # whether dropping the handles makes a difference
    real_clock: ClassVar[bool] = True

    call: Callable[..., Handle]  # (delay, callback, *args); bound once, as a careful user would

    @classmethod
    def require(cls) -> None:
        """Raise ImportError unless the measured timer is installed."""

    # -- the loops that are timed

    def pair(self, delays: Sequence[Any]) -> None:
        """Start and stop a timer for each delay."""
        call = self.call
        for delay in delays:
            call(delay, noop).cancel()

    def start_all(self, delays: Sequence[Any]) -> list[Handle]:
        """Start a timer for each delay; return their handles."""
        call = self.call
        return [call(delay, noop) for delay in delays]

    def start_forgotten(self, delays: Sequence[Any]) -> None:
        """Start a timer for each delay; drop their handles."""
        call = self.call
        for delay in delays:
            call(delay, noop)

    def stop_all(self, handles: Sequence[Handle]) -> None:
        """Stop these timers."""
        for handle in handles:
            handle.cancel()

    def refresh_all(self, handles: list[Handle], order: Sequence[int], delay: Any) -> None:
        """Restart the delay of these timers. By default, stop them and start new ones."""
        call = self.call
        for index in order:
            handles[index].cancel()
            handles[index] = call(delay, noop)

    def ask_next(self, times: Sequence[int]) -> None:
        """Ask for the next expiration once per item of `times`. Raise NotImplementedError if the timer cannot tell."""
        raise NotImplementedError

    # -- around them

    def units(self, seconds: list[float]) -> list[Any]:
        """Return the delays in the rival's own unit."""
        return seconds

    def start(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """Start one timer with a callback of its own."""
        self.call(self.units([seconds])[0], callback, *args)

    def hold(self) -> None:
        """Keep due timers from running until `release`. A timer that its caller drives simply gets no turn."""

    def release(self) -> None:
        """Let held timers run."""

    def pass_time(self, seconds: float) -> None:
        """Let `seconds` pass without giving the driver a turn."""
        time.sleep(seconds)

    def close(self) -> None:
        """Close the timer."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the driver

    def turn(self) -> None:
        """Let the driver run due callbacks on this thread. A timer with a thread of its own needs no turn."""

    def wait(self) -> None:
        """Take a turn while the caller has nothing else to do."""
        self.turn()

    def run(self, program: Steps[T]) -> T:
        """Run a row's program with this rival as its timer."""
        while True:
            try:
                finished = next(program)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if finished is None:
                self.turn()
            else:
                while not finished():
                    self.wait()
