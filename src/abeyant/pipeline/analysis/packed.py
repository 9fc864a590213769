"""Return rows of several tables from one Spark job: a row of the job is a table's name and some rows of it, packed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from abeyant.pipeline.analysis.columns import join_tables, tables
from abeyant.pipeline.spark.packed import pack, unpack

__all__ = ["Packed", "collected", "merging", "packed"]

Packed = tuple[str, pa.Table]

_MERGED_ROWS: Final = 1 << 17


def packed(parts: Iterable[Packed]) -> Iterator[pa.Table]:
    """Pack pairs (table name, rows) in the form in which a job returns them; drop pairs without rows."""
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
    """Count a task's batches with `count`; `merge` the counts of each table before the task returns them."""
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for table in tables(batches):
        for name, rows in count(table):
            parts[name].append(rows)
            if len(parts[name]) > 1 and sum(part.num_rows for part in parts[name]) > _MERGED_ROWS:
                parts[name] = [merge(name, join_tables(parts[name]))]
    for table in packed((name, merge(name, join_tables(some))) for name, some in parts.items()):
        yield from table.to_batches()
