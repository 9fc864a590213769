"""Resolve operations over tables in this process: `resolve` and `resolve_batches`."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import SchemaError
from abeyant.kernels.resolve import NEVER
from abeyant.kernels.timelines import Count
from abeyant.tables.by_timelines import resolve_by_timelines
from abeyant.tables.calendar import Calendar
from abeyant.tables.columns import Watches, flags, integers, microseconds
from abeyant.tables.contradictions import check_deadline
from abeyant.tables.duplicates import id_hashes, repeated
from abeyant.tables.keys import Integers, PairHash
from abeyant.tables.reading import batches_of, chunks, column_names, open_both
from abeyant.tables.reasons import EVENT_REASONS
from abeyant.tables.rejections import Rejections
from abeyant.tables.roles import ROLE_COLUMNS
from abeyant.tables.rules import ALL_CONDITIONS, Combine, Deadline, Holds, Rules, Serves, Within
from abeyant.tables.schemas import DETAILS, EVENTS, OPERATIONS, OUTCOMES
from abeyant.tables.sharded_timelines import EventRows
from abeyant.tables.shards import Shards, WatchRows
from abeyant.tables.unmatched import KeySample, key_column, unmatched, watched_keys
from abeyant.tables.validity import VALID, Operations, event_reasons, read_operations

__all__ = ["resolve", "resolve_batches"]

T = TypeVar("T")
R = TypeVar("R")

_ENDS: Final = pa.array(["completed", "expired"])


def resolve(
    operations: Any,
    events: Any,
    *,
    deadline: Deadline = "inclusive",
    count: Count = "always",
    combine: Combine = "max",
    holds: Holds = "ever",
    serves: Serves = "every",
    within: Within = "whole",
    calendar: Calendar | None = None,
    details: bool = False,
    unique_ids: bool = False,
    threads: int | None = None,
) -> pa.Table:
    """Return the outcome of every operation (completed or expired, when, after how long a wait), in their order.

    An operation completes at the first instant from `start` to `start + timeout_ms`, both included, at which `all` or
    `any` of its watches are met: the greatest progress of the key up to then is at least `required`. Otherwise it
    expires at the end of that time (laws O1-O4). With `deadline="exclusive"`, progress at the very end is too late
    (unless the condition holds at the start); a column `deadline` gives this end directly. Keys of different instances
    are different. Events may be in any order, repeated, and long before or after the operation; progress may decrease.

    `count`, `combine`, `holds`, `serves`, `within` and `calendar` change that definition: count only events after the
    start, add them up, require the condition at the deadline, let an event serve one operation, count business hours.
    With `details`, outcomes name the watch that decided and the number of events counted. `docs/design-resolve.md`
    defines them and the further columns: watches with a `role`, `cancel_key`, `extend_key`, `pause_key`, `timeout`,
    `deadline`, `extend`.

    `operations` has the columns `op_id`, `start`, `timeout_ms`, and either `key` and `required` or `watches` (a list of
    structs of `key` and `required`); optionally `instance`, `kind` and `condition`. `events` has `key`, `at`, and
    optionally `instance` and `progress`. Defaults: `instance` '', `kind` null, `condition` 'all', `required` and
    `progress` 1. Numbers may be decimals or floats if they are whole. A table has an Arrow interface, or is the path of
    a Parquet file or folder, or a glob. A stream is read once; a stream without rows is refused, because a stream that
    was read already looks the same. Times without a zone are UTC; nanoseconds are floored to microseconds. Rejected
    rows have no outcome: see `rejected_operations` and `rejected_events`. If all rows of a table are rejected, or at
    least 95 % of 20 or more rows that have all values, `RejectedRowsWarning` names the reason. If ten operations or
    more have no key in common with the events, a warning names a key of each table. `unique_ids` promises that no
    (instance, op_id) occurs twice, and skips that check. `threads` is the number of worker threads (default: one per
    core).

    O(n) for n rows of many keys; O(k log k) for the k events of one key. Memory: the operations, 40 bytes per watch,
    and 32 to 160 bytes per event that raised its key's greatest progress; for operations larger than memory see
    `resolve_batches`.

    Raises `SchemaError` for missing columns or wrong types, and for a `timeout` or `extend` that is the same unreadable
    text in every row, TypeError for an object that is not a table, ValueError for an option with a wrong value or
    options that exclude each other, `AbeyantError` for a path that cannot be read.

    Examples:
        >>> import pandas as pd
        >>> start = pd.Timestamp("2026-11-26 09:00")
        >>> operations = pd.DataFrame({"op_id": ["order-1", "order-2"], "key": ["paid/1", "paid/2"]})
        >>> operations = operations.assign(start=start, timeout_ms=900_000)
        >>> events = pd.DataFrame({"key": ["paid/1"], "at": [start + pd.Timedelta("10 min")]})
        >>> resolve(operations, events).select(["op_id", "outcome"]).to_pylist()
        [{'op_id': 'order-1', 'outcome': 'completed'}, {'op_id': 'order-2', 'outcome': 'expired'}]
    """
    rules = Rules(deadline, count, combine, holds, serves, within, calendar, details)
    operations, events = open_both(operations, events)
    names = column_names(operations) or ()
    check_deadline(names, rules)
    with _Work(deadline, threads) as work:
        operation_batches = batches_of(operations, OPERATIONS, "operations")
        event_batches = batches_of(events, EVENTS, "events")
        if unique_ids:
            parts = list(work.each(work.valid, chunks(operation_batches)))
        else:
            parts = work.without_duplicates(list(work.each(work.read_with_ids, chunks(operation_batches))))
        work.operations.warn(stacklevel=2)
        if not rules.plain or any(map(_timeline_feature, parts)):
            rows = work.rows_of(event_batches)
            work.events.warn(stacklevel=2)
            if not parts:
                return (DETAILS if details else OUTCOMES).empty_table()
            outcomes = resolve_by_timelines(_concat_operations(parts), rows, rules, work.pairs, work.each)
            work.warn_of_unmatched(parts, [chunk.rows[:, 0] for chunk in rows], outcomes, names, stacklevel=2)
            return outcomes
        work.learn(event_batches)
        work.events.warn(stacklevel=2)
        outcomes = pa.Table.from_batches(_batches(work.outcomes_of_parts(parts)), OUTCOMES)
        work.warn_of_unmatched(parts, work.event_places(), outcomes, names, stacklevel=2)
        return outcomes


def resolve_batches(
    operations: Any, events: Any, *, deadline: Deadline = "inclusive", threads: int | None = None
) -> pa.RecordBatchReader:
    """Return a stream of outcomes, for operations larger than memory.

    No (instance, op_id) may occur twice: that is not checked. The events are read before this returns, the operations
    while the stream is read. Otherwise it does what `resolve` does with default options. Raises `SchemaError` for a
    watch with a role, the condition 'then' or a column such as `cancel_key`, which need all events, not only each key's
    greatest progress. Anything that reads Arrow can read the stream: `pyarrow.dataset.write_dataset`,
    `duckdb.sql("... FROM outcomes")`.
    """
    operations, events = open_both(operations, events)
    operation_batches = batches_of(operations, OPERATIONS, "operations")
    work = _Work(deadline, threads)
    try:
        work.learn(batches_of(events, EVENTS, "events"))
        work.events.warn(stacklevel=2)
    except BaseException:
        work.__exit__()
        raise

    def found() -> Iterator[pa.RecordBatch]:
        with work:
            yield from _batches(work.outcomes(chunks(operation_batches)))
            work.operations.warn(stacklevel=2)

    return pa.RecordBatchReader.from_batches(OUTCOMES, found())


class _Work:
    """The state of one call of `resolve` or `resolve_batches`: events in shards, and worker threads."""

    def __init__(self, deadline: Deadline, threads: int | None) -> None:
        if deadline not in ("inclusive", "exclusive"):
            raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
        if threads is None:
            threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads must be a positive integer, not {threads!r}")
        self._deadline: Deadline = deadline
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "abeyant-tables")
        self.pairs = PairHash()
        self._shards = Shards()
        self.operations, self.events = Rejections("operations"), Rejections("events")
        self._event_keys = KeySample()

    def __enter__(self) -> _Work:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def each(self, function: Callable[[T], R], values: Iterable[T]) -> Iterator[R]:
        """Map `function` over `values` in the worker threads, in order; read at most one value per thread ahead."""
        waiting: deque[Future[R]] = deque()
        for value in values:
            waiting.append(self._pool.submit(function, value))
            if len(waiting) > self._threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def learn(self, events: Iterable[pa.RecordBatch]) -> None:
        """Read all events into the shards."""
        for _ in self.each(self._learn, chunks(events)):
            pass
        self._shards.finish(lambda function, shards: deque(self.each(function, shards), 0))

    def rows_of(self, events: Iterable[pa.RecordBatch]) -> list[EventRows]:
        """Return all events as rows from which to build timelines."""
        return list(self.each(lambda table: EventRows.of(*self._columns(table)), chunks(events)))

    def event_places(self) -> list[Integers]:
        """Return the first hash of each key that has an event. Call after `learn`."""
        return self._shards.places()

    def warn_of_unmatched(
        self,
        kept: Sequence[Operations],
        event_places: Sequence[Integers],
        outcomes: pa.Table,
        names: Collection[str],
        *,
        stacklevel: int,
    ) -> None:
        """Warn if all operations expired, and none has a key that occurs among the events.

        `names` are the columns of the operations. O(rows) if all expired.
        """
        if pc.any(pc.not_equal(outcomes["outcome"], "expired")).as_py():
            return
        if message := unmatched(kept, key_column(names), event_places, self._event_keys, self.pairs):
            warnings.warn(message, stacklevel=stacklevel + 1)

    def read_with_ids(self, table: pa.Table) -> tuple[Operations, Integers]:
        """Return the operations, and the id hashes of the valid operations."""
        operations = self._read(table)
        return operations, id_hashes(table, operations.valid, self.pairs)

    def valid(self, table: pa.Table) -> Operations:
        """Return the valid operations."""
        return self._read(table).only_valid()

    def without_duplicates(self, checked: list[tuple[Operations, Integers]]) -> list[Operations]:
        """Return the valid operations without duplicates; `checked` has the results of `read_with_ids`."""
        if not checked:
            return []
        parts = [part for part, _ in checked]
        table = pa.concat_tables([part.table for part in parts])
        start, timeout, valid = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "timeout", "valid")
        )
        watches = _concat_watches([part.watches for part in parts])
        is_duplicate = repeated(
            table, start, timeout, watches, valid, np.concatenate([hashes for _, hashes in checked])
        )
        self.operations.add_duplicates(table, is_duplicate)
        is_unique = valid & ~is_duplicate
        ends = np.cumsum([part.table.num_rows for part in parts])[:-1]
        part_masks = zip(parts, np.split(is_unique, ends), strict=True)
        return [part if mask.all() else part.select(mask) for part, mask in part_masks]

    def outcomes(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the outcomes table by table; the tables are not held in memory together."""

        def resolve(table: pa.Table) -> pa.Table:
            operations = self.valid(table)
            if feature := _timeline_feature(operations):
                raise SchemaError(f"operations: resolve_batches does not support {feature}: use resolve")
            watch_rows = self._shard_watches(operations)
            self._shards.reach([watch_rows], lambda function, shards: deque(map(function, shards), 0))
            return self._outcomes_of(operations, watch_rows)

        return self.each(resolve, tables)

    def outcomes_of_parts(self, parts: list[Operations]) -> Iterator[pa.Table]:
        """Yield the outcomes of valid operations, part by part; all watches are looked up together, shard by shard."""
        watch_rows = list(self.each(self._shard_watches, parts))
        self._shards.reach(watch_rows, lambda function, shards: deque(self.each(function, shards), 0))
        return self.each(lambda number: self._outcomes_of(parts[number], watch_rows[number]), range(len(parts)))

    def _outcomes_of(self, operations: Operations, watch_rows: WatchRows) -> pa.Table:
        start, end = operations.start, operations.deadline
        reached = self._reached(operations, watch_rows, start, end)
        expired = reached == NEVER
        at = np.where(expired, end, reached)
        columns = {
            **{name: operations.table[name].cast(pa.string()) for name in ("instance", "op_id", "kind")},
            "outcome": pa.DictionaryArray.from_arrays(pa.array(expired.view(np.int8)), _ENDS).cast(pa.string()),
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "waited_ms": pa.array((at - start) / 1000),
        }
        return pa.table(columns, OUTCOMES)

    def _read(self, table: pa.Table) -> Operations:
        operations = read_operations(table, ALL_CONDITIONS)
        self.operations.add(operations.table, operations.reason, operations.reasons)
        return operations

    def _learn(self, table: pa.Table) -> None:
        self._shards.add(*self._columns(table))

    def _columns(self, table: pa.Table) -> tuple[Integers, Integers, Integers, Integers]:
        reason = event_reasons(table)
        self.events.add(table, reason, EVENT_REASONS)
        if (rejected := reason != VALID).any():
            table = table.filter(pa.array(~rejected))
        self._event_keys.add(table["instance"], table["key"])
        return (
            *self.pairs(table["instance"], table["key"]),
            integers(table["progress"], "events: progress"),
            microseconds(table["at"], "events: at"),
        )

    def _shard_watches(self, operations: Operations) -> WatchRows:
        required = integers(operations.watches.required, "operations: required")
        return self._shards.shard_watches(*self.pairs(*watched_keys(operations)), required)

    def _reached(self, operations: Operations, watch_rows: WatchRows, start: Integers, end: Integers) -> Integers:
        """Return when each operation's condition first held in time, or NEVER."""
        watches = operations.watches
        if watches.single:
            return watch_rows.first_reached(start, end, self._deadline)
        operation = watches.operation()
        reached = watch_rows.first_reached(start[operation], end[operation], self._deadline)
        first = np.cumsum(watches.counts) - watches.counts
        any_of = flags(pc.equal(operations.table["condition"].cast(pa.string()), "any"))
        # NEVER is the greatest number: all are reached with the last, any with the first.
        return np.where(any_of, np.minimum.reduceat(reached, first), np.maximum.reduceat(reached, first))


def _timeline_feature(operations: Operations) -> str | None:
    """Return the feature that requires timelines instead of staircases, as a noun phrase; None if none does."""
    if operations.watches.role is not None:
        return "watches with a role"
    for name in ROLE_COLUMNS.values():
        if name in operations.table.column_names:
            return f"the column {name}"
    if pc.any(pc.equal(operations.table["condition"].cast(pa.string()), "then")).as_py():
        return "the condition 'then'"
    return None


def _concat_watches(parts: Sequence[Watches]) -> Watches:
    def column(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
        return pa.chunked_array([chunk for chunked in columns for chunk in chunked.chunks], columns[0].type)

    roles = [part.role for part in parts]
    if any(role is not None for role in roles):
        roles = [
            pa.chunked_array([pa.nulls(len(part.key), pa.string())]) if part.role is None else part.role
            for part in parts
        ]
    return Watches(
        np.concatenate([part.counts for part in parts]),
        column([part.key for part in parts]),
        column([part.required for part in parts]),
        None if roles[0] is None else column(roles),
    )


def _concat_operations(parts: Sequence[Operations]) -> Operations:
    first = parts[0]
    return Operations(
        pa.concat_tables([part.table for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.timeout for part in parts]),
        np.concatenate([part.deadline for part in parts]),
        _concat_watches([part.watches for part in parts]),
        np.concatenate([part.reason for part in parts]),
        first.reasons,
    )


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches()
