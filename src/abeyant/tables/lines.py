"""All events of a call as timelines, in shards of keys, so that several threads build them and look things up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from abeyant.kernels.dealing import deal
from abeyant.kernels.timelines import BEFORE, NEVER, Combine, Count, Timelines
from abeyant.tables.keys import Integers

__all__ = ["EventRows", "Keyed", "Lines"]

_SHARDS: Final = 1 << 6
_FEW: Final = 1 << 16  # so many rows are one shard
T = TypeVar("T")
R = TypeVar("R")
Each = Callable[[Callable[[T], R], Iterable[T]], Iterator[R]]


class Keyed(NamedTuple):
    """Keys by their two hashes, and how much of each is required: a row a watch."""

    places: Integers
    identities: Integers
    required: Integers

    def take(self, rows: Any) -> Keyed:
        """Return some rows."""
        return Keyed(self.places[rows], self.identities[rows], self.required[rows])


class EventRows(NamedTuple):
    """Rows of place, identity, progress, at; by shard."""

    rows: Integers
    ends: Integers  # of each shard

    @classmethod
    def of(cls, places: Integers, identities: Integers, progress: Integers, at: Integers) -> EventRows:
        """Return the columns as rows, shard after shard. O(rows)."""
        rows, ends = np.empty((len(places), 4), np.int64), np.empty(_SHARDS, np.int64)
        deal(places.data, identities.data, progress.data, at.data, ends.data, rows.ravel().data)
        return cls(rows, ends)


Serve = Callable[[Timelines, Integers, Integers], None]


class Lines:
    """The timelines of all keys. `each` applies a function to all of some values, in several threads or not."""

    def __init__(self, events: Sequence[EventRows], combine: Combine, each: Each[Any, Any]) -> None:
        """Build from all events."""
        self._each = each
        self._one = sum(len(some.rows) for some in events) <= _FEW
        if self._one:
            shards = [[some.rows for some in events]]
        else:
            cuts = [np.split(some.rows, some.ends[:-1]) for some in events]
            shards = [[cut[number] for cut in cuts] for number in range(_SHARDS)]

        def build(parts: list[Integers]) -> Timelines:
            rows = parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, 4), np.int64), *parts])
            return Timelines(rows.ravel().data, combine)

        self._timelines: list[Timelines] = list(each(build, shards))

    def first_met(self, watches: Keyed, starts: Integers, froms: Integers, lasts: Integers, count: Count) -> Integers:
        """Return the first instant from `froms` to `lasts` at which each watch is met, or `NEVER`."""
        return self._look(watches, NEVER, (starts, froms, lasts), lambda lines: lines.first_met, count)

    def held_at(self, watches: Keyed, starts: Integers, lasts: Integers, count: Count) -> Integers:
        """Return 1 for each watch that is met by what counts up to `lasts`, else 0."""
        return self._look(watches, 0, (starts, lasts), lambda lines: lines.held_at, count)

    def since(self, watches: Keyed, starts: Integers, times: Integers, count: Count) -> Integers:
        """Return since when each watch has been met that is met at `times`."""
        return self._look(watches, times, (starts,), lambda lines: lines.since, count)

    def last_up_to(self, watches: Keyed, times: Integers) -> Integers:
        """Return when each key's last event up to `times` was, or `BEFORE`."""
        return self._look(watches, BEFORE, (times,), lambda lines: lines.last_up_to, None)

    def counted(self, watches: Keyed, starts: Integers, lasts: Integers, count: Count) -> Integers:
        """Return how many events of each key count up to `lasts`."""
        return self._look(watches, 0, (starts, lasts), lambda lines: lines.counted, count, required=False)

    def run(
        self,
        watches: Keyed,
        times: Integers,
        readings: Integers,
        amounts: Integers,
        clock: Callable[[Integers], Integers],
    ) -> Integers:
        """Return a clock's reading once an amount has passed that stands still while the watch is met; or `NEVER`.

        `readings` are of `times`; `clock` gives the reading at any time, were it never paused.
        """
        ends = np.stack([readings, amounts], axis=1)
        for lines, rows in self._split(watches.places):
            at = np.frombuffer(lines.at, np.int64)
            some, part = watches.take(rows), np.ascontiguousarray(ends[rows]).ravel()
            lines.run(
                some.places.data,
                some.identities.data,
                some.required.data,
                np.ascontiguousarray(times[rows]).data,
                np.ascontiguousarray(clock(at)).data,
                part.data,
            )
            ends[rows] = part.reshape(-1, 2)
        return np.ascontiguousarray(ends[:, 0])

    def by_shard(self, watches: Keyed, serve: Serve) -> None:
        """Call `serve` with each shard's timelines, the rows of its watches, and which key each of those has."""

        def one(found: tuple[Timelines, Any]) -> None:
            lines, rows = found
            rows = np.arange(len(watches.places))[rows]
            some, keys = watches.take(rows), np.empty(len(rows), np.int64)
            lines.key_numbers(some.places.data, some.identities.data, keys.data)
            serve(lines, rows, keys)

        for _ in self._each(one, self._split(watches.places)):
            pass

    def _look(
        self,
        watches: Keyed,
        start: Integers | int,
        columns: tuple[Integers, ...],
        method: Callable[[Timelines], Callable[..., None]],
        count: Count | None,
        *,
        required: bool = True,
    ) -> Integers:
        out = np.array(np.broadcast_to(start, len(watches.places)), np.int64)
        by_key = watches if required and count is not None else watches[:2]
        further = () if count is None else (count,)

        def look(found: tuple[Timelines, Any]) -> None:
            lines, rows = found
            part = np.ascontiguousarray(out[rows])
            given = [np.ascontiguousarray(column[rows]).data for column in (*by_key, *columns)]
            method(lines)(*given, part.data, *further)
            out[rows] = part

        for _ in self._each(look, self._split(watches.places)):
            pass
        return out

    def _split(self, places: Integers) -> Iterator[tuple[Timelines, Any]]:
        yield from (
            (lines, rows)
            for lines, rows in zip(self._timelines, self._by_shard(places), strict=True)
            if isinstance(rows, slice) or len(rows)
        )

    def _by_shard(self, places: Integers) -> list[Any]:
        """Return the rows of each shard."""
        if self._one:
            return [slice(None)]
        dealt = EventRows.of(places, places, places, np.arange(len(places)))
        return np.split(np.ascontiguousarray(dealt.rows[:, 3]), dealt.ends[:-1])
