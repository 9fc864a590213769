"""The interface to a timer under measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

from lab.benchmarks.measurement import Steps

T = TypeVar("T")
Handle = Any  # whatever the rival's own start returns


def noop() -> None:
    """The callback of every timer that is measured."""


class Rival:
    """A timer, its loops and its driver.

    The loops call the rival's own functions, as its users do, with no wrapper in between. Those here fit rivals
    whose start is one call and whose handles have a `cancel`; the others have loops of the same shape. Delays are
    in the rival's own unit, made by `units` before the clock runs.
    """

    largest: ClassVar[int] = 1_000_000  # the most pending timers that it is measured with
    holds: ClassVar[bool] = True  # whether due timers can be kept from running for a while, all to run at once
    stalls: ClassVar[bool] = True  # whether it runs beside its caller, so that it can hold its caller up
    forgets: ClassVar[bool] = True  # whether it makes a difference that its caller drops the handles
    real_clock: ClassVar[bool] = True

    call: Callable[..., Handle]  # (delay, callback, *args); bound once, as a careful user would

    @classmethod
    def require(cls) -> None:
        """Raise ImportError where what it measures is missing."""

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
        """Start these timers' delay again: stop and start anew, where a rival has nothing better."""
        call = self.call
        for index in order:
            handles[index].cancel()
            handles[index] = call(delay, noop)

    def ask_next(self, times: Sequence[int]) -> None:
        """Ask this often when the next timer comes up. NotImplementedError where a rival does not tell."""
        raise NotImplementedError

    # -- around them

    def units(self, seconds: list[float]) -> list[Any]:
        """Delays in the rival's own unit."""
        return seconds

    def start(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """Start one timer with a callback of its own."""
        self.call(self.units([seconds])[0], callback, *args)

    def hold(self) -> None:
        """Keep due timers from running, until `release`. One that is driven by its caller simply gets no turn."""

    def release(self) -> None:
        """Let them run."""

    def pass_time(self, seconds: float) -> None:
        """Let time pass without giving the driver a turn."""
        time.sleep(seconds)

    def close(self) -> None:
        """Let go of everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the driver

    def turn(self) -> None:
        """Let the driver run what is due, on this thread. One with a thread of its own needs no turn."""

    def wait(self) -> None:
        """A turn of one who has nothing else to do."""
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
