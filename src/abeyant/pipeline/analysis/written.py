"""Large tables written as Parquet by Python workers, and what has to be known of all rows, in one job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.types import StructType

from abeyant.pipeline.analysis.shards import ShardRows
from abeyant.pipeline.results.local import check_shared
from abeyant.pipeline.results.sink import ResultWriter
from abeyant.pipeline.results.tables import put_table
from abeyant.pipeline.schemas import OBSERVED
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.chunks import gathered
from abeyant.pipeline.spark.packed import PackedRows

__all__ = ["write_operations", "write_rows"]

OPERATIONS: Final = "operations"

_MERGED: Final = {
    "operations": "sum",
    "waited": "sum",
    **dict.fromkeys(("first", "first_us"), "min"),
    **dict.fromkeys(("last", "last_us", "end"), "max"),
}
"""How many operations there are, and how many of them wait; the first and last start, and the last end; the first and
the last instant at which one waits, in microseconds."""

_TIMES: Final = ", ".join(f"{name} long" for name in _MERGED)
_GROUP_ROWS: Final = 1 << 17


def write_operations(result: ResultWriter, operations: PackedRows) -> dict[str, Any]:
    """Write the operations, and return their number and times (`pending.Span` reads the latter), null where none is."""
    times = write_rows(result, OPERATIONS, operations, OBSERVED, _times, _TIMES)
    found = {name: getattr(pc, merge)(times[name]).as_py() for name, merge in _MERGED.items()}
    return {**found, "operations": found["operations"] or 0}


def write_rows(
    result: ResultWriter,
    name: str,
    rows: PackedRows | ShardRows,
    schema: StructType,
    tell: Callable[[pa.Table], pa.RecordBatch],
    told: str,
) -> pa.Table:
    """Write a table, and return what `tell` says of some of its rows at a time, of the schema `told`.

    One job. Into a directory of this machine the workers write the files; elsewhere Spark does, in a job more.
    """
    folder = None if isinstance(result.report, str) else str(result.folder / name)
    found = rows.mapInArrow(partial(_write_part, folder=folder, schema=arrow_schema(schema), tell=tell), told).toArrow()
    if folder is None:
        result.write(name, rows.table(schema))
    elif found.num_rows:
        check_shared(Path(folder))
    else:
        put_table(Path(folder), arrow_schema(schema).empty_table())
    return found


def _write_part(
    batches: Iterator[pa.RecordBatch],
    *,
    folder: str | None,
    schema: pa.Schema,
    tell: Callable[[pa.Table], pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write a task's rows into a file, whole or not at all; return what is reported of them."""
    context = TaskContext.get()
    writer = part = passing = None
    if folder is not None and context is not None:
        part = Path(folder) / f"part-{context.partitionId():05}.zstd.parquet"
        passing = part.with_name(f".{part.name}.{context.taskAttemptId()}")
    for some in gathered(batches, _GROUP_ROWS):
        rows = pa.Table.from_batches(some).select(schema.names).cast(schema)
        if passing is not None:
            passing.parent.mkdir(exist_ok=True)
            writer = writer or pq.ParquetWriter(passing, schema, compression="zstd")
            writer.write_table(rows)
        yield tell(rows)
    if writer is not None and passing is not None and part is not None:
        writer.close()
        passing.replace(part)


def _times(rows: pa.Table) -> pa.RecordBatch:
    has_start = rows["start"].is_valid().to_numpy(zero_copy_only=False)
    start = rows["start"].cast(pa.int64()).fill_null(0).to_numpy()
    is_known = rows["waited_ms"].is_valid().to_numpy(zero_copy_only=False) & has_start
    wait = np.rint(rows["waited_ms"].fill_null(0.0).to_numpy() * 1000).astype(np.int64)
    waits = is_known & (wait > 0)
    found = {
        "operations": rows.num_rows,
        "waited": int(waits.sum()),
        "first": start[has_start].min(initial=_LAST),
        "first_us": start[waits].min(initial=_LAST),
        "last": start[has_start].max(initial=-_LAST),
        "last_us": (start + wait)[waits].max(initial=-_LAST),
        "end": (start + wait)[is_known].max(initial=-_LAST),
    }
    return pa.record_batch([pa.array([_known(found[name])], pa.int64()) for name in _MERGED], list(_MERGED))


_LAST: Final = (1 << 63) - 1


def _known(value: int) -> int | None:
    return None if abs(int(value)) == _LAST else int(value)
