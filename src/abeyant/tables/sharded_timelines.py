"""All events of a call as timelines (`kernels.timelines`): built in shards of keys by several threads, then read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from abeyant.kernels.timelines import BEFORE, Combine, Count, Keys, Timelines
from abeyant.tables.keys import Integers, Scratch
from abeyant.tables.shards import rows_by_shard

__all__ = ["EventRows", "Region", "ShardedTimelines", "WatchSpans", "in_one_shard", "shards_of"]

_SHARDS: Final = 1 << 8  # a byte's values, so that NumPy sorts rows by shard as bytes
_FEW: Final = 1 << 16  # maximum rows that are kept in one shard
T = TypeVar("T")
R = TypeVar("R")
Each = Callable[[Callable[[T], R], Iterable[T]], Iterator[R]]


class WatchSpans(NamedTuple):
    """For each watch: the span (begin and end) of its key's events in the timelines, and the required progress."""

    spans: Integers
    required: Integers

    def take(self, rows: Any) -> WatchSpans:
        """Return the selected rows."""
        return WatchSpans(self.spans[rows], self.required[rows])


class EventRows(NamedTuple):
    """Events as rows for `Timelines`, grouped by shard."""

    rows: Integers
    ends: Integers  # of each shard

    @classmethod
    def of(cls, places: Integers, identities: Integers, progress: Integers, at: Integers) -> EventRows:
        """Make rows from columns, grouped by shard. O(rows)."""
        return cls(*rows_by_shard(_SHARDS, places, identities, ~at, ~progress))


class Region(NamedTuple):
    """The events of a range of shards, key by key."""

    begin: int
    at: Integers
    values: Integers
    begins: Integers  # of each key, among all events
    places: Integers
    identities: Integers


def shards_of(places: Integers) -> npt.NDArray[np.uint8]:
    """Return the shard of each place: its uppermost 8 bits."""
    return (places.view(np.uint64) >> np.uint64(56)).astype(np.uint8)


def in_one_shard(events: Sequence[EventRows]) -> bool:
    """Return whether there are too few events to be worth sharding."""
    return sum(len(part.rows) for part in events) <= _FEW


class ShardedTimelines:
    """The timelines of all keys. Reading is thread-safe."""

    def __init__(
        self, events: Sequence[EventRows], combine: Combine, each: Each[Any, Any], *, counting: bool = False
    ) -> None:
        """Build the timelines of all events. `each(function, values)` maps like `map`, in several threads or not.

        Pass `counting` to call `counted` later.
        """
        if in_one_shard(events):
            shards = [[part.rows for part in events]]
        else:
            cuts = [np.split(part.rows, part.ends[:-1]) for part in events]
            shards = [[cut[number] for cut in cuts] for number in range(_SHARDS)]
        self._begins = np.cumsum([0, *(sum(map(len, parts)) for parts in shards)]).tolist()
        event_count = self._begins[-1]
        self.at, self._values = np.empty(event_count, np.int64), np.empty(event_count, np.int64)
        rows_before = np.empty(event_count + 1, np.int64).data if counting else None
        self._timelines = Timelines(self.at.data, self._values.data, rows_before, combine=combine)
        scratch = Scratch()

        def build(number: int) -> Keys:
            parts, begin, end = shards[number], self._begins[number], self._begins[number + 1]
            rows, room = (scratch(name, 4 * (end - begin)) for name in ("rows", "room"))
            if parts:
                np.concatenate(parts, out=rows.reshape(-1, 4))
            return self._timelines.add(begin, rows.data, room.data)

        self._keys: list[Keys] = list(each(build, range(len(shards))))
        if combine != "each":  # else only `region` reads them
            self._timelines.finish()

    def find(self, places: Integers, identities: Integers, numbers: Integers) -> Integers:
        """Return the begin and end of each key's events, 0 and 0 if it has none. O(1) per key.

        The result for key n is in row `numbers[n]`; `numbers` is a permutation of 0, 1, ...
        """
        rows, ends = rows_by_shard(_SHARDS, places, identities, numbers, numbers)
        if len(self._keys) == 1:
            ends = np.array([len(rows)])
        spans = np.empty((len(places), 2), np.int64)
        begin = 0
        for keys, end in zip(self._keys, ends.tolist(), strict=True):
            if end > begin:
                keys.find(rows[begin:end].ravel().data, spans.ravel().data)
            begin = end
        return spans

    def first_met(
        self, watches: WatchSpans, starts: Integers, froms: Integers, lasts: Integers, count: Count
    ) -> Integers:
        """Return the first instant from `froms` to `lasts` at which each watch is met, or `NEVER`."""
        return _filled(self._timelines.first_met, (*watches, starts, froms, lasts), len(starts), count)

    def held_at(self, watches: WatchSpans, starts: Integers, lasts: Integers, count: Count) -> Integers:
        """Return 1 for each watch whose condition holds at its time in `lasts`, else 0.

        `count` and `starts` tell which events count: see `Count`.
        """
        return _filled(self._timelines.held_at, (*watches, starts, lasts), len(starts), count)

    def since(self, watches: WatchSpans, starts: Integers, times: Integers, count: Count) -> Integers:
        """Return, for watches that are met at `times`, the time since which each has been met."""
        return _filled(self._timelines.since, (*watches, starts), times, count)

    def last_up_to(self, watches: WatchSpans, times: Integers) -> Integers:
        """Return the time of each key's last event up to `times`, or `BEFORE`."""
        return _filled(self._timelines.last_up_to, (watches.spans, times), np.full(len(times), BEFORE))

    def counted(self, watches: WatchSpans, starts: Integers, lasts: Integers, count: Count) -> Integers:
        """Return the number of events of each key that count up to `lasts`."""
        return _filled(self._timelines.counted, (watches.spans, starts, lasts), len(starts), count)

    def run(
        self, watches: WatchSpans, times: Integers, readings: Integers, amounts: Integers, clock: Integers
    ) -> Integers:
        """Return what the clock reads when `amounts` have passed since `times`, not counting time while a watch is met.

        `NEVER` if that much time never passes. `readings` is what the clock reads at `times`, and `clock` what it reads
        at each event, all in microseconds.
        """
        return _filled(self._timelines.run, (clock, *watches, times, amounts), readings)

    def region(self, shards: slice) -> Region:
        """Return the events of a range of shards. Needs `combine="each"`, which keeps events of one instant apart."""
        keys = self._keys[shards]
        begin, end = self._begins[shards.start], self._begins[shards.start + len(keys)]
        begins, places, identities = (
            np.concatenate([np.empty(0, np.int64), *(np.frombuffer(column, np.int64) for column in columns)])
            for columns in (
                [shard.begins[:-1] for shard in keys if len(shard)],
                [shard.places for shard in keys if len(shard)],
                [shard.identities for shard in keys if len(shard)],
            )
        )
        return Region(begin, self.at[begin:end], self._values[begin:end], begins, places, identities)


def _filled(
    method: Callable[..., None], columns: tuple[Integers, ...], out: Integers | int, *counts: Count
) -> Integers:
    """Return what a method of `Timelines` writes for each watch; `out` is the number of watches or initial values."""
    result = np.empty(out, np.int64) if isinstance(out, int) else out.copy()
    method(*(np.ascontiguousarray(column).ravel().data for column in columns), result.data, *counts)
    return result
