"""Find when watches were reached: the reduce side, in Spark's Python workers, over packed rows.

Rows are partitioned by shard and sorted by `order`: a task reads shard after shard, each shard's events before its
operations.

Memory: the steps of one shard, in two copies while its staircases are built, and a chunk of operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, groupby, pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyant.kernels.resolve import NEVER, Staircases
from abeyant.pipeline.resolver.tables.hot_keys import HotKeys
from abeyant.pipeline.resolver.tables.packing import (
    ALONE,
    COMBINED,
    EVENTS,
    KINDS,
    ORDERS,
    RIVALS,
    SHARDS,
    EventPacker,
    Watches,
    binary,
    pack_operations,
    shards_of,
    unpacked_events,
    unpacked_operations,
)
from abeyant.pipeline.resolver.tables.profile import DIRECT, SLOW, marks_of
from abeyant.pipeline.spark.chunks import freeze_imports

__all__ = ["REACHED", "TO_COMBINE", "cut_hot_keys", "first_reached", "reached_to_combine"]

REACHED: Final = "instance string, op_id string, kind string, start_us long, deadline_us long, reached long"
TO_COMBINE: Final = f"{REACHED}, key string, required long, flags long, version long, repeated boolean"

_CHUNK_BYTES: Final = 1 << 25
_CUT_BYTES: Final = 1 << 22  # of values of hot keys, which are cut together
_Deadline = Literal["inclusive", "exclusive"]


def first_reached(batches: Iterable[pa.RecordBatch], deadline: _Deadline) -> Iterator[pa.RecordBatch]:
    """Yield `REACHED` for `PACKED` rows that are sorted by `order`, the first of which has the profile.

    `reached` is null if the watch was not reached in time. Leave out operations whose id may be repeated.
    """
    for reached in _reached(batches, deadline, with_key=False):
        rows = reached.select(~reached.repeated) if reached.repeated.any() else reached
        yield pa.record_batch(rows.columns())


def reached_to_combine(batches: Iterable[pa.RecordBatch], deadline: _Deadline) -> Iterator[pa.RecordBatch]:
    """Yield rows of `TO_COMBINE`, with the time at which each watch is met, for what has to be combined by id.

    These are operations with several watches, and operations with one watch whose id is repeated.
    """
    for reached in _reached(batches, deadline, with_key=True):
        rows = reached if reached.kind == COMBINED else reached.select(reached.repeated)
        columns = rows.columns()
        key = rows.texts.column("key") if "key" in rows.texts.schema.names else pa.nulls(len(rows.found), pa.string())
        columns |= {"key": key, "required": pa.array(rows.watches.required), "flags": pa.array(rows.watches.flags)}
        yield pa.record_batch(
            columns | {"version": pa.array(rows.watches.version), "repeated": pa.array(rows.repeated)}
        )


def cut_hot_keys(batches: Iterable[pa.RecordBatch], together: int = 1) -> Iterator[pa.RecordBatch]:
    """Cut hot keys: turn `PACKED` rows, sorted by `order`, with the profile, into `PACKED` rows for the second shuffle.

    In shards that have no hot key and were not spread over tasks, operations of one watch become `RIVALS`. `order` div
    `ORDERS` has the ways that rows go from there: `DIRECT` if any shard is in the profile's `shards`, `SLOW` if
    operations have to be combined.
    """
    profile, batches = _profile_and_rest(batches)
    if profile is None:
        return
    hot = HotKeys.read(np.array(profile["cuts"].as_py(), np.int64))
    profile_shards, hot_shards = set(profile["shards"].as_py()), set(shards_of(hot.places, together).tolist())
    combines = profile["several"].as_py() or profile["repeated"].is_valid
    ways = ORDERS * ((DIRECT if profile_shards else 0) + (SLOW if combines else 0))
    packers: defaultdict[int, EventPacker] = defaultdict(partial(EventPacker, together))
    waiting: defaultdict[tuple[int, int], list[memoryview]] = defaultdict(list)
    size = 0

    def cut() -> Iterator[pa.RecordBatch]:
        for (shard, kind), values in waiting.items():
            if kind == EVENTS:
                rows = np.frombuffer(unpacked_events(b"".join(values), shard), np.int64).reshape(-1, 4)
                packed = packers[shard](*hot.cut_events(*np.ascontiguousarray(rows.T)))
            else:
                watches, texts = unpacked_operations(values, shard)
                hot.cut_operations(watches.place, watches.identity, watches.required)
                packed = pack_operations(texts, watches, together)
            yield packed._replace(order=packed.order + ways).batch()
        waiting.clear()

    for run in _runs(batches):
        shard, kind = run.order // KINDS % SHARDS, run.order % KINDS
        if shard not in hot_shards:
            kind = RIVALS if kind == ALONE and shard not in profile_shards else kind
            order = np.full(len(run.ends), ways + shard * KINDS + kind)
            packed = binary(np.diff(run.ends, prepend=0), run.packed)
            yield pa.record_batch({"order": pa.array(order), "packed": packed})
            continue
        for value in run.values():
            waiting[shard, kind].append(value)
            size += len(value)
            if size >= _CUT_BYTES:
                yield from cut()
                size = 0
    yield from cut()


class _Reached(NamedTuple):
    """A chunk of watches of one kind: when each was reached (or NEVER), and whether its id may be repeated."""

    kind: int
    watches: Watches
    texts: pa.RecordBatch
    found: npt.NDArray[np.int64]
    repeated: npt.NDArray[np.bool_]

    def select(self, rows: npt.NDArray[np.bool_]) -> _Reached:
        texts = self.texts.filter(pa.array(rows))
        return _Reached(self.kind, self.watches.select(rows), texts, self.found[rows], self.repeated[rows])

    def columns(self) -> dict[str, pa.Array]:
        return {
            **{name: self.texts.column(name) for name in ("instance", "op_id", "kind")},
            "start_us": pa.array(self.watches.start_us),
            "deadline_us": pa.array(self.watches.deadline_us),
            "reached": pa.array(self.found, mask=self.found == NEVER),
        }


def _reached(batches: Iterable[pa.RecordBatch], deadline: _Deadline, *, with_key: bool) -> Iterator[_Reached]:
    freeze_imports()
    profile, batches = _profile_and_rest(batches)
    marks = None if profile is None else marks_of(profile["repeated"])
    for shard, runs in groupby(_runs(batches), key=lambda run: run.order // KINDS % SHARDS):
        staircases = Staircases(b"")
        for kind, kind_runs in groupby(runs, key=lambda run: run.order % KINDS):
            if kind == EVENTS:
                packed = [run.packed for run in kind_runs]
                staircases = Staircases(unpacked_events(packed[0] if len(packed) == 1 else b"".join(packed), shard))
                continue
            for values in _together(value for run in kind_runs for value in run.values()):
                watches, texts = unpacked_operations(values, shard, with_key=with_key)
                repeated = np.zeros(texts.num_rows, np.bool_) if marks is None else marks[watches.group]
                yield _Reached(kind, watches, texts, _found(staircases, watches, deadline), repeated)


def _found(staircases: Staircases, watches: Watches, deadline: _Deadline) -> npt.NDArray[np.int64]:
    reached = np.empty(len(watches.place), np.int64)
    staircases.first_reached(
        watches.place.data,
        watches.identity.data,
        watches.required.data,
        watches.start_us.data,
        watches.deadline_us.data,
        reached.data,
        deadline=deadline,
    )
    return reached


class _Run(NamedTuple):
    """Consecutive values of one `order`, concatenated, with the end of each."""

    order: int
    packed: memoryview
    ends: list[int]

    def values(self) -> Iterator[memoryview]:
        return (self.packed[begin:end] for begin, end in pairwise((0, *self.ends)))


def _profile_and_rest(batches: Iterable[pa.RecordBatch]) -> tuple[pa.StructScalar | None, Iterable[pa.RecordBatch]]:
    """Return the profile, from a partition's first row, and all batches; None and no batches if there is no row."""
    rest = iter(batches)
    for first in rest:
        if first.num_rows:
            profile = first.column("profile")[0]
            if not profile.is_valid:
                raise RuntimeError("the first row of a partition has no profile: its rows were moved by the plan")
            return profile, chain([first], rest)
    return None, ()


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[_Run]:
    for batch in batches:
        order, packed = batch.column("order").to_numpy(), batch.column("packed")
        _, offsets, data = packed.buffers()
        # Offsets have 64 bits with Spark's setting `spark.sql.execution.arrow.useLargeVarTypes`.
        width = np.dtype(np.int64 if pa.types.is_large_binary(packed.type) else np.int32)
        ends = np.frombuffer(offsets, width, len(packed) + 1, width.itemsize * packed.offset)
        firsts = np.flatnonzero(np.diff(order, prepend=-1))
        for first, end in zip(firsts.tolist(), (*firsts[1:].tolist(), len(order)), strict=True):
            begin = int(ends[first])
            values = memoryview(data)[begin : int(ends[end])] if data is not None else memoryview(b"")
            yield _Run(int(order[first]), values, (ends[first + 1 : end + 1] - begin).tolist())


def _together(values: Iterable[memoryview]) -> Iterator[list[memoryview]]:
    """Yield the values in chunks of about `_CHUNK_BYTES`."""
    chunk: list[memoryview] = []
    size = 0
    for value in values:
        chunk.append(value)
        size += len(value)
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
