"""Write large tables as Parquet in Python workers, and compute totals over their rows in the same job."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from abeyant.pipeline.analysis.columns import LogRows
from abeyant.pipeline.analysis.shards import ShardRows
from abeyant.pipeline.request_log.rows import COUNTED, named_chunk
from abeyant.pipeline.request_log.tables import KafkaRequestLog, Survey
from abeyant.pipeline.results.local import check_shared
from abeyant.pipeline.results.sink import ResultWriter
from abeyant.pipeline.results.small_table import put_table
from abeyant.pipeline.schemas import OBSERVED, REJECTED
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.chunks import CHUNK_BYTES
from abeyant.pipeline.spark.packed import PackedRows, Work
from abeyant.pipeline.spark.part_rows import PartRows

__all__ = ["WrittenLog", "write_rows"]

_MERGED: Final = {
    **dict.fromkeys(("operations", "waited", "rejected", "requests"), "sum"),
    **dict.fromkeys(("first", "first_us"), "min"),
    **dict.fromkeys(("last", "last_us", "end"), "max"),
}
"""The totals of a log, and how the totals of its chunks are merged. Numbers of operations, of operations that waited,
of rejected lines, and of rows of counted requests; times in microseconds: first and last start (`first`, `last`), last
end (`end`), first and last instant at which an operation waits (`first_us`, `last_us`)."""

_TOTALS: Final = ", ".join(f"{name} long" for name in _MERGED)
_GROUP_ROWS: Final = 1 << 17
# Columns of few distinct values. For others a dictionary takes a third of the time to write, and is then discarded.
_REPEATED_TEXTS: Final = (
    *("instance", "kind", "condition", "outcome", "api", "client_id"),
    "watches.list.element.key",
)
_REPEATED: Final = (*_REPEATED_TEXTS, "timeout_ms", "error_code")
_COUNTED: Final = ".requests"
"""Folder for the requests counted by the second; it is no table of the result."""

Tell = Callable[[pa.Table], pa.RecordBatch]


@dataclass(frozen=True)
class _Table:
    """A table that workers write into `folder`, or only count if that is None; `tell` returns totals of some rows."""

    tell: Tell
    schema: pa.Schema
    folder: str | None


class WrittenLog:
    """A parsed log whose tables `operations` and `rejected` are written. `close` it after the analyses.

    If the result is a directory that the workers share, the workers write the files, and analyses read these files.
    Otherwise Spark writes each table in one more job, and keeps the rows until `close`, in memory or on its disk.
    """

    operations: LogRows
    """The operations. `map_named` also gives the requests counted by the second, under the name `requests`."""
    times: dict[str, Any]
    """The totals in `_MERGED`. A time is None if it is unknown."""

    def __init__(self, result: ResultWriter, log: KafkaRequestLog) -> None:
        self._counted = _folder(result, _COUNTED)
        tables = {
            "operations": _Table(_times, arrow_schema(OBSERVED), _folder(result, "operations")),
            "rejected": _Table(partial(_number, name="rejected"), arrow_schema(REJECTED), _folder(result, "rejected")),
            "requests": _Table(partial(_number, name="requests"), COUNTED, self._counted),
        }
        packed = log.packed
        if self._counted is None:
            self.operations = packed["operations"]
            self.operations.packed.persist()
            columns = {name: table.schema.names for name, table in tables.items()}
            rows = self.operations.map_named(partial(_write_named, tables=tables), columns, _TOTALS)
        else:
            folders = {name: Path(table.folder) for name, table in tables.items() if table.folder is not None}
            self.operations = PartRows(log.spark, folders, "operations", encoded=_REPEATED_TEXTS)
            rows = log.mapped(partial(_parsing, tables=tables), _TOTALS)
        part_totals = rows.toArrow()
        totals = {name: getattr(pc, merge)(part_totals[name]).as_py() for name, merge in _MERGED.items()}
        for name, schema in (("operations", OBSERVED), ("rejected", REJECTED)):
            _complete(result, name, partial(packed[name].table, schema), schema, totals[name] or 0)
        self.times = {**totals, "operations": totals["operations"] or 0, "rejected": totals["rejected"] or 0}

    def close(self) -> None:
        """Release the rows that Spark keeps for analyses, and remove the folder of counted requests."""
        if isinstance(self.operations, PackedRows):
            self.operations.packed.unpersist()
        if self._counted is not None:
            shutil.rmtree(self._counted, ignore_errors=True)


def write_rows(result: ResultWriter, name: str, rows: ShardRows, schema: StructType, tell: Tell, told: str) -> pa.Table:
    """Write a table; return the rows that `tell` returns for chunks of it. `told` is the schema of the returned rows.

    If the result is a directory, the workers write the files in the same job. Otherwise Spark writes the table in a
    second job.
    """
    table = _Table(tell, arrow_schema(schema), _folder(result, name))
    totals = rows.mapInArrow(partial(_write, table=table), told).toArrow()
    _complete(result, name, lambda: rows.table(schema), schema, totals.num_rows)
    return totals


def _folder(result: ResultWriter, name: str) -> str | None:
    return None if isinstance(result.report, str) else str(result.folder / name)


def _complete(result: ResultWriter, name: str, table: Callable[[], DataFrame], schema: StructType, rows: int) -> None:
    """Write a table with Spark if the workers could not write its files, or as an empty table if it has no rows.

    Otherwise check that the folder into which the workers wrote is shared.
    """
    folder = _folder(result, name)
    if folder is None:
        result.write(name, table())
    elif rows:
        check_shared(Path(folder))
    else:
        put_table(Path(folder), arrow_schema(schema).empty_table())


def _parsing(survey: Survey, zone: ZoneInfo, *, tables: Mapping[str, _Table]) -> Work:
    return partial(_parse_and_write, survey=survey, zone=zone, tables=tables)


def _parse_and_write(
    batches: Iterator[pa.RecordBatch], *, survey: Survey, zone: ZoneInfo, tables: Mapping[str, _Table]
) -> Iterator[pa.RecordBatch]:
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    chunks = (named_chunk(survey.chunks[number], survey.topics, zone) for number in numbers)
    return _write_named((rows for chunk in chunks for rows in chunk), tables=tables)


def _write_named(
    named_tables: Iterable[tuple[str, pa.Table]], *, tables: Mapping[str, _Table]
) -> Iterator[pa.RecordBatch]:
    parts = {name: _Part(table) for name, table in tables.items()}
    for name, rows in named_tables:
        yield from parts[name].add(rows)
    for part in parts.values():
        yield from part.close()


def _write(batches: Iterator[pa.RecordBatch], *, table: _Table) -> Iterator[pa.RecordBatch]:
    part = _Part(table)
    for batch in batches:
        yield from part.add(pa.Table.from_batches([batch]))
    yield from part.close()


class _Part:
    """A task's part of a table. It is written into a file that appears whole or not at all."""

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._writer: pq.ParquetWriter | None = None
        context = TaskContext.get()
        self._part = self._passing = None
        if table.folder is not None and context is not None:
            self._part = Path(table.folder) / f"part-{context.partitionId():05}.zstd.parquet"
            self._passing = self._part.with_name(f".{self._part.name}.{context.taskAttemptId()}")

    def add(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Collect rows. When the rows fill a row group, write them, and yield their totals from `tell`."""
        if rows.num_rows:
            self._waiting.append(rows)
            self._rows += rows.num_rows
        if self._rows >= _GROUP_ROWS or sum(table.nbytes for table in self._waiting) >= CHUNK_BYTES:
            yield self._flush()

    def close(self) -> Iterator[pa.RecordBatch]:
        """Write the remaining rows, yield their totals, and rename the file into place."""
        if self._waiting:
            yield self._flush()
        if self._writer is not None and self._passing is not None and self._part is not None:
            self._writer.close()
            self._passing.replace(self._part)

    def _flush(self) -> pa.RecordBatch:
        schema = self._table.schema
        rows = pa.concat_tables(self._waiting).select(schema.names).cast(schema)
        self._waiting, self._rows = [], 0
        if self._passing is not None:
            self._passing.parent.mkdir(exist_ok=True)
            self._writer = self._writer or pq.ParquetWriter(
                self._passing, schema, compression="zstd", use_dictionary=_REPEATED
            )
            self._writer.write_table(rows)
        return self._table.tell(rows)


def _number(rows: pa.Table, name: str) -> pa.RecordBatch:
    """Return the number of rows as the total `name`, in the schema `_TOTALS`."""
    return _totals_row({name: rows.num_rows})


def _times(rows: pa.Table) -> pa.RecordBatch:
    has_start = rows["start"].is_valid().to_numpy(zero_copy_only=False)
    start = rows["start"].cast(pa.int64()).fill_null(0).to_numpy()
    is_known = rows["waited_ms"].is_valid().to_numpy(zero_copy_only=False) & has_start
    wait = np.rint(rows["waited_ms"].fill_null(0.0).to_numpy() * 1000).astype(np.int64)
    waits = is_known & (wait > 0)
    totals = {
        "operations": rows.num_rows,
        "waited": int(waits.sum()),
        "first": start[has_start].min(initial=_LAST),
        "first_us": start[waits].min(initial=_LAST),
        "last": start[has_start].max(initial=-_LAST),
        "last_us": (start + wait)[waits].max(initial=-_LAST),
        "end": (start + wait)[is_known].max(initial=-_LAST),
    }
    return _totals_row({name: None if abs(int(value)) == _LAST else int(value) for name, value in totals.items()})


_LAST: Final = (1 << 63) - 1


def _totals_row(totals: Mapping[str, int | None]) -> pa.RecordBatch:
    return pa.record_batch([pa.array([totals.get(name)], pa.int64()) for name in _MERGED], list(_MERGED))
