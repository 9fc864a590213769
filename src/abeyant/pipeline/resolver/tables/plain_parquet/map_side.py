"""Pack tables that are plain Parquet files: workers read the columns, and Spark handles only packed values.

    row groups ── tasks ── packed (`packing`) ── by shard

Python does here what Spark does for other tables: drop rows that cannot be resolved, and hash keys and ids. The code of
`abeyant.tables` does both; the seed of the hashes is drawn when the plan is made, so all tasks have the same seed.

Both tables have to be plain, because a key must have the same hash in both. Memory: a chunk, as for other tables, and
the part of a row group that Arrow holds while reading it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.resolver.tables.hot_keys import HotKeys, Integers, Sample
from abeyant.pipeline.resolver.tables.packing import CONDITION, IS_ONE, NTH, PACKED, EventPacker, pack_operations
from abeyant.pipeline.resolver.tables.packing import Watches as WatchNumbers
from abeyant.pipeline.resolver.tables.plain_parquet.footers import PlainTable, plain_table
from abeyant.pipeline.resolver.tables.plain_parquet.looking import look_for_hot_keys
from abeyant.pipeline.resolver.tables.plain_parquet.tasks import BATCH_ROWS, Task, chunks_of, tasks_of
from abeyant.pipeline.resolver.tables.profile import GROUP_SHIFT, Profiler, pack_ids
from abeyant.pipeline.schemas import EVENTS, OPERATIONS
from abeyant.pipeline.spark.chunks import cut, freeze_imports
from abeyant.tables.columns import Watches, flags, integers, microseconds, missing
from abeyant.tables.duplicates import id_hashes
from abeyant.tables.keys import PairHash, draw_seed
from abeyant.tables.validity import Operations, valid_events, valid_operations

__all__ = ["Files", "files_of", "plain_operations", "read_by_workers"]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # odd


def plain_operations(operations: DataFrame) -> PlainTable | None:
    """Return how to read `operations`, which has only columns of `OPERATIONS`, if it is plain files, else None."""
    return plain_table(operations, OPERATIONS)


def files_of(operations: PlainTable | None, events: DataFrame) -> Files | None:
    """Return both tables if both are plain files, else None; `events` must have only columns of `EVENTS`."""
    plain_events = plain_table(events, EVENTS) if operations is not None else None
    if operations is None or plain_events is None:
        return None
    tasks = [*tasks_of("operations", operations), *tasks_of("events", plain_events)]
    return Files(events.sparkSession, tasks, draw_seed())


class Files:
    """Operations and events, both plain files."""

    def __init__(self, spark: SparkSession, tasks: Sequence[Task], seed: bytes) -> None:
        self._spark, self._tasks, self._seed = spark, tasks, seed

    def packed(self, sample: Sample, *, ids: bool, together: int = 1) -> DataFrame:
        """Return both tables as `packing.PACKED`, with the parts of the profile. `ids`: check for repeated ids, too."""
        hot = look_for_hot_keys(self._tasks, self._seed, sample)
        pack = partial(_pack, seed=self._seed, hot=hot, sample=sample, ids=ids, together=together)
        return read_by_workers(self._spark, self._tasks, pack, PACKED)


def read_by_workers(
    spark: SparkSession, tasks: Iterable[Task], pack: Callable[[Task, int], Iterator[pa.RecordBatch]], packed: str
) -> DataFrame:
    """Return the batches that `pack(task, number)` yields in the workers, as a table of the schema `packed`."""
    # The largest first, so that cores finish at about the same time. One task at least, so that there is a table.
    tasks = sorted(tasks, key=attrgetter("size"), reverse=True) or [Task("events", [])]
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(partial(_pack_tasks, tasks=tasks, pack=pack), packed)


# -- in the workers ------------------------------------------------------------------------------------------------


def _pack_tasks(
    batches: Iterable[pa.RecordBatch], tasks: Sequence[Task], pack: Callable[[Task, int], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Call `pack` for each task whose number is in the column `id`, and yield the batches that it yields."""
    freeze_imports()
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from pack(tasks[number], number)


def _pack(
    task: Task, number: int, seed: bytes, hot: HotKeys, sample: Sample, ids: bool, together: int
) -> Iterator[pa.RecordBatch]:
    pairs, profiler = PairHash(seed), Profiler(sample, number)
    if task.table == "events":
        return _pack_events(task, pairs, hot, profiler, EventPacker(together))
    return _pack_operations(task, pairs, hot, profiler, ids=ids, together=together)


def _pack_events(
    task: Task, pairs: PairHash, hot: HotKeys, profiler: Profiler, pack: EventPacker
) -> Iterator[pa.RecordBatch]:
    for table in chunks_of(task, EVENTS.fieldNames(), BATCH_ROWS):
        valid = valid_events(table)
        if valid.num_rows:
            place, identity = pairs(valid["instance"], valid["key"])
            progress = integers(valid["progress"], "events: progress")
            at_us = microseconds(valid["at"], "events: at")
            place, identity, progress, at_us = hot.cut_events(place, identity, progress, at_us)
            yield from profiler(pack(place, identity, progress, at_us), place, identity, progress)


def _pack_operations(
    task: Task, pairs: PairHash, hot: HotKeys, profiler: Profiler, *, ids: bool, together: int = 1
) -> Iterator[pa.RecordBatch]:
    for table in chunks_of(task, OPERATIONS.fieldNames()):
        operations = valid_operations(table)
        if operations.table.num_rows:
            yield from _packed(operations, pairs, hot, profiler, ids=ids, together=together)


def _packed(
    operations: Operations, pairs: PairHash, hot: HotKeys, profiler: Profiler, *, ids: bool, together: int
) -> Iterator[pa.RecordBatch]:
    """Pack operations in chunks, one row per watch, with the texts of its operation."""
    table, watches = operations.table, operations.watches
    every = np.ones(table.num_rows, np.bool_)
    groups = np.zeros(table.num_rows, np.int64)
    if ids:
        hashes = id_hashes(table, every, pairs).view(np.uint64)
        yield from pack_ids(hashes)
        groups = (hashes >> np.uint64(GROUP_SHIFT)).view(np.int64)
    codes = np.where(flags(pc.equal(table["condition"], "any")), 2, np.where(missing(table["condition"]), 0, 1))
    shared = (watches.counts == 1) * IS_ONE + codes * CONDITION
    operation = watches.operation()
    nth = np.arange(len(operation)) - np.repeat(np.cumsum(watches.counts) - watches.counts, watches.counts)
    texts = table.select(["instance", "op_id", "kind"])
    sizes = _sizes(texts)[operation] + _sizes(pa.table({"key": watches.key}))
    versions = _versions(watches, nth, pairs)
    for begin, end in cut(sizes):
        rows = operation[begin:end]
        chunk = texts.slice(begin, end - begin) if watches.single else texts.take(pa.array(rows))
        key, required = (column.slice(begin, end - begin) for column in (watches.key, watches.required))
        place, identity = pairs(chunk["instance"], key)
        numbers = WatchNumbers(
            place,
            identity,
            integers(required, "operations: required"),
            operations.start[rows],
            operations.deadline[rows],
            shared[rows] + NTH * nth[begin:end],
            groups[rows],
            versions[rows],
        )
        text_batch = _one_batch(chunk.append_column("key", key) if ids else chunk)
        several = not watches.single
        hot.cut_operations(place, identity, numbers.required)
        packed = pack_operations(text_batch, numbers, together)
        yield from profiler(packed, place, identity, numbers.required, several)


def _sizes(texts: pa.Table) -> Integers:
    """Return the size of each row: the total bytes of its texts."""
    sizes = np.zeros(texts.num_rows, np.int64)
    for column in texts.columns:
        sizes += np.concatenate([_lengths(chunk) for chunk in column.chunks])
    return sizes


def _lengths(texts: pa.Array) -> Integers:
    """Return how many bytes each text has, 0 for a null."""
    if pa.types.is_dictionary(texts.type):
        lengths = pc.binary_length(texts.dictionary).take(texts.indices)
    else:
        lengths = pc.binary_length(texts)
    return np.asarray(lengths.fill_null(0).to_numpy())


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch; it must have rows, and far fewer than 2 GB."""
    (batch,) = table.unify_dictionaries().combine_chunks().to_batches()
    return batch


def _versions(watches: Watches, nth: Integers, pairs: PairHash) -> Integers:
    """Return a hash of each operation's watches, to tell rows of one id apart; 0 for operations of one watch."""
    if watches.single:
        return np.zeros(len(watches.counts), np.int64)
    keys, _ = pairs(watches.key, watches.key)
    required = integers(watches.required, "operations: required").view(np.uint64)
    hashes = (keys.view(np.uint64) ^ (required * _GOLDEN)) * _GOLDEN * (2 * nth + 1).view(np.uint64)
    hashes ^= hashes >> np.uint64(32)
    versions = np.add.reduceat(hashes, np.cumsum(watches.counts) - watches.counts) >> np.uint64(1)
    return np.where(watches.counts == 1, 0, versions.view(np.int64))
