"""Share the row groups of Parquet files out to tasks, and read a task's rows in chunks of one schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.tables.plain_parquet.computing import compute, kept
from abeyant.pipeline.resolver.tables.plain_parquet.footers import DIRECT, PlainTable, RowGroup
from abeyant.pipeline.resolver.tables.plain_parquet.stored import Stored, hold, opened
from abeyant.pipeline.schemas import EVENTS, OPERATIONS
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.chunks import CHUNK_BYTES, chunk_batches
from abeyant.pipeline.spark.plans import Expression, names_of
from abeyant.tables.dictionaries import dictionary_columns

__all__ = ["BATCH_ROWS", "CHUNK_ROWS", "Task", "chunks_of", "tasks_of"]

BATCH_ROWS: Final = 1 << 16
"""Rows that are read at once, and rows of a chunk of events: few enough for the CPU cache, as Spark's batches are."""

CHUNK_ROWS: Final = 1 << 20
"""Maximum rows of any other chunk: the larger chunks are, the fewer values have to be packed and unpacked."""

_PROBED: Final = 1 << 10

# Bytes that a task reads, at least one row group: fewer if there is little data, so that all cores have tasks.
_LEAST_BYTES, _MOST_BYTES = 1 << 22, 1 << 27
_TASKS: Final = 256
_MOST_ROWS: Final = 1 << 22

_WATCH: Final = pa.struct([("key", pa.string()), ("required", pa.int64())])  # any part may be null
_TYPES: Final = {
    **{field.name: field.type for table in (OPERATIONS, EVENTS) for field in arrow_schema(table)},
    "watches": pa.list_(pa.field("element", _WATCH)),
}
# Arrow reads INT96 times as days after 4713 BC; earlier times come out wrong by 68,000 years or more.
_OF_96_BITS: Final = pa.timestamp("us")
_YEARS: Final = -62_135_596_800_000_000, 253_402_300_799_999_999
_FEW: Final = pa.dictionary(pa.int32(), pa.string())
_TEXTS: Final = {"operations": ("instance", "kind", "condition"), "events": ("instance", "key")}


class Task(NamedTuple):
    """Some row groups of one of the two tables, `operations` or `events`."""

    table: str
    groups: Sequence[RowGroup]
    columns: Mapping[str, Expression] = {}
    """The expressions of columns over the files' columns; other columns are read by their names."""
    condition: Expression | None = None
    """The filter of the rows; None keeps all."""

    @property
    def size(self) -> int:
        """Compressed bytes of the columns that are read."""
        return sum(group.size for group in self.groups)


def tasks_of(table: str, plain: PlainTable) -> Iterator[Task]:
    """Share row groups out to tasks of about one size. O(row groups)."""
    groups, columns, condition = plain
    most = min(max(sum(group.size for group in groups) // _TASKS, _LEAST_BYTES), _MOST_BYTES)
    part: list[RowGroup] = []
    size = rows = 0
    for group in groups:
        if part and (size + group.size > most or rows + group.rows > _MOST_ROWS):
            yield Task(table, part, columns, condition)
            part, size, rows = [], 0, 0
        part.append(group)
        size += group.size
        rows += group.rows
    if part:
        yield Task(table, part, columns, condition)


# -- in the workers ------------------------------------------------------------------------------------------------


def chunks_of(task: Task, columns: Sequence[str], rows: int = CHUNK_ROWS) -> Iterator[pa.Table]:
    """Yield a task's rows in chunks of about `rows` rows, or 64 MB if that is less; no chunk is empty."""
    return map(pa.Table.from_batches, chunk_batches(_read(task, columns), rows))


def _read(task: Task, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, all with one schema. Raises `AbeyantError`, which names the file."""
    import pyarrow.parquet as pq

    files = [(file, list(groups)) for file, groups in groupby(task.groups, key=attrgetter("file"))]
    name = ""
    try:
        footers: list[Any] = []
        for name, _ in files:
            with opened(name) as source:
                footers.append(pq.read_metadata(source))
        computed: dict[str, Expression] = {name: task.columns.get(name, ("column", name, "")) for name in columns}
        read = list(names_of([*computed.values(), *([task.condition] if task.condition else [])]))
        texts = [
            expression[1]
            for name, expression in computed.items()
            if name in _TEXTS[task.table] and expression[0] == "column"
        ]
        dictionary_names = dictionary_columns(footers, texts)
        schema = pa.schema(
            [(name, _type_of(name, expression, dictionary_names)) for name, expression in computed.items()]
        )
        for (name, groups), metadata in zip(files, footers, strict=True):
            options: Any = {
                "metadata": metadata,
                "read_dictionary": dictionary_names,
                "coerce_int96_timestamp_unit": "us",
            }
            with opened(name) as source, pq.ParquetFile(source, **options) as file:
                for group in groups:
                    _check(name, metadata, group)
                    hold(source, _ranges(metadata, group, read))
                    rows = _rows_of_a_batch(file, group, read)
                    for batch in file.iter_batches(rows, [group.number], read, use_threads=False):
                        selected = kept(task.condition, batch, _cast) if task.condition else batch
                        if selected.num_rows:
                            yield _as(selected, computed, schema)
    except (OSError, pa.ArrowException) as error:
        raise AbeyantError(f"cannot read {name}: {' '.join(str(error).split())}") from None


def _check(file: Stored, metadata: Any, group: RowGroup) -> None:
    if group.number >= metadata.num_row_groups or metadata.row_group(group.number).num_rows != group.rows:
        raise AbeyantError(f"{file} has changed since the table was opened: read the table anew")


def _ranges(metadata: Any, group: RowGroup, columns: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the byte range [begin, end), in its file, of each chunk of these columns in a row group."""
    for leaf in range(metadata.num_columns):
        column = metadata.row_group(group.number).column(leaf)
        if column.path_in_schema.partition(".")[0] in columns:
            begin = column.data_page_offset
            if column.has_dictionary_page and column.dictionary_page_offset:
                begin = min(begin, column.dictionary_page_offset)
            yield begin, begin + column.total_compressed_size


def _rows_of_a_batch(file: Any, group: RowGroup, columns: Sequence[str]) -> int:
    """Return how many rows of a row group to read at once, by its first rows: metadata has only encoded sizes."""
    first = next(file.iter_batches(_PROBED, [group.number], columns, use_threads=False))
    return max(1, min(BATCH_ROWS, CHUNK_BYTES * int(first.num_rows) // max(int(first.nbytes), 1)))


def _type_of(name: str, expression: Expression, dictionary_names: Sequence[str]) -> pa.DataType:
    """Return the type of a column: a dictionary for text that is constant, or dictionary-encoded in all files."""
    is_dictionary = (
        expression[1] in dictionary_names
        if expression[0] == "column"
        else expression[0] == "literal" and _TYPES[name] == pa.string()
    )
    return _FEW if is_dictionary else _TYPES[name]


def _as(batch: pa.RecordBatch, computed: Mapping[str, Expression], schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns with the types of `schema`: files differ in units of time, widths of text and nulls."""
    columns = []
    for field in schema:
        expression = computed[field.name]
        values = batch.column(expression[1]) if expression[0] == "column" else compute(expression, batch, _cast)
        columns.append(_cast(values if isinstance(values, pa.Array) else pa.repeat(values, batch.num_rows), field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if column.type == _OF_96_BITS:
        least, greatest = pc.min_max(column.cast(pa.int64())).values()
        if least.is_valid and not _YEARS[0] <= least.as_py() <= greatest.as_py() <= _YEARS[1]:
            raise pa.ArrowInvalid(
                "an INT96 time is outside the years 1 to 9999, and only Spark can read such times: "
                f"set {DIRECT}=false, or write the file with spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"
            )
    return column.cast(pa.string()).dictionary_encode() if kind == _FEW else column.cast(kind)
