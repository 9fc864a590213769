"""All events of a call as timelines: built in shards of keys, by several threads, and then looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from abeyant.kernels.dealing import deal
from abeyant.kernels.timelines import BEFORE, Combine, Count, Keys, Timelines
from abeyant.tables.keys import Integers, Scratch

__all__ = ["EventRows", "Keyed", "Lines", "Region", "in_one_shard", "shards_of"]

_SHARDS: Final = 1 << 8  # as many as a byte has values: they are sorted as such
_FEW: Final = 1 << 16  # so many rows are one shard
T = TypeVar("T")
R = TypeVar("R")
Each = Callable[[Callable[[T], R], Iterable[T]], Iterator[R]]


class Keyed(NamedTuple):
    """Keys by the spans of their events, and how much of each is required: a row a watch."""

    spans: Integers
    required: Integers

    def take(self, rows: Any) -> Keyed:
        """Return some rows."""
        return Keyed(self.spans[rows], self.required[rows])


class EventRows(NamedTuple):
    """Rows as `Timelines` are built from; by shard."""

    rows: Integers
    ends: Integers  # of each shard

    @classmethod
    def of(cls, places: Integers, identities: Integers, progress: Integers, at: Integers) -> EventRows:
        """Return the columns as rows, shard after shard. O(rows)."""
        return cls(*_dealt(places, identities, ~at, ~progress))


class Region(NamedTuple):
    """The events of some shards, key by key."""

    begin: int
    at: Integers
    values: Integers
    begins: Integers  # of each key, among all events
    places: Integers
    identities: Integers


def shards_of(places: Integers) -> npt.NDArray[np.uint8]:
    """Return the shard of each place: its uppermost bits, as rows are dealt."""
    return (places.view(np.uint64) >> np.uint64(56)).astype(np.uint8)


def in_one_shard(events: Sequence[EventRows]) -> bool:
    """Return whether there are so few events that they are not worth being apart."""
    return sum(len(some.rows) for some in events) <= _FEW


class Lines:
    """The timelines of all keys. Any thread may look things up."""

    def __init__(
        self, events: Sequence[EventRows], combine: Combine, each: Each[Any, Any], *, counting: bool = False
    ) -> None:
        """Build from all events. `each` applies a function to all of some values, in several threads or not.

        `counting` is needed for `counted`.
        """
        if in_one_shard(events):
            shards = [[some.rows for some in events]]
        else:
            cuts = [np.split(some.rows, some.ends[:-1]) for some in events]
            shards = [[cut[number] for cut in cuts] for number in range(_SHARDS)]
        self._begins = np.cumsum([0, *(sum(map(len, parts)) for parts in shards)]).tolist()
        events_there = self._begins[-1]
        self.at, self._values = np.empty(events_there, np.int64), np.empty(events_there, np.int64)
        rows_before = np.empty(events_there + 1, np.int64).data if counting else None
        self._timelines = Timelines(self.at.data, self._values.data, rows_before, combine=combine)
        scratch = Scratch()

        def build(number: int) -> Keys:
            parts, begin, end = shards[number], self._begins[number], self._begins[number + 1]
            rows, room = (scratch(name, 4 * (end - begin)) for name in ("rows", "room"))
            if parts:
                np.concatenate(parts, out=rows.reshape(-1, 4))
            return self._timelines.add(begin, rows.data, room.data)

        self._keys: list[Keys] = list(each(build, range(len(shards))))
        self._timelines.finish()

    def find(self, places: Integers, identities: Integers, numbers: Integers) -> Integers:
        """Return where the span of each key's events begins and ends: 0 and 0 without any. O(1) each.

        A row a key, in the order of `numbers`, which are those from 0 on.
        """
        rows, ends = _dealt(places, identities, numbers, numbers)
        if len(self._keys) == 1:
            ends = np.array([len(rows)])
        spans = np.empty((len(places), 2), np.int64)
        begin = 0
        for keys, end in zip(self._keys, ends.tolist(), strict=True):
            if end > begin:
                keys.find(rows[begin:end].ravel().data, spans.ravel().data)
            begin = end
        return spans

    def first_met(self, watches: Keyed, starts: Integers, froms: Integers, lasts: Integers, count: Count) -> Integers:
        """Return the first instant from `froms` to `lasts` at which each watch is met, or `NEVER`."""
        return _filled(self._timelines.first_met, (*watches, starts, froms, lasts), len(starts), count)

    def held_at(self, watches: Keyed, starts: Integers, lasts: Integers, count: Count) -> Integers:
        """Return 1 for each watch that is met by what counts up to `lasts`, else 0."""
        return _filled(self._timelines.held_at, (*watches, starts, lasts), len(starts), count)

    def since(self, watches: Keyed, starts: Integers, times: Integers, count: Count) -> Integers:
        """Return since when each watch has been met that is met at `times`."""
        return _filled(self._timelines.since, (*watches, starts), times, count)

    def last_up_to(self, watches: Keyed, times: Integers) -> Integers:
        """Return when each key's last event up to `times` was, or `BEFORE`."""
        return _filled(self._timelines.last_up_to, (watches.spans, times), np.full(len(times), BEFORE))

    def counted(self, watches: Keyed, starts: Integers, lasts: Integers, count: Count) -> Integers:
        """Return how many events of each key count up to `lasts`."""
        return _filled(self._timelines.counted, (watches.spans, starts, lasts), len(starts), count)

    def run(self, watches: Keyed, times: Integers, readings: Integers, amounts: Integers, clock: Integers) -> Integers:
        """Return a clock's reading once an amount has passed that stands still while the watch is met; or `NEVER`.

        `readings` are of `times`; `clock` is the reading at each of `at`, were it never paused.
        """
        return _filled(self._timelines.run, (clock, *watches, times, amounts), readings)

    def region(self, shards: slice) -> Region:
        """Return the events of some shards, where those of an instant are apart."""
        keys = self._keys[shards]
        begin, end = self._begins[shards.start], self._begins[shards.start + len(keys)]
        begins, places, identities = (
            np.concatenate([np.empty(0, np.int64), *(np.frombuffer(column, np.int64) for column in columns)])
            for columns in (
                [some.begins[:-1] for some in keys if len(some)],
                [some.places for some in keys if len(some)],
                [some.identities for some in keys if len(some)],
            )
        )
        return Region(begin, self.at[begin:end], self._values[begin:end], begins, places, identities)


def _dealt(places: Integers, identities: Integers, thirds: Integers, fourths: Integers) -> tuple[Integers, Integers]:
    """Return rows of these four, shard by shard, and where each shard ends."""
    rows, ends = np.empty((len(places), 4), np.int64), np.empty(_SHARDS, np.int64)
    deal(places.data, identities.data, thirds.data, fourths.data, ends.data, rows.ravel().data)
    return rows, ends


def _filled(
    method: Callable[..., None], columns: tuple[Integers, ...], out: Integers | int, *further: Count
) -> Integers:
    """Return what the method writes, a row a watch; into a copy of `out` where it is more than their number."""
    filled = np.empty(out, np.int64) if isinstance(out, int) else out.copy()
    method(*(np.ascontiguousarray(column).ravel().data for column in columns), filled.data, *further)
    return filled
