"""Idle connections: each packet pushes its connection's time-out back. Four ways to keep up with that.

The clock is virtual, the work is timed: what a packet costs, and what it costs to find those that have gone silent.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, Protocol

from abeyant.engine import TimingWheel
from lab.experiment import Experiment, Measure, Parameters

_TIMEOUT: Final = 30_000  # ticks of a millisecond
_SECOND: Final = 1_000
_STEP: Final = 10


class Watch(Protocol):
    """A way to notice that a connection has been silent for 30 seconds."""

    def seen(self, connection: int, now: int) -> None:
        """A packet of this connection has come."""

    def turn(self, now: int) -> list[int]:
        """Time has passed: the connections that have gone silent, which are forgotten."""


class ScanAll:
    """Note when each was last seen; once a second, look at all."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._next = _SECOND

    def seen(self, connection: int, now: int) -> None:
        """O(1)."""
        self._last[connection] = now

    def turn(self, now: int) -> list[int]:
        """O(connections), once a second."""
        if now < self._next:
            return []
        self._next += _SECOND
        oldest = now - _TIMEOUT
        silent = [connection for connection, last in self._last.items() if last <= oldest]
        for connection in silent:
            del self._last[connection]
        return silent


class RingOfSets:
    """A set for each second of the time-out, and one more; a connection moves to the present one when seen."""

    def __init__(self) -> None:
        self._sets: list[set[int]] = [set() for _ in range(_TIMEOUT // _SECOND + 1)]
        self._where: dict[int, int] = {}
        self._hand = 0
        self._next = _SECOND

    def seen(self, connection: int, now: int) -> None:
        """O(1): out of one set, into another, unless it is there."""
        was = self._where.get(connection)
        if was != self._hand:
            if was is not None:
                self._sets[was].discard(connection)
            self._sets[self._hand].add(connection)
            self._where[connection] = self._hand

    def turn(self, now: int) -> list[int]:
        """O(those silent), once a second: the set that the hand comes to has not been seen for a round."""
        if now < self._next:
            return []
        self._next += _SECOND
        self._hand = (self._hand + 1) % len(self._sets)
        silent = list(self._sets[self._hand])
        self._sets[self._hand].clear()
        for connection in silent:
            del self._where[connection]
        return silent


class AddAgain:
    """A task on the wheel for each connection, removed and added again when seen."""

    def __init__(self) -> None:
        self._wheel = TimingWheel(1, 64)
        self._tasks: dict[int, int] = {}

    def seen(self, connection: int, now: int) -> None:
        """O(1)."""
        handle = self._tasks.get(connection)
        if handle is not None:
            self._wheel.remove(handle)
        self._tasks[connection] = self._wheel.add(now + _TIMEOUT, connection)

    def turn(self, now: int) -> list[int]:
        """O(those silent)."""
        silent: list[int] = self._wheel.advance(now)  # type: ignore[assignment]
        for connection in silent:
            del self._tasks[connection]
        return silent


class Refresh(AddAgain):
    """The same task, refreshed: one store, and the task is filed anew when its bucket comes up."""

    def seen(self, connection: int, now: int) -> None:
        """O(1)."""
        handle = self._tasks.get(connection)
        if handle is None:
            self._tasks[connection] = self._wheel.add(now + _TIMEOUT, connection)
        else:
            self._wheel.refresh(handle, now + _TIMEOUT)


WAYS: Final[dict[str, Callable[[], Watch]]] = {
    "scan-all": ScanAll,
    "ring-of-sets": RingOfSets,
    "add-again": AddAgain,
    "refresh": Refresh,
}


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """100,000 connections, 30 s; the more packets, the more a packet's cost counts."""
    rates = [20_000] if quick else [2_000, 20_000, 100_000]
    seconds = 40 if quick else 60
    return [(way, {"connections": 100_000, "packets_s": rate, "seconds": seconds}) for rate in rates for way in WAYS]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Packets from connections at random; one in ten connections falls silent in the course of the run."""
    connections, rate = int(parameters["connections"]), int(parameters["packets_s"])
    chance = random.Random(1)
    watch = WAYS[design]()
    last = [0] * connections
    for connection in range(connections):
        watch.seen(connection, 0)
    packets = turns = longest = count = 0
    late: list[int] = []
    talking = connections
    for now in range(_STEP, int(parameters["seconds"]) * _SECOND + 1, _STEP):
        came = [int(chance.random() * talking) for _ in range(rate * _STEP // _SECOND)]
        seen = watch.seen
        began = time.perf_counter_ns()
        for connection in came:
            seen(connection, now)
        between = time.perf_counter_ns()
        silent = watch.turn(now)
        spent = time.perf_counter_ns() - between
        packets += between - began
        turns += spent
        longest = max(longest, spent)
        count += len(came)
        for connection in came:
            last[connection] = now
        late += [now - last[connection] - _TIMEOUT for connection in silent]
        talking = connections - connections // 10 * now // (int(parameters["seconds"]) * _SECOND)
    seconds = int(parameters["seconds"])
    return [
        Measure("a packet", packets / count, "ns"),
        Measure("turns", turns / seconds / 1e6, "ms a second"),
        Measure("longest turn", longest / 1e6, "ms"),
        Measure("CPU", (packets + turns) / seconds / 1e6, "ms a second"),
        Measure("found silent", len(late), "connections"),
        Measure("mean lateness", sum(late) / max(len(late), 1), "ms"),
        Measure("latest", max(late, default=0), "ms"),
        Measure("early", sum(lateness < 0 for lateness in late), "connections"),
    ]


EXPERIMENT = Experiment("idle", "Idle connections", "real", grid, measure)
