"""Operations with their watches, sorted by the shards of their keys and cut into parts for the worker threads.

Timelines are sharded by key. Operations sorted by shard touch few timelines at a time, the operations of a shard are
one slice, and the data of a part fits the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import SchemaError
from abeyant.kernels.timelines import NEVER
from abeyant.tables.columns import Mask, flags, integers, missing
from abeyant.tables.contradictions import contradictions
from abeyant.tables.keys import Integers, PairHash
from abeyant.tables.roles import RoleWatches, spans, watches_by_role
from abeyant.tables.rules import FIXED_INSTANT, ROLES, Role, Rules
from abeyant.tables.sharded_timelines import Each, EventRows, ShardedTimelines, WatchSpans, in_one_shard, shards_of
from abeyant.tables.validity import Operations

__all__ = ["Part", "PartWatches", "WatchedOperations"]

_ROWS: Final = 1 << 16  # minimum operations of a part
_HASHED: Final = 1 << 18  # keys hashed at once


class PartWatches(NamedTuple):
    """The watches of one role of a part's operations."""

    operation: Integers  # each watch's operation, as its number within the part
    keyed: WatchSpans
    first: int  # number of the first watch among all of the role
    one_each: bool  # whether each operation has exactly one watch of the role


class Part(NamedTuple):
    """Consecutive operations for a worker thread. Unless `serves` is 'every', a part has all operations of its keys."""

    whole: WatchedOperations
    rows: Any  # slice or array: their rows in the table
    shards: slice
    start: Integers
    deadline: Integers
    extension: Integers | None  # None: the time-out
    any_of: Mask
    then: Mask
    watches: dict[Role, PartWatches]

    @property
    def ids(self) -> pa.ChunkedArray:
        """Return the ids of all operations, not only this part's, in table order."""
        return self.whole.table["op_id"]

    def in_table(self, rows: Integers) -> Integers:
        """Return the table's row numbers for row numbers of this part."""
        table_rows: Integers = rows + self.rows.start if isinstance(self.rows, slice) else self.rows[rows]
        return table_rows


class WatchedOperations:
    """Valid operations sorted by shard, their watches by role, and the timelines of all keys."""

    lines: ShardedTimelines
    """Events that complete, cancel and extend; empty if no watch needs them. So are `levels` and `serving`."""
    levels: ShardedTimelines
    """Events that pause."""
    serving: ShardedTimelines
    """Events that serve one operation each."""
    clock: Integers
    """Open time, by the calendar, up to each time in `levels`; without a calendar, these times themselves."""

    def __init__(
        self,
        operations: Operations,
        events: Sequence[EventRows],
        rules: Rules,
        pairs: PairHash,
        each: Each[Any, Any],
        *,
        levels: Sequence[EventRows] | None,
        unserved: Sequence[EventRows] | None,
    ) -> None:
        """Hash keys, build timelines. `levels` are the events that may pause, `unserved` those that may serve."""
        self.table, self.rules, self._each = operations.table, rules, each
        self._rows = len(operations.start)
        self.watches = watches_by_role(operations)
        condition = operations.table["condition"].cast(pa.string())
        any_of, then = (flags(pc.equal(condition, value)) for value in ("any", "then"))
        self._check(then)
        hashed = {role: self._hash(watches, pairs) for role, watches in self.watches.items()}
        self._shards: Any = None
        self._order: Any = slice(0, self._rows)
        if not in_one_shard(events if unserved is None else unserved):
            homes = self._homes(hashed)
            self._order = np.argsort(homes, kind="stable")
            self._shards = np.cumsum(np.bincount(homes, minlength=256))
        self._start, self._deadline = operations.start[self._order], operations.deadline[self._order]
        self._any, self._then = any_of[self._order], then[self._order]
        self._extension = self._extensions()
        self.watch_rows: dict[Role, Any] = {}
        """By role, the numbers in table order of the watches, sorted as the operations are."""
        self._build(events, levels, events if unserved is None else unserved)
        self._sorted = {role: self._in_order(role, *hashed[role]) for role in ROLES}

    def _build(
        self, events: Sequence[EventRows], levels: Sequence[EventRows] | None, serving: Sequence[EventRows]
    ) -> None:
        combine = self.rules.combine
        pauses = len(self.watches["pause"].operation) > 0
        self.lines = self.levels = self.serving = ShardedTimelines([], combine, map)
        if self.rules.serves != "every":
            self.serving = ShardedTimelines(serving, "each", self._each)
        # A pause depends on the last value, which timelines of the maximum have as well.
        shared = pauses and levels is None and combine != "sum"
        other_roles = any(len(self.watches[role].operation) for role in ("cancel", "extend"))
        if self.rules.serves == "every" or other_roles or shared:
            self.lines = ShardedTimelines(events, combine, self._each, counting=self.rules.details)
        if shared:
            self.levels = self.lines
        elif pauses:
            self.levels = ShardedTimelines(events if levels is None else levels, "last", self._each)
        at, calendar = self.levels.at, self.rules.calendar
        self.clock = at if calendar is None else np.ascontiguousarray(calendar.elapsed(at))

    def _hash(self, watches: RoleWatches, pairs: PairHash) -> tuple[Integers, Integers]:
        """Return both hashes of each watch's key, computed in chunks that stay in the cache."""
        count = len(watches.operation)
        instance = self.table["instance"]
        places, identities = np.empty(count, np.int64), np.empty(count, np.int64)

        def hash_some(begin: int) -> None:
            chunk = slice(begin, begin + _HASHED)
            instances = instance[chunk] if watches.one_each else instance.take(pa.array(watches.operation[chunk]))
            places[chunk], identities[chunk] = pairs(instances, watches.key[chunk])

        for _ in self._each(hash_some, range(0, count, _HASHED)):
            pass
        return places, identities

    def _homes(self, hashed: dict[Role, tuple[Integers, Integers]]) -> Any:
        """Return the shard of each operation: the shard of its first `complete` watch, else of another watch."""
        homes = np.zeros(self._rows, np.uint8)
        for role in reversed(ROLES):
            watches, shards = self.watches[role], shards_of(hashed[role][0])
            if watches.one_each:
                homes = shards
            else:
                rows, first = spans(watches.operation)
                homes[rows] = shards[first]
        return homes

    def _in_order(self, role: Role, places: Integers, identities: Integers) -> tuple[Integers, WatchSpans]:
        """Return the watches of a role, sorted as the operations are: their operations' numbers, and their spans."""
        operation, required = self.watches[role].operation, self.watches[role].required
        lines = self.levels if role == "pause" else self.lines
        if role == "complete" and self.rules.serves != "every":
            lines = self.serving
        numbers = np.arange(len(operation))
        if isinstance(self._order, slice):
            self.watch_rows[role] = slice(None)
            return operation, WatchSpans(lines.find(places, identities, numbers), required)
        if self.watches[role].one_each:
            rows = self._order
        else:
            rank = np.empty(self._rows, np.int64)
            rank[self._order] = np.arange(self._rows)
            rows = np.argsort(rank[operation], kind="stable")
            operation = rank[operation[rows]]
        self.watch_rows[role] = rows
        rank = np.empty(len(operation), np.int64)
        rank[rows] = numbers
        return operation, WatchSpans(lines.find(places, identities, rank), required[rows])

    def _check(self, then: Mask) -> None:
        """Raise `SchemaError` if the options and the watches contradict each other."""
        for mask, reason in contradictions(self.watches, then, self.rules):
            if mask.any():
                op_id = self.table["op_id"][int(np.flatnonzero(mask)[0])].as_py()
                raise SchemaError(f"operations: {op_id!r} {reason}")
        if "deadline" in self.table.column_names and (
            self.rules.calendar is not None or len(self.watches["pause"].operation)
        ):
            raise SchemaError(f"operations: {FIXED_INSTANT}")

    def _extensions(self) -> Integers | None:
        for name, unit in (("extend_ms", 1000), ("extend", 1)):
            if name in self.table.column_names:
                values = np.minimum(integers(self.table[name], f"operations: {name}"), (NEVER - 1) // unit) * unit
                timeout = self._deadline - self._start
                extension: Integers = np.where(missing(self.table[name])[self._order], timeout, values[self._order])
                return extension
        return None

    def parts(self) -> Iterator[Part]:
        """Yield all operations, part by part."""
        begin = 0
        shard = 0
        for end, shards in self._ends():
            watches = {}
            for role, (operation, keyed) in self._sorted.items():
                first, last = (int(place) for place in np.searchsorted(operation, (begin, end)))
                watch_slice = slice(first, last)
                watches[role] = PartWatches(
                    operation[watch_slice] - begin if begin else operation[watch_slice],
                    keyed.take(watch_slice),
                    first,
                    self.watches[role].one_each,
                )
            rows = slice(begin, end)
            yield Part(
                self,
                rows if isinstance(self._order, slice) else self._order[rows],
                slice(shard, shards),
                self._start[rows],
                self._deadline[rows],
                None if self._extension is None else self._extension[rows],
                self._any[rows],
                self._then[rows],
                watches,
            )
            begin, shard = end, shards

    def _ends(self) -> Iterator[tuple[int, int]]:
        """Yield where each part ends, counted in operations and in shards. If there are several shards, none is cut."""
        if self._shards is None:
            if self.rules.serves == "every":  # else all operations of a key must be in one part
                yield from ((end, 1) for end in range(_ROWS, self._rows, _ROWS))
            yield self._rows, 1
            return
        begin = 0
        for shard, end in enumerate(self._shards.tolist(), 1):
            if end - begin >= _ROWS or shard == len(self._shards):
                yield end, shard
                begin = end
