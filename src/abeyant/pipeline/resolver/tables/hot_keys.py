"""Cut hot keys along their progress into pieces, so that no task gets more rows of a key than it can hold.

An operation needs only the first time at which its key's progress reached `required` (see kernels.resolve), so a key
may be cut along its progress. A sample, drawn while rows are packed, holds one in 1,024 rows; a key with more than
128 rows in the sample is cut at every 128th of them, sorted by progress (or `required`). So a *piece*, the rows between
two cuts, has some 131,072 rows: a key with more rows has more pieces. All cuts together are one in 131,072 rows of the
tables.

The cuts are known once all rows are packed and shuffled. So the shards of hot keys are unpacked, cut, and shuffled a
second time. A shard that is already large in one chunk is not sent to one task for that, but spread over all tasks: see
`packing`. For plain files the driver draws a sample beforehand, and most hot keys are cut while they are packed: see
`plain_parquet.looking`. A piece may be cut again, like any other key. If its pieces then get the place of another piece
of the same key, no outcome changes: that place only has more events of the key.

    piece n holds   events with cut n-1 <= progress < cut n;
                    of each packed chunk one row (cut n, the least `at` of its events with progress >= cut n);
                    operations with cut n-1 <= required <= cut n; an operation that fits several pieces is in one

If one progress value fills several pieces, cuts coincide: operations that require exactly that value are spread over
the pieces between the equal cuts, which hold only rows from the pieces above. The events with that value are a few
steps, since chunks are reduced. Cutting changes no outcome, so a sample is good enough; a hot key that the sample
missed would only make one task longer.

A key is identified by two hashes with different seeds: its *place*, of 64 bits, and its *identity*, of which 32 bits
are packed. Two keys of one table with both hashes equal would be mixed up; the chance of that is below 10**-11 for a
billion keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "DEFAULT_SAMPLE",
    "IDENTITY",
    "PLACE",
    "HotKey",
    "HotKeys",
    "Integers",
    "Sample",
    "cuts_of_keys",
    "is_drawn",
]

Integers = npt.NDArray[np.int64]

PLACE: Final = "xxhash64(instance, key)"
IDENTITY: Final = "xxhash64(1, instance, key)"

_GOLDEN: Final = np.int64(-7046029254386353131)  # 2**64 over the golden ratio: multiples of it are spread evenly


@dataclass(frozen=True)
class Sample:
    """How to find and cut hot keys: draw a sample, a `fraction` of all rows, and cut at every `piece`th sampled row."""

    fraction: float
    piece: int

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction must be from 0 to 1, not {self.fraction}")
        if self.piece < 1:
            raise ValueError(f"piece must be at least 1 row, not {self.piece}")

    @property
    def large(self) -> float:
        """The rows that a shard may have in one chunk without being spread over all tasks: an eighth of a piece."""
        return self.piece / max(self.fraction, 1e-9) / 8


DEFAULT_SAMPLE: Final = Sample(1 / 1024, 128)


def is_drawn(fraction: float) -> str:
    """Return the SQL condition that a row is in a sample of this fraction: the rows with the smallest hashes.

    Each run draws the same rows if the partitions are the same. (DataFrame.sample draws a random number for each row,
    which takes several times as long.)
    """
    return f"xxhash64(monotonically_increasing_id()) <= {min(int(fraction * 2**64), 2**64 - 1) - 2**63}L"


# -- in the workers ------------------------------------------------------------------------------------------------


def cuts_of_keys(sampled: Integers, hot: int, piece: int) -> list[int]:
    """Return the cuts of the hot keys in a sample of rows (place, identity, value), in the format of `HotKeys.read`.

    Keys of more than `hot` rows are cut at every `piece`th row; without hot keys the list is empty. O(n log n).
    """
    rows = sampled[np.lexsort((sampled[:, 2], sampled[:, 1], sampled[:, 0]))]
    firsts = np.flatnonzero(np.any(np.diff(rows[:, :2], axis=0, prepend=rows[:1, :2] - 1), axis=1))
    counts = np.diff(firsts, append=len(rows))
    result: list[int] = []
    for first, count in zip(firsts[counts > hot], counts[counts > hot], strict=True):
        place, identity, _ = rows[first].tolist()
        cuts = rows[first + piece : first + count : piece, 2].tolist()
        result += [place, identity, len(cuts), *cuts]
    return result


class HotKey(NamedTuple):
    """A hot key by its two hashes, and its cuts in ascending order."""

    place: int
    identity: int
    cuts: Sequence[int] | Integers


class HotKeys:
    """The hot keys of the tables, each with the values of progress at which its rows are cut into pieces."""

    def __init__(self, keys: Iterable[HotKey]) -> None:
        sorted_keys = sorted(keys, key=lambda key: (key.place, key.identity))
        self._places = np.array([key.place for key in sorted_keys], np.int64)
        self._identities = np.array([key.identity for key in sorted_keys], np.int64)
        self._cuts = [np.array(key.cuts, np.int64) for key in sorted_keys]

    @classmethod
    def read(cls, cuts: Integers) -> HotKeys:
        """Read the hot keys from the profile's `cuts`: place, identity, number of cuts, and the cuts of each."""
        keys = []
        begin = 0
        while begin < len(cuts):
            place, identity, count = cuts[begin : begin + 3].tolist()
            keys.append(HotKey(place, identity, cuts[begin + 3 : begin + 3 + count]))
            begin += 3 + count
        return cls(keys)

    def __bool__(self) -> bool:
        """Return whether any key is hot."""
        return bool(self._cuts)

    @property
    def places(self) -> Integers:
        """The place of each hot key, in ascending order. A key's first piece has the key's place."""
        return self._places

    def cut_events(self, places: Integers, identities: Integers, progress: Integers, at: Integers) -> list[Integers]:
        """Replace the places of hot keys' events by the places of their pieces; return all columns, with added rows.

        If there are events in pieces above a piece, it gets a row that stands for all of them: see the module.
        O(log c) per event of a key with c cuts.
        """
        parts = [(places, identities, progress, at)]
        for key, rows in self.among(places, identities):
            place, cuts = self._places[key], self._cuts[key]
            piece = np.searchsorted(cuts, progress[rows], side="right")
            places[rows] = _place(place, piece)
            first = np.full(len(cuts) + 1, np.iinfo(np.int64).max)
            np.minimum.at(first, piece, at[rows])
            below = np.arange(piece.max())
            above = np.minimum.accumulate(first[::-1])[::-1][1 : len(below) + 1]
            parts.append((_place(place, below), np.full(len(below), self._identities[key]), cuts[below], above))
        return [np.concatenate(column) for column in zip(*parts, strict=True)] if parts[1:] else list(parts[0])

    def cut_operations(self, places: Integers, identities: Integers, required: Integers) -> None:
        """Replace the hot keys of operations in `places` by their pieces. O(log c) per operation, with c cuts."""
        for key, rows in self.among(places, identities):
            lowest = np.searchsorted(self._cuts[key], required[rows], side="left")
            highest = np.searchsorted(self._cuts[key], required[rows], side="right")
            piece = lowest + np.arange(len(rows)) % (highest - lowest + 1)
            places[rows] = _place(self._places[key], piece)

    def among(self, places: Integers, identities: Integers) -> Iterator[tuple[int, Integers]]:
        """Yield each hot key that occurs in these columns: its number, in order of place and identity, and its rows."""
        if not len(self._places):
            return
        nearest = np.searchsorted(self._places, places).clip(max=len(self._places) - 1)
        hot = np.flatnonzero((self._places[nearest] == places) & (self._identities[nearest] == identities))
        if not len(hot):
            return
        keys = nearest[hot]
        if keys.min() == keys.max():
            yield int(keys[0]), hot
            return
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        yield from zip(keys[firsts].tolist(), np.split(hot[order], firsts[1:]), strict=True)


def _place(place: np.int64, piece: npt.NDArray[np.intp]) -> Integers:
    """Return the places of a key's pieces: the first piece has the key's place, the other places are far apart."""
    return place + piece * _GOLDEN
