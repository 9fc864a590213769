"""Rows of several tables from one job: each row of the job is a table's name and some of its rows, packed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from abeyant.pipeline.analysis.columns import tables
from abeyant.pipeline.spark.packed import pack, unpack

__all__ = ["Packed", "collected", "merging", "packed"]

Packed = tuple[str, pa.Table]

_MERGED_ROWS: Final = 1 << 17


def packed(parts: Iterable[Packed]) -> Iterator[pa.Table]:
    """Pack rows of tables, as a job returns them."""
    for name, table in parts:
        if table.num_rows:
            yield pa.table([pa.array([name]), pa.array([pack(table)], pa.binary())], ["name", "rows"])


def collected(rows: DataFrame, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """Run the job `rows` and return its tables by name, each unpacked and whole."""
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for name, table in zip(*rows.toArrow().to_pydict().values(), strict=True):
        parts[name].append(unpack(table))
    return {
        name: pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts[name])])
        for name, schema in schemas.items()
    }


def merging(
    batches: Iterable[pa.RecordBatch],
    count: Callable[[pa.Table], Iterable[Packed]],
    merge: Callable[[str, pa.Table], pa.Table],
) -> Iterator[pa.RecordBatch]:
    """Count batches, and merge the counts of a task before they leave it."""
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for table in tables(batches):
        for name, rows in count(table):
            parts[name].append(rows)
            if len(parts[name]) > 1 and sum(part.num_rows for part in parts[name]) > _MERGED_ROWS:
                parts[name] = [merge(name, pa.concat_tables(parts[name]))]
    for table in packed((name, merge(name, pa.concat_tables(some))) for name, some in parts.items()):
        yield from table.to_batches()
