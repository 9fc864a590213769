"""Resolve whole tables with options, roles or steps, by the code of `abeyant.tables` in Spark's Python workers.

    operations ── valid, first of each id ──┐
                                            ├── by key ── to where needed ── by home ── outcomes
    events ────── valid ────────────────────┘

An operation is resolved at its *home*, the shard of the first key that completes it. The events of all its keys are
sent there by way of each key's shard, which has the list of homes that need the key. So an event goes to every shard
with operations that watch its key, and nowhere if there are none. If an event serves one operation, it meets all
operations that it may serve, since they have the same home. Where every operation names one key, events are sent home
directly.

A hot key is cut if the options permit it: see `hot_times`. Events in plain Parquet files are read by the workers: see
`plain_parquet`.

Rows are packed on the map side, and shuffled as few binary values; see `packing`.

Memory of a task: a chunk of rows on the map side; three copies of one shard's events and operations on the reduce side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.kernels.dealing import deal
from abeyant.pipeline.resolver.rules import HashedWatches, outcomes_of_rows, read_batch
from abeyant.pipeline.resolver.tables.hot_keys import Sample
from abeyant.pipeline.resolver.tables.hot_times import HotTime, HotTimes, find_hot_times, may_be_cut
from abeyant.pipeline.resolver.tables.packing import binary
from abeyant.pipeline.resolver.tables.plain_parquet import Task, chunks_of, plain_table, read_by_workers, tasks_of
from abeyant.pipeline.resolver.tables.small import SmallTablePlan
from abeyant.pipeline.resolver.tables.validity import distinct_operations, valid_events, valid_operations
from abeyant.pipeline.schemas import DETAILS, EVENTS, OUTCOMES
from abeyant.pipeline.spark.chunks import chunks, freeze_imports
from abeyant.pipeline.spark.columns import columns_of
from abeyant.pipeline.spark.session import shuffle_partitions
from abeyant.pipeline.spark.spreading import spread
from abeyant.tables.columns import integers, microseconds
from abeyant.tables.keys import Integers, PairHash, draw_seed
from abeyant.tables.rules import Rules
from abeyant.tables.validity import valid_events as valid_event_rows

__all__ = ["SEVERAL_KEYS", "Shards", "resolve_by_rules"]

SEVERAL_KEYS: Final = ("watches", "cancel_key", "extend_key", "pause_key")
"""Columns by which an operation may name several keys."""

_SHARDS: Final = 256
_FEW_SHARDS: Final = 8  # of small tables
_PACKED: Final = "shard int, kind int, packed binary"
_NEEDS, _EVENTS, _OPERATIONS = range(3)
_ROWS: Final = 1 << 18  # of a batch of outcomes
_EVENTS_AT_ONCE: Final = 1 << 16  # at most, when forwarding: every shard may need each of them
_EVENT: Final = ("instance", "key", "progress", "at")
_NO_ROWS: Final = np.empty((0, 4), np.int64)
_GOLDEN: Final = np.int64(-7046029254386353131)  # 2**64 over the golden ratio: multiples of it are spread evenly


def resolve_by_rules(
    operations: DataFrame,
    events: DataFrame,
    rules: Rules,
    *,
    unique_ids: bool,
    several: bool,
    small: SmallTablePlan | None,
    sample: Sample | None,
) -> DataFrame:
    """Return the outcomes of tables, made by `complete`, with any options.

    Pass `several` if an operation may name several keys. With a `sample`, run jobs that find hot keys, if the options
    permit cutting them.
    """
    valid = valid_operations(operations) if unique_ids else distinct_operations(operations)
    event_rows = valid_events(events).select(*_EVENT)
    plain = plain_table(columns_of(events, EVENTS), EVENTS) if small is None else None

    def by_shard(packed: DataFrame) -> DataFrame:
        if small is not None:
            shuffled = small.repartition(packed, "shard")
        else:
            partitions = shuffle_partitions(packed.sparkSession)
            shuffled = packed.repartition(F.expr(spread("shard", _SHARDS, partitions)))
        return shuffled.sortWithinPartitions("shard", "kind")

    seed, number = draw_seed(), _SHARDS if small is None else _FEW_SHARDS
    hot: list[HotTime] = []
    if sample is not None and not several and may_be_cut(rules):
        hot = find_hot_times(valid_operations(operations), event_rows, sample, seed, number)
    shards = Shards(seed, number, rules, tuple(hot))
    packed = valid.mapInArrow(partial(shards.pack_operations, needs=several), _PACKED)
    if plain is None:
        packed_events = event_rows.mapInArrow(shards.pack_events, _PACKED)
    else:
        packed_events = read_by_workers(events.sparkSession, tasks_of("events", plain), shards.pack_files, _PACKED)
    rows = by_shard(packed.union(packed_events))
    if several:
        rows = by_shard(rows.mapInArrow(shards.forward, _PACKED))
    return rows.mapInArrow(shards.resolve, DETAILS if rules.details else OUTCOMES)


# -- in the workers ------------------------------------------------------------------------------------------------


class Shards(NamedTuple):
    """The functions that a job's workers run, with the job's parameters. `shards` is a power of two."""

    seed: bytes
    shards: int
    rules: Rules
    hot: tuple[HotTime, ...] = ()

    def pack_events(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack events (instance, key, progress, at) into `_PACKED`, as rows of (place, identity, progress, at)."""
        freeze_imports()
        return self._packed_events(pa.Table.from_batches([chunk]) for chunk in chunks(batches))

    def pack_files(self, task: Task, _: int) -> Iterator[pa.RecordBatch]:
        """Read the events of a task from plain files, and pack them as `pack_events` does."""
        tables = map(valid_event_rows, chunks_of(task, EVENTS.fieldNames()))
        return self._packed_events(table for table in tables if table.num_rows)

    def _packed_events(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        pairs, hot = PairHash(self.seed), HotTimes(self.hot, self.rules)
        for table in tables:
            places, identities = pairs(table["instance"], table["key"])
            progress, at = integers(table["progress"], "events: progress"), microseconds(table["at"], "events: at")
            if hot:
                rows = np.column_stack([places, identities, progress, at])
                rows, parts, pieces = hot.events(rows)
                shard = (self._shard_of(parts[:, 0]) + pieces) % self.shards
                by_shard = parts[np.argsort(shard, kind="stable")]
                yield _packed_rows(_EVENTS, np.bincount(shard, minlength=self.shards), by_shard)
                places, identities, progress, at = rows.T
            yield self._packed_by_shard(_EVENTS, places, identities, progress, at)

    def pack_operations(self, batches: Iterable[pa.RecordBatch], needs: bool) -> Iterator[pa.RecordBatch]:
        """Pack operations into `_PACKED`, as an Arrow table for each home shard.

        With `needs`, also pack which home shards need which key, as rows (place, identity, home shard, 0) for the key's
        shard, each row once per chunk.
        """
        freeze_imports()
        pairs, hot = PairHash(self.seed), HotTimes(self.hot, self.rules)
        for chunk in chunks(batches):
            operations = read_batch(chunk)
            watches = HashedWatches(operations, pairs)
            home = self._shard_of(watches.homes(chunk.num_rows))
            starts = operations.start[watches.operation]
            for rows, pieces in hot.operations(watches.places, watches.identities, starts):
                home[watches.operation[rows]] = (home[watches.operation[rows]] + pieces) % self.shards
            by_home = chunk.take(pa.array(np.argsort(home, kind="stable")))
            counts = np.bincount(home, minlength=self.shards)
            ends = np.cumsum(counts)
            nonempty = np.flatnonzero(counts)
            values = [_to_bytes(by_home.slice(ends[n] - counts[n], counts[n])) for n in nonempty.tolist()]
            yield _batch(nonempty, _OPERATIONS, binary([len(value) for value in values], b"".join(values)))
            if needs:
                places, homes = watches.places, home[watches.operation]
                columns = _distinct(np.argsort(places ^ (homes * _GOLDEN)), places, watches.identities, homes)
                yield self._packed_by_shard(_NEEDS, *columns, np.zeros_like(columns[0]))

    def forward(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy events to each home shard that needs their key, and drop the rows of needs (`_PACKED` to `_PACKED`)."""
        freeze_imports()
        for shard, values in groupby(_values(batches), key=lambda value: value[0]):
            needs = list(_NO_ROWS.T[:3])
            for kind, group in groupby(values, key=lambda value: value[1]):
                packed = [value for _, _, value in group]
                if kind == _NEEDS:
                    places, identities, homes, _ = _rows(packed).T
                    needs = _distinct(np.lexsort((homes, identities, places)), places, identities, homes)
                elif kind == _EVENTS:
                    events = _rows(packed)
                    for begin in range(0, len(events), _EVENTS_AT_ONCE):
                        home, rows = _needed(needs, events[begin : begin + _EVENTS_AT_ONCE])
                        order = np.argsort(home.astype(np.uint16), kind="stable")  # NumPy sorts 16 bits by radix
                        yield _packed_rows(kind, np.bincount(home, minlength=self.shards), rows[order])
                else:
                    sizes = [len(value) for value in packed]
                    yield _batch(np.full(len(packed), shard), kind, binary(sizes, b"".join(packed)))

    def resolve(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield outcomes, from `_PACKED` rows sorted by home shard. Several shards may hold copies of an event."""
        freeze_imports()
        pairs = PairHash(self.seed)
        for _, values in groupby(_values(batches), key=lambda value: value[0]):
            events = _NO_ROWS
            for kind, group in groupby(values, key=lambda value: value[1]):
                packed = [value for _, _, value in group]
                if kind == _EVENTS:
                    events = _rows(packed)
                    continue
                tables = [pa.ipc.open_stream(value).read_all() for value in packed]
                operations = read_batch(pa.concat_tables(tables).combine_chunks())
                outcomes = outcomes_of_rows(operations, [events], self.rules, pairs)
                yield from outcomes.to_batches(max_chunksize=_ROWS)

    def _shard_of(self, places: Integers) -> Integers:
        shards: Integers = (places.view(np.uint64) >> np.uint64(65 - self.shards.bit_length())).astype(np.int64)
        return shards

    def _packed_by_shard(self, kind: int, *columns: Integers) -> pa.RecordBatch:
        """Return rows of four columns, packed by the shard of the first column, the place."""
        rows, ends = np.empty((len(columns[0]), 4), np.int64), np.empty(self.shards, np.int64)
        first, second, third, fourth = (np.ascontiguousarray(column).data for column in columns)
        deal(first, second, third, fourth, ends.data, rows.ravel().data)
        return _packed_rows(kind, np.diff(ends, prepend=0), rows)


def _needed(needs: Sequence[Integers], rows: Integers) -> tuple[Integers, Integers]:
    """Return each pair of an event and a home shard that needs it, as two arrays of equal length: homes, events."""
    places, identities, homes = needs
    unique_places, begins = np.unique(places, return_index=True)
    if not len(unique_places):
        return places, rows[:0]
    nearest = np.searchsorted(unique_places, rows[:, 0]).clip(max=len(unique_places) - 1)
    counts = np.where(unique_places[nearest] == rows[:, 0], np.diff(begins, append=len(places))[nearest], 0)
    event = np.repeat(np.arange(len(rows)), counts)
    need = np.repeat(begins[nearest] - (np.cumsum(counts) - counts), counts) + np.arange(len(event))
    mask = identities[need] == rows[event, 1]
    return homes[need[mask]], rows[event[mask]]


def _values(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Any]]:
    for batch in batches:
        yield from zip(
            batch.column("shard").to_pylist(),
            batch.column("kind").to_pylist(),
            (value.as_buffer() for value in batch.column("packed")),
            strict=True,
        )


def _rows(values: Sequence[Any]) -> Integers:
    return np.frombuffer(values[0] if len(values) == 1 else b"".join(values), np.int64).reshape(-1, 4)


def _packed_rows(kind: int, counts: Integers, rows: Integers) -> pa.RecordBatch:
    """Return one packed value for each shard that has rows; `rows` are sorted by shard, with these `counts`."""
    shards = np.flatnonzero(counts)
    return _batch(shards, kind, binary(8 * 4 * counts[shards], np.ascontiguousarray(rows)))


def _batch(shards: Integers, kind: int, values: pa.Array) -> pa.RecordBatch:
    kinds = pa.array(np.full(len(shards), kind, np.int32))
    return pa.RecordBatch.from_arrays([pa.array(shards.astype(np.int32)), kinds, values], ["shard", "kind", "packed"])


def _to_bytes(batch: pa.RecordBatch) -> Any:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _distinct(order: Integers, *columns: Integers) -> list[Integers]:
    """Return the rows of these columns, sorted by `order`, with one row of each run of equal rows."""
    sorted_columns = [column[order] for column in columns]
    first = np.ones(len(order), np.bool_)
    first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in sorted_columns])
    return [column[first] for column in sorted_columns]
