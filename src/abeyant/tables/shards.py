"""Shard the events of all keys by the keys' first hash. A shard is reduced to staircases (see `kernels.resolve`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np

from abeyant.kernels.dealing import deal
from abeyant.kernels.resolve import NEVER, Staircases
from abeyant.tables.keys import Integers, Scratch

__all__ = ["Shards", "WatchRows", "rows_by_shard"]

_SHARDS: Final = 1 << 10  # enough that the steps of one usually fit the second-level cache
_LEAST: Final = 1 << 15  # minimum rows of a shard before it is reduced: 1 MB


def rows_by_shard(
    shards: int, places: Integers, identities: Integers, thirds: Integers, fourths: Integers
) -> tuple[Integers, Integers]:
    """Return rows of four columns, grouped by shard, and the end of each shard. O(rows)."""
    rows, ends = np.empty((len(places), 4), np.int64), np.empty(shards, np.int64)
    deal(places.data, identities.data, thirds.data, fourths.data, ends.data, rows.ravel().data)
    return rows, ends


class _Shard:
    """Rows (place, identity, progress, at) of a shard: steps of its keys' staircases, and events not yet reduced."""

    __slots__ = ("_lock", "_rows", "_scratch", "_since", "_steps", "staircases")

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._lock = threading.Lock()  # guards the rows; held while they are reduced, which never blocks
        self._rows: list[Integers] = []
        self._since = self._steps = 0
        self.staircases: Staircases | None = None

    def add(self, rows: Integers) -> None:
        """Append rows. They are reduced to steps once there are four times as many new rows as steps.

        So each row is looked at O(log n) times.
        """
        with self._lock:
            self._rows.append(rows)
            self._since += len(rows)
            if self._since >= max(4 * self._steps, _LEAST):
                self._reduce()

    @property
    def has_rows(self) -> bool:
        """Return whether any rows were added."""
        return bool(self._rows)

    @property
    def places(self) -> Integers:
        """Return the places of the shard's keys, some more than once."""
        return np.concatenate([rows[:, 0] for rows in self._rows])

    def finish(self) -> None:
        """Reduce the rows added since the last reduction, if any."""
        with self._lock:
            if self._since:
                self._reduce()

    def _reduce(self) -> None:
        rows = self._scratch("shard", 4 * sum(map(len, self._rows))).reshape(-1, 4)
        np.concatenate(self._rows, out=rows)
        self._rows = []
        self.staircases = Staircases(rows.ravel().data)
        self._steps, self._since = len(self.staircases), 0
        self._rows = [np.frombuffer(self.staircases.steps, np.int64).reshape(-1, 4)]


class WatchRows:
    """Watches to look up, sharded like the events, as rows of place, identity, required, number."""

    __slots__ = ("_ends", "rows")

    def __init__(self, rows: Integers, ends: list[int]) -> None:
        self.rows = rows
        self._ends = ends

    def of_shard(self, shard: int) -> Integers:
        """Return the rows of a shard."""
        return self.rows[self._ends[shard - 1] if shard else 0 : self._ends[shard]]

    def first_reached(
        self, starts: Integers, deadlines: Integers, deadline: Literal["inclusive", "exclusive"]
    ) -> Integers:
        """Return when each watch was first met in time, or NEVER. Call after `Shards.reach`."""
        first = np.empty(len(self.rows), np.int64)
        first[self.rows[:, 3]] = self.rows[:, 2]
        met_at_start = first <= starts
        in_time = met_at_start | (first < deadlines if deadline == "exclusive" else first <= deadlines)
        return np.where(in_time, np.where(met_at_start, starts, first), NEVER)


class Shards:
    """All shards. Any thread may `add`; call `finish` after the last `add`, and before `reach`."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._shards = [_Shard(self._scratch) for _ in range(_SHARDS)]

    def add(self, places: Integers, identities: Integers, progress: Integers, at: Integers) -> None:
        """Add events to their shards."""
        rows, ends = rows_by_shard(_SHARDS, places, identities, progress, at)
        begin = 0
        for shard, end in zip(self._shards, ends.tolist(), strict=True):
            if end > begin:
                shard.add(rows[begin:end])
            begin = end

    def finish(self, each: Callable[[Callable[[_Shard], None], Iterable[_Shard]], Any]) -> None:
        """Reduce all shards; `each(function, shards)` maps, in several threads or not."""
        each(_Shard.finish, [shard for shard in self._shards if shard.has_rows])

    def places(self) -> list[Integers]:
        """Return the places of all keys, some more than once."""
        return [shard.places for shard in self._shards if shard.has_rows]

    def shard_watches(self, places: Integers, identities: Integers, required: Integers) -> WatchRows:
        """Return watches as rows, grouped by shard."""
        rows, ends = rows_by_shard(_SHARDS, places, identities, required, np.arange(len(places)))
        return WatchRows(rows, ends.tolist())

    def reach(self, watches: Sequence[WatchRows], each: Callable[[Callable[[int], None], Iterable[int]], Any]) -> None:
        """Replace each watch's `required` by when it is first met. Shard by shard, so a shard's steps stay cached."""

        def reach(number: int) -> None:
            staircases = self._shards[number].staircases
            for watch_rows in watches:
                rows = watch_rows.of_shard(number)
                if staircases:
                    staircases.reach(rows.ravel().data)
                else:
                    rows[:, 2] = NEVER

        each(reach, range(len(self._shards)))
