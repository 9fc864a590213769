"""Read rows that workers of an earlier job wrote to Parquet files in a shared folder.

Only the columns that a job needs are read. To keep the rows in Spark's memory instead, Spark would convert all rows
from Python to the JVM, and back for each job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from abeyant.pipeline.spark.chunks import freeze_imports
from abeyant.pipeline.spark.packed import NamedWork, Work
from abeyant.pipeline.spark.session import default_partitions

__all__ = ["PartRows"]

# Tasks for each partition, on one machine: a task costs Spark some 40 ms, and reads a file in 200.
_TASKS: Final = 2

T = TypeVar("T")


@dataclass(frozen=True)
class PartRows:
    """The rows of one table, `name`, of several. Each task wrote at most one file per table, named after the task."""

    sparkSession: SparkSession  # noqa: N815 - as of a DataFrame
    folders: Mapping[str, Path]
    """The folder of each table's files, by table name."""
    name: str
    prepare: Callable[[pa.Table], pa.Table] | None = None
    """A function that is applied to each chunk before the work."""
    columns: Sequence[str] | None = None
    """The columns to read; None: all. Nested columns have Parquet's names, such as `watches.list.element.key`."""
    encoded: Sequence[str] = ()
    """The columns of texts that repeat: they are read as dictionaries, in a fifth of the time."""

    def prepared(self, prepare: Callable[[pa.Table], pa.Table], columns: Sequence[str]) -> PartRows:
        """Return the same rows with only `columns` read, and `prepare` applied to each chunk."""
        return replace(self, prepare=prepare, columns=columns)

    def mapInArrow(self, work: Work, schema: StructType | str) -> DataFrame:  # noqa: N802 - as of a DataFrame
        """Apply `work` to the rows of the files, of one or several files in each task."""
        read = partial(
            _read, folder=self.folders[self.name], columns=self.columns, encoded=self.encoded, prepare=self.prepare
        )
        return self._map(partial(_worked, read=read, work=work), [self.name], schema)

    def map_named(self, work: NamedWork, columns: Mapping[str, Sequence[str]], schema: StructType | str) -> DataFrame:
        """Apply `work` to pairs (name, rows) of the tables in `columns`, which lists each table's columns to read."""
        read = partial(_read_named, folders=self.folders, columns=columns, encoded=self.encoded)
        return self._map(partial(_worked, read=read, work=work), list(columns), schema)

    def _map(
        self, work: Callable[..., Iterator[pa.RecordBatch]], names: Sequence[str], schema: str | StructType
    ) -> DataFrame:
        parts = sorted({file.name for name in names for file in self.folders[name].glob("*.parquet")})
        most = default_partitions(self.sparkSession)
        tasks = max(len(parts) if most is None else min(len(parts), _TASKS * most), 1)
        of_tasks = [parts[number::tasks] for number in range(tasks)]
        return self.sparkSession.range(0, tasks, 1, tasks).mapInArrow(partial(work, of_tasks=of_tasks), schema)


def _worked(
    batches: Iterable[pa.RecordBatch],
    *,
    read: Callable[[str], Iterator[T]],
    work: Callable[[Iterator[T]], Iterator[pa.RecordBatch]],
    of_tasks: Sequence[Sequence[str]],
) -> Iterator[pa.RecordBatch]:
    freeze_imports()
    parts = (part for batch in batches for task in batch.column(0).to_pylist() for part in of_tasks[task])
    return work(row for part in parts for row in read(part))


def _read(
    part: str,
    *,
    folder: Path,
    columns: Sequence[str] | None,
    encoded: Sequence[str],
    prepare: Callable[[pa.Table], pa.Table] | None,
) -> Iterator[pa.RecordBatch]:
    for rows in _groups(folder / part, columns, encoded):
        yield from (prepare(rows) if prepare is not None else rows).to_batches()


def _read_named(
    part: str, *, folders: Mapping[str, Path], columns: Mapping[str, Sequence[str]], encoded: Sequence[str]
) -> Iterator[tuple[str, pa.Table]]:
    for name, column_names in columns.items():
        yield from ((name, rows) for rows in _groups(folders[name] / part, column_names, encoded))


def _groups(file: Path, columns: Sequence[str] | None, encoded: Sequence[str]) -> Iterator[pa.Table]:
    if file.exists():  # not each task had rows of each table
        texts = [name for name in encoded if columns is None or name in columns]
        with pq.ParquetFile(file, read_dictionary=texts) as parquet:
            for number in range(parquet.num_row_groups):
                yield parquet.read_row_group(number, columns=columns, use_threads=False)
