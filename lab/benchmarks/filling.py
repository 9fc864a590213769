"""Pending timers that fill a rival before a measurement."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from lab.benchmarks.measurement import Steps
from lab.peers.rival import Handle, Rival

CHUNK = 1_000  # operations between two turns of the driver

# The same range of delays for pending and measured timers, so that a heap pays its average cost, not its worst.
# Nothing expires during a measurement.
SHORTEST, LONGEST = 120.0, 240.0


class Delays:
    """Random delays in a rival's unit, in lists of up to `CHUNK`; the same in every run."""

    def __init__(self, rival: Rival, shortest: float = SHORTEST, longest: float = LONGEST) -> None:
        source = random.Random(1)
        chunks = 100
        self._parts = [rival.units([source.uniform(shortest, longest) for _ in range(CHUNK)]) for _ in range(chunks)]
        self._turn = 0

    def parts(self, count: int) -> Iterator[list[Any]]:
        """Yield `count` delays in lists of up to `CHUNK`. The lists repeat, so that a million need no memory."""
        while count > 0:
            part = self._parts[self._turn]
            self._turn = (self._turn + 1) % len(self._parts)
            yield part[:count]
            count -= CHUNK


def fill(rival: Rival, size: int, delays: Delays) -> Steps[list[Handle]]:
    """Start `size` timers, with turns of the driver in between; return their handles."""
    handles: list[Handle] = [None] * size
    begin = 0
    for part in delays.parts(size):
        handles[begin : begin + len(part)] = rival.start_all(part)
        begin += len(part)
        yield None
    return handles


def fill_forgotten(rival: Rival, size: int, delays: Delays) -> Steps[None]:
    """Start `size` timers, with turns of the driver in between; drop their handles."""
    for part in delays.parts(size):
        rival.start_forgotten(part)
        yield None
