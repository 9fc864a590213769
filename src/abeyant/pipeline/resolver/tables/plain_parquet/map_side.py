"""Tables that are plain Parquet files: workers read the columns themselves, and Spark sees only what is packed.

    row groups ── tasks ──┬── profiled ── merged    as `profile` packs it
                          └── packed ──── by shard  as `packing` packs it

What Spark does over other tables, Python does here: it drops rows that cannot be resolved, hashes keys and ids, and
draws the sample. The definitions of validity are those of `abeyant.tables`, and its hashes too: their seed is drawn
with the plan, so all tasks have the same.

Both tables have to be plain, because a key must have one hash in both. Memory: as for other tables, a chunk, and what
Arrow holds of a row group while it reads it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession

from abeyant.pipeline.resolver.tables.hot_keys import HotKeys, Integers
from abeyant.pipeline.resolver.tables.packing import PACKED, EventPacker, WatchNumbers, packed_operations
from abeyant.pipeline.resolver.tables.plain_parquet.footers import RowGroup, row_groups
from abeyant.pipeline.resolver.tables.plain_parquet.tasks import BATCH_ROWS, Task, chunks_of, tasks_of
from abeyant.pipeline.resolver.tables.profile import GROUP_SHIFT, PROFILE, pack_profile
from abeyant.pipeline.schemas import EVENTS, OPERATIONS
from abeyant.pipeline.spark.chunks import cut, freeze_imports
from abeyant.tables.columns import Mask, Watches, flags, integers, microseconds, missing, watches_of
from abeyant.tables.duplicates import id_hashes
from abeyant.tables.keys import PairHash, draw_seed
from abeyant.tables.validity import Operations, valid_events, valid_operations

__all__ = ["Files", "files_of", "may_have_steps"]


def files_of(operations: DataFrame, events: DataFrame) -> Files | None:
    """Return both tables, of our columns alone, if they are plain files, else None."""
    of_operations = row_groups(operations, OPERATIONS)
    of_events = row_groups(events, EVENTS) if of_operations is not None else None
    if of_operations is None or of_events is None:
        return None
    tasks = [*tasks_of("operations", of_operations), *tasks_of("events", of_events)]
    # The longest first, so that no core waits long for another at the end. One at least, so that there is a table.
    return Files(
        operations.sparkSession,
        sorted(tasks, key=attrgetter("size"), reverse=True) or [Task("events", [])],
        draw_seed(),
    )


def may_have_steps(operations: DataFrame) -> bool:
    """Return whether the condition of an operation may be `then`: not where all are plain files that say otherwise."""
    groups = row_groups(operations, OPERATIONS)
    return groups is None or any(group.may_have_steps for group in groups)


class Files:
    """Operations and events, both plain files."""

    def __init__(self, spark: SparkSession, tasks: Sequence[Task], seed: bytes) -> None:
        self._spark, self._tasks, self._seed = spark, tasks, seed

    def profile(self, fraction: float, *, ids: bool) -> DataFrame:
        """Return `profile.PROFILE`: the ids, unless they need not be looked at, and a sample."""
        return self._each_task().mapInArrow(
            partial(_profile, tasks=self._tasks, seed=self._seed, fraction=fraction, ids=ids), PROFILE
        )

    def packed(self, profile: Column, *, ids: bool) -> DataFrame:
        """Return `packing.PACKED`, given the profile."""
        repeated = profile.getField("repeated") if ids else None
        told = self._each_task().select("id", profile.getField("cuts").alias("cuts"))
        told = told.withColumn("repeated", repeated) if repeated is not None else told
        return told.mapInArrow(partial(_pack, tasks=self._tasks, seed=self._seed), PACKED)

    def _each_task(self) -> DataFrame:
        return self._spark.range(0, len(self._tasks), 1, len(self._tasks))


# -- in the workers ------------------------------------------------------------------------------------------------


def _profile(
    batches: Iterable[pa.RecordBatch], tasks: Sequence[Task], seed: bytes, fraction: float, ids: bool
) -> Iterator[pa.RecordBatch]:
    """(the number of a task) -> PROFILE."""
    freeze_imports()
    pairs = PairHash(seed)
    profiles: dict[str, Callable[[Task, PairHash, _Draw], Iterator[pa.RecordBatch]]]
    profiles = {"operations": partial(_profile_operations, ids=ids), "events": _profile_events}
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from profiles[tasks[number].table](tasks[number], pairs, _draw(tasks[number], fraction))


_Draw = Callable[[int], Mask]


def _draw(task: Task, fraction: float) -> _Draw:
    """Return what draws a sample of so many rows; the same at every run."""
    first = task.groups[0] if task.groups else RowGroup("", 0, 0, 0)
    dice = np.random.default_rng([zlib.crc32(first.path.encode()), first.number])
    return lambda rows: dice.random(rows) < fraction


def _profile_operations(task: Task, pairs: PairHash, draw: _Draw, ids: bool) -> Iterator[pa.RecordBatch]:
    several = False
    for table in chunks_of(task, ["instance", "op_id", "watches"] if ids else ["instance", "watches"]):
        hashes = np.empty(0, np.int64)
        if ids:
            has_id = ~(missing(table["instance"]) | missing(table["op_id"]))
            hashes = id_hashes(table, has_id, pairs)
        watches = watches_of(table["watches"])
        drawn = np.flatnonzero(draw(len(watches.key)))
        of_them = pa.array(drawn)
        sampled = pa.table(
            {
                "instance": table["instance"].take(pa.array(watches.operation()[drawn])),
                "key": watches.key.take(of_them),
                "value": watches.required.take(of_them),
            }
        )
        now_several = not several and bool((watches.counts > 1).any())
        several = several or now_several
        yield from pack_profile(hashes.view(np.uint64), _sampled(sampled, pairs), several=now_several)


def _profile_events(task: Task, pairs: PairHash, draw: _Draw) -> Iterator[pa.RecordBatch]:
    for table in chunks_of(task, ["instance", "key", "progress"]):
        some = table.take(pa.array(np.flatnonzero(draw(table.num_rows))))
        sampled = _sampled(some.rename_columns(["instance", "key", "value"]), pairs)
        yield from pack_profile(np.empty(0, np.uint64), sampled, several=False)


def _sampled(table: pa.Table, pairs: PairHash) -> Integers:
    """(instance, key, value) -> rows of place, identity and value; those with a null are left out."""
    lacking = missing(table["instance"]) | missing(table["key"]) | missing(table["value"])
    table = table.filter(pa.array(~lacking))
    return np.column_stack((*pairs(table["instance"], table["key"]), integers(table["value"], "value")))


def _pack(batches: Iterable[pa.RecordBatch], tasks: Sequence[Task], seed: bytes) -> Iterator[pa.RecordBatch]:
    """(the number of a task, `cuts`, and `repeated` unless ids are not looked at) -> PACKED."""
    freeze_imports()
    pairs = PairHash(seed)
    for batch in batches:
        for row in batch.to_pylist():
            hot, task = HotKeys.read(np.array(row["cuts"], np.int64)), tasks[row["id"]]
            if task.table == "events":
                yield from _pack_events(task, pairs, EventPacker(hot, several=bool(row["cuts"][0])))
            else:
                yield from _pack_operations(task, pairs, hot, _marks(row.get("repeated")))


def _pack_events(task: Task, pairs: PairHash, pack: EventPacker) -> Iterator[pa.RecordBatch]:
    for table in chunks_of(task, EVENTS.fieldNames(), BATCH_ROWS):
        valid = valid_events(table)
        if valid.num_rows:
            yield pack(
                *pairs(valid["instance"], valid["key"]),
                integers(valid["progress"], "events: progress"),
                microseconds(valid["at"], "events: at"),
            )


def _marks(repeated: Sequence[bytes | None] | None) -> npt.NDArray[np.uint8] | None:
    """Return a mark for each group of ids, 1 where one may be there twice; None where none is."""
    if repeated is None:
        return None
    none = bytes(len(next(marks for marks in repeated if marks is not None)))
    return np.frombuffer(b"".join(marks or none for marks in repeated), np.uint8)


def _pack_operations(
    task: Task, pairs: PairHash, hot: HotKeys, repeated: npt.NDArray[np.uint8] | None
) -> Iterator[pa.RecordBatch]:
    for table in chunks_of(task, OPERATIONS.fieldNames()):
        operations = valid_operations(table)
        if operations.table.num_rows:
            yield from _packed(operations, pairs, hot, _rivals(operations.table, pairs, repeated))


def _rivals(table: pa.Table, pairs: PairHash, repeated: npt.NDArray[np.uint8] | None) -> Mask:
    """Return which ids may be there twice."""
    every = np.ones(table.num_rows, np.bool_)
    if repeated is None:
        return ~every
    groups = id_hashes(table, every, pairs).view(np.uint64) >> np.uint64(GROUP_SHIFT)
    return np.asarray(repeated[groups] == 1)


def _packed(operations: Operations, pairs: PairHash, hot: HotKeys, rivals: Mask) -> Iterator[pa.RecordBatch]:
    """Pack a row a watch, in chunks: each has all texts of its operation."""
    table, watches = operations.table, operations.watches
    alone = (watches.counts == 1) & ~rivals
    texts = table.select(["instance", "op_id", "kind"])
    if not alone.all():
        condition = table["condition"].cast(pa.string())
        texts = texts.append_column("any_of", pa.array(flags(pc.equal(condition, "any"))))
        texts = texts.append_column("version", _versions(condition, watches, rivals))
    of = watches.operation()
    for begin, end in cut(_sizes(texts)[of]):
        rows = of[begin:end]
        some = texts.slice(begin, end - begin) if watches.single else texts.take(pa.array(rows))
        key, required = (column.slice(begin, end - begin) for column in (watches.key, watches.required))
        place, identity = pairs(some["instance"], key)
        numbers = WatchNumbers(
            place,
            identity,
            integers(required, "operations: required"),
            operations.start[rows],
            operations.deadline[rows],
        )
        yield packed_operations(_one_batch(some), numbers, alone[rows], hot)


def _sizes(texts: pa.Table) -> Integers:
    """Return how many bytes the texts of each row have."""
    sizes = np.zeros(texts.num_rows, np.int64)
    for name in texts.column_names:
        if name == "version":
            lists = texts[name].combine_chunks()
            lengths = pc.binary_length(lists.flatten()).fill_null(0).to_numpy()
            sizes += np.bincount(pc.list_parent_indices(lists).to_numpy(), lengths, len(lists)).astype(np.int64)
            sizes += 4 * pc.list_value_length(lists).to_numpy()
        elif name != "any_of":
            sizes += np.concatenate([_lengths(chunk) for chunk in texts[name].chunks])
    return sizes


def _lengths(texts: pa.Array) -> Integers:
    """Return how many bytes each text has, 0 for a null."""
    if pa.types.is_dictionary(texts.type):
        lengths = pc.binary_length(texts.dictionary).take(texts.indices)
    else:
        lengths = pc.binary_length(texts)
    return np.asarray(lengths.fill_null(0).to_numpy())


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table that has some, and is far from 2 GB."""
    (batch,) = table.unify_dictionaries().combine_chunks().to_batches()
    return batch


def _versions(condition: pa.ChunkedArray, watches: Watches, rivals: Mask) -> pa.ListArray:
    """Return `version` of each operation: see `packing`."""
    counts = np.where(rivals, watches.counts, 0)
    lengths = np.where(rivals, 1 + 2 * watches.counts, 0)
    ends = np.cumsum(lengths)
    told = pa.array(np.repeat(rivals, watches.counts))
    key = watches.key.filter(told).cast(pa.string())
    required = watches.required.filter(told).cast(pa.string())
    texts = pa.chunked_array([*condition.filter(pa.array(rivals)).chunks, *key.chunks, *required.chunks], pa.string())
    # Where each text goes: the condition of an operation first, then its keys, then what they require.
    first = (ends - lengths)[rivals]
    of = np.repeat(np.arange(len(first)), counts[rivals])
    nth = np.arange(len(of)) - np.repeat(np.cumsum(counts[rivals]) - counts[rivals], counts[rivals])
    to = np.concatenate((first, first[of] + 1 + nth, first[of] + 1 + counts[rivals][of] + nth))
    source = np.empty(len(to), np.int64)
    source[to] = np.arange(len(to))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    values = texts.take(pa.array(source)).combine_chunks()
    return pa.ListArray.from_arrays(offsets, values.chunk(0) if isinstance(values, pa.ChunkedArray) else values)
