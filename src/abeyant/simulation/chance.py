"""All random numbers of a run, from one seed, in a named stream for each use: no use changes the draws of another.

A stream counts its draws. After a number of draws it may become *quiet*: from then on it returns 0, the mildest choice.
The *tape* of a run maps the streams' names to these numbers; shrinking a failure lowers them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from abeyant.simulation.errors import SimulationError

T = TypeVar("T")

MAX_SEED: Final = 2**63 - 1
_LOUD: Final = 1 << 62
# Bound here: a run has `Random.seed` replaced.
_Random: Final = random.Random
_seed_of = random.Random.seed


def checked_seed(seed: object, said: str = "a seed") -> int:
    """Return the seed if it is an integer from 0 to 2**63 - 1, else raise SimulationError, which calls it `said`."""
    if type(seed) is int and 0 <= seed <= MAX_SEED:
        return seed
    raise SimulationError(f"{said} must be a whole number from 0 to {MAX_SEED}, not {seed!r}")


class Stream:
    """A named stream of random numbers. O(1) per draw."""

    __slots__ = ("_left", "_random", "drawn", "name")

    def __init__(self, name: str, seed: int, loud: int = _LOUD) -> None:
        """Make the first `loud` draws random; later draws return 0."""
        self.name = name
        self.drawn = 0
        self._left = loud
        self._random = _Random(f"{seed}/{name}")

    def draw(self) -> float:
        """Return a number in [0, 1)."""
        self.drawn += 1
        return self._random.random() if self.drawn <= self._left else 0.0

    def below(self, count: int) -> int:
        """Return a whole number from 0 to `count - 1`."""
        return int(self.draw() * count)

    def between(self, least: float, most: float) -> float:
        """Return a number from `least` up to `most`."""
        return least + (most - least) * self.draw()

    def choose(self, among: Sequence[T]) -> T:
        """Return one of `among`."""
        return among[self.below(len(among))]

    def bits(self, count: int) -> int:
        """Return an integer of `count` random bits; 0 if the stream is quiet."""
        self.drawn += 1
        return self._random.getrandbits(count) if self.drawn <= self._left else 0

    def chance(self, probability: float) -> bool:
        """Return True with this probability; False if the stream is quiet."""
        return self.draw() >= 1 - probability


class Chance:
    """The random streams of one run. The same seed and name give the same draws, in any process and on any machine."""

    def __init__(self, seed: int, tape: Mapping[str, int] | None = None) -> None:
        """Begin all streams. `tape` has, by the name of a stream, the number of draws after which that stream is quiet.

        A quiet stream draws the least value. Raises SimulationError for a bad seed.
        """
        self.seed = checked_seed(seed)
        self.tape = dict(tape or {})
        self._streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        """Return the stream of this name; create it at the first call."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(name, self.seed, self._loud(name))
        return stream

    def _loud(self, name: str) -> int:
        """Return after how many draws a stream is quiet: the tape's entry for its name, or the name's first word."""
        return self.tape.get(name, self.tape.get(name.partition(" ")[0], _LOUD))

    def drawn(self) -> dict[str, int]:
        """Return the number of draws of each stream so far."""
        return {name: stream.drawn for name, stream in sorted(self._streams.items())}
