"""Pack tables of any kind: Spark reads them and hashes keys, and its Python workers pack the rows.

operations ── valid ── one row a watch ── packed ──┐
                                                   ├── by shard
events ────── valid ───────────────────── packed ──┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from abeyant.pipeline.resolver.rejected import DEADLINE_US
from abeyant.pipeline.resolver.tables.hot_keys import IDENTITY, PLACE, Integers, Sample
from abeyant.pipeline.resolver.tables.packing import (
    CONDITION,
    IS_ONE,
    NTH,
    PACKED,
    EventPacker,
    Watches,
    pack_operations,
)
from abeyant.pipeline.resolver.tables.profile import GROUP_SHIFT, ID_HASH, Profiler, pack_ids
from abeyant.pipeline.resolver.tables.validity import valid_events, valid_operations
from abeyant.pipeline.spark.chunks import chunk_batches, cut, freeze_imports

__all__ = ["packed_by_spark"]

# A row is sent to Python as two lists, `numbers` and `texts`, because Spark's transfer costs time for each column of
# each row, and twice that with its default settings. Neither list is null: where Spark limits the bytes of a batch, it
# fills in all nulls of a list again at each row.
_EVENT: Final = f"array({PLACE}, {IDENTITY}, progress, unix_micros(at)) AS numbers"
_EVENT_NUMBERS: Final = 4

# The columns that all watches of an operation share, computed before the watches are split into rows.
_CODE: Final = "CASE condition WHEN 'all' THEN 1L WHEN 'any' THEN 2L ELSE 0L END"
_VERSION: Final = "if(size(watches) = 1, 0L, shiftrightunsigned(xxhash64(condition, watches), 1))"
_OPERATION: Final = (
    *("instance", "op_id", "kind", "unix_micros(start) AS start_us", f"{DEADLINE_US} AS deadline_us"),
    f"if(size(watches) = 1, {IS_ONE}L, 0L) + {CONDITION} * {_CODE} AS flags",
    f"{_VERSION} AS version",
    "watches",
)
_SHARED: Final = ("id", "instance", "op_id", "kind", "start_us", "deadline_us", "flags", "version")
_WATCH: Final = (*_SHARED, "nth", "watch.key AS key", "watch.required AS required")
_NUMBERS: Final = (PLACE, IDENTITY, "required", "start_us", "deadline_us", f"flags + {NTH}L * nth", "id", "version")


def packed_by_spark(
    operations: DataFrame, events: DataFrame, sample: Sample, *, ids: bool, together: int = 1
) -> DataFrame:
    """Return both tables as `packing.PACKED`, with the parts of the profile. `ids`: check for repeated ids, too."""
    pack_events = partial(_pack_events, sample=sample, together=together)
    packed_events = valid_events(events).selectExpr(_EVENT).mapInArrow(pack_events, PACKED)
    shared = f"{ID_HASH if ids else '0L'} AS id"
    of_each = valid_operations(operations).selectExpr(shared, *_OPERATION)
    watches = of_each.selectExpr(*_SHARED, "posexplode(watches) AS (nth, watch)").selectExpr(*_WATCH)
    rows = watches.selectExpr(
        f"array({', '.join(_NUMBERS)}) AS numbers",
        f"array(instance, op_id, kind{', key' if ids else ''}) AS texts",
    )
    pack = partial(_pack_operations, sample=sample, ids=ids, together=together)
    return packed_events.union(rows.mapInArrow(pack, PACKED))


# -- in the workers ------------------------------------------------------------------------------------------------


def profiler(sample: Sample) -> Profiler:
    """Return a profiler for the Spark task that calls this."""
    task = TaskContext.get()
    return Profiler(sample, task.partitionId() if task else 0)


def _pack_events(batches: Iterable[pa.RecordBatch], sample: Sample, together: int = 1) -> Iterator[pa.RecordBatch]:
    """Pack events, lists of integers in a column `numbers`, as `PACKED`."""
    freeze_imports()
    pack, profile = EventPacker(together), profiler(sample)
    for group in chunk_batches(batches):
        place, identity, progress, at_us = np.ascontiguousarray(_columns(group, _EVENT_NUMBERS))
        yield from profile(pack(place, identity, progress, at_us), place, identity, progress)


def _pack_operations(
    batches: Iterable[pa.RecordBatch], sample: Sample, ids: bool, together: int = 1
) -> Iterator[pa.RecordBatch]:
    """Pack watches, columns `numbers` and `texts` with lists, as `PACKED`."""
    freeze_imports()
    profile = profiler(sample)
    names = ("instance", "op_id", "kind", "key") if ids else ("instance", "op_id", "kind")
    for group in chunk_batches(batches):
        watches = Watches(*_columns(group, len(_NUMBERS)))
        hashes = watches.group.view(np.uint64)
        if ids:
            yield from pack_ids(hashes[watches.flags < NTH])
            watches = watches._replace(group=(hashes >> np.uint64(GROUP_SHIFT)).view(np.int64))
        texts = pa.concat_arrays([batch.column("texts").flatten() for batch in group])
        sizes = pc.binary_length(texts).fill_null(0).to_numpy().reshape(-1, len(names)).sum(axis=1)
        for begin, end in cut(sizes):
            indices = np.arange(len(names) * begin, len(names) * end, len(names))
            columns = {name: texts.take(pa.array(indices + n)) for n, name in enumerate(names)}
            rows = watches.select(slice(begin, end))
            several = bool(np.any(rows.flags & IS_ONE == 0))
            packed = pack_operations(pa.record_batch(columns), rows, together)
            yield from profile(packed, rows.place, rows.identity, rows.required, several)


def _columns(batches: Sequence[pa.RecordBatch], width: int) -> Integers:
    """Return the lists in the column `numbers`, of `width` integers each, as columns: column n has the nth integers."""
    rows = np.concatenate([batch.column("numbers").flatten().to_numpy() for batch in batches])
    return rows.reshape(-1, width).T
