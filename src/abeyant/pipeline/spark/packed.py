"""Pack rows as Arrow tables in a binary column, for data that only Python writes and reads.

Converting each row from Arrow to Spark's own rows and back would cost the JVM more than the work on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.chunks import freeze_imports

__all__ = ["PACKED", "NamedWork", "PackedRows", "Work", "named_tables", "pack", "packed_rows", "unpack"]

PACKED: Final = "name string, rows binary"
"""The schema of packed rows: the name of a table, and some of its rows."""

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
NamedWork = Callable[[Iterator[tuple[str, pa.Table]]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class PackedRows:
    """The rows of one table, `name`, in a DataFrame that holds packed rows of several tables (`PACKED`)."""

    packed: DataFrame
    name: str
    prepare: Callable[[pa.Table], pa.Table] | None = None
    """A function that is applied to each chunk before the work."""

    @property
    def sparkSession(self) -> SparkSession:  # noqa: N802 - as of a DataFrame
        """Return the session."""
        return self.packed.sparkSession

    def prepared(self, prepare: Callable[[pa.Table], pa.Table], columns: Sequence[str]) -> PackedRows:
        """Return the same rows with `prepare` applied to each chunk. `columns` is ignored: chunks have all columns."""
        return replace(self, prepare=prepare)

    def mapInArrow(self, work: Work, schema: StructType | str) -> DataFrame:  # noqa: N802 - as of a DataFrame
        """Apply `work` to the rows of each partition."""
        own_rows = self.packed.where(F.col("name") == self.name)
        return own_rows.mapInArrow(partial(_unpacked, prepare=self.prepare, work=work), schema)

    def map_named(self, work: NamedWork, columns: Mapping[str, Sequence[str]], schema: StructType | str) -> DataFrame:
        """Apply `work` to pairs (name, rows) of the tables that are keys of `columns`."""
        subset = self.packed.where(F.col("name").isin(list(columns)))
        return subset.mapInArrow(partial(_named, work=work), schema)

    def table(self, schema: StructType) -> DataFrame:
        """Return the rows as a Spark table."""
        return self.mapInArrow(partial(_cast, schema=arrow_schema(schema)), schema)


# Half the bytes for the JVM to move; some builds of Arrow lack lz4. A worker has one core, so Arrow starts no threads.
_PACKING: Final = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None, use_threads=False)
_UNPACKING: Final = pa.ipc.IpcReadOptions(use_threads=False)


def pack(table: pa.Table) -> bytes:
    """Return a table as bytes: an Arrow IPC stream, whose columns are compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_PACKING) as stream:
        stream.write_table(_compact(table.combine_chunks()))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _compact(rows: pa.Table) -> pa.Table:
    """Encode anew each encoded column that has more values than rows, such as a slice. Each column is one chunk."""
    for at, column in enumerate(rows.columns):
        if pa.types.is_dictionary(column.type) and rows.num_rows and len(column.chunk(0).dictionary) > rows.num_rows:
            values = column.cast(column.type.value_type)
            rows = rows.set_column(at, rows.field(at), values.dictionary_encode())
    return rows


def unpack(packed: bytes) -> pa.Table:
    """Return the table in bytes that `pack` returned."""
    return pa.ipc.open_stream(packed, options=_UNPACKING).read_all()


def named_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    """Unpack packed rows: yield pairs (name, rows). Call this in a worker."""
    freeze_imports()
    for batch in batches:
        for name, rows in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield name, unpack(rows.as_buffer())


def packed_rows(name: str, rows: pa.Table) -> pa.RecordBatch:
    """Pack rows of the table `name`: return a batch with one row (`PACKED`)."""
    return pa.record_batch([pa.array([name]), pa.array([pack(rows)], pa.binary())], ["name", "rows"])


def _unpacked(
    batches: Iterable[pa.RecordBatch], *, prepare: Callable[[pa.Table], pa.Table] | None, work: Work
) -> Iterator[pa.RecordBatch]:
    tables = (table for _, table in named_tables(batches))
    prepared = map(prepare, tables) if prepare is not None else tables
    return work(part for table in prepared for part in table.to_batches())


def _named(batches: Iterable[pa.RecordBatch], *, work: NamedWork) -> Iterator[pa.RecordBatch]:
    return work(named_tables(batches))


def _cast(batches: Iterator[pa.RecordBatch], *, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
