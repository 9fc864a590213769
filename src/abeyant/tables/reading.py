"""Read tables with an Arrow interface, or Parquet files, as chunks of rows large enough for a thread."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from abeyant.errors import AbeyantError
from abeyant.tables.defaults import check_instances, warn_of_ignored
from abeyant.tables.dictionaries import dictionary_columns
from abeyant.tables.normalizing import columns_read, normalize
from abeyant.tables.schemas import EVENTS, OPERATIONS, check, columns_of

__all__ = ["batches_of", "check_columns", "chunks", "column_names", "normalize_table", "open_both", "table_of"]

_ROWS: Final = 1 << 18  # maximum rows of a chunk, so that its columns stay in the cache; most have at least half
_READERS: Final = {
    ".csv": "read_csv(...)",
    ".tsv": "read_csv(..., sep='\\t')",
    ".json": "read_json(...)",
    ".xlsx": "read_excel(...)",
    ".orc": "read_orc(...)",
}
T = TypeVar("T", pa.RecordBatch, pa.Table)


def batches_of(source: Any, expected: Mapping[str, str], name: str) -> Iterator[pa.RecordBatch]:
    """Return the batches of the table `name`, with the expected columns only. Reads lazily.

    A DuckDB connection runs one query at a time: of two tables from one connection, read the first to its end before
    the second. Columns are checked at once if the schema is known without reading, else before the first batch. Columns
    with a default may be missing (see `normalizing`).

    Raises TypeError for an object without an Arrow interface, `SchemaError` for missing columns or wrong types,
    `AbeyantError` for a path that cannot be read and for a stream that has been read already.
    """
    source = _speaks_arrow(source, expected, name)
    if isinstance(source, ds.Dataset | pa.Table | pa.RecordBatchReader):
        check(source.schema, expected, name)
    return _batches(source, expected, name)


def _batches(source: Any, expected: Mapping[str, str], name: str) -> Iterator[pa.RecordBatch]:
    if isinstance(source, ds.Dataset):
        # Arrow's own pool returns large buffers to the system at once, which has to zero each new one.
        pool = pa.system_memory_pool()
        columns = columns_read(source.schema.names, expected)
        scanner = source.scanner(columns=columns, batch_size=_ROWS, memory_pool=pool)
        yield from (normalize(_plain(batch), expected) for batch in scanner.to_batches())
        return
    reader = pa.RecordBatchReader.from_stream(source)
    check(reader.schema, expected, name)
    columns = columns_read(reader.schema.names, expected)
    has_batches = False
    for batch in reader:
        has_batches = True
        yield normalize(_plain(batch.select(columns)), expected)
    _check_unread(source, name, came=has_batches)


def open_both(operations: Any, events: Any) -> tuple[Any, Any]:
    """Return both tables as sources for `batches_of`. Opens files, and reads no rows.

    Raises `AbeyantError` if one stream is given as both tables, since only one would get its rows; `SchemaError` if
    only one table has the column `instance`; and what `batches_of` raises.
    """
    if operations is events and hasattr(operations, "__arrow_c_stream__") and not hasattr(operations, "__len__"):
        raise AbeyantError(
            f"operations and events are the same {type(events).__name__}, which can be read only once: "
            "give a table instead (reader.read_all())"
        )
    sources = _speaks_arrow(operations, OPERATIONS, "operations"), _speaks_arrow(events, EVENTS, "events")
    check_columns(*sources)
    for source, wanted, name in zip(sources, (OPERATIONS, EVENTS), ("operations", "events"), strict=True):
        warn_of_ignored(column_names(source) or (), columns_of(wanted), name)
    _warn_of_zones(*sources)
    return sources


def _warn_of_zones(operations: Any, events: Any) -> None:
    """Warn if the times of only one table have a zone: the other table's times are taken as UTC."""
    zones = {"start": _has_zone(operations, "start"), "at": _has_zone(events, "at")}
    if set(zones.values()) == {True, False}:
        aware, naive = sorted(zones, key=lambda column: not zones[column])
        warnings.warn(
            f"the times in {aware!r} have a time zone, but the times in {naive!r} have none and are taken as UTC: give "
            "the latter their zone, or convert both columns to UTC",
            stacklevel=4,
        )


def _has_zone(source: Any, column: str) -> bool | None:
    """Return whether the times in a column have a zone; None if it holds no times or its type is not known yet."""
    if isinstance(source, ds.Dataset | pa.Table | pa.RecordBatchReader):
        kinds = zip(source.schema.names, source.schema.types, strict=True)
    else:  # pandas, Polars and DuckDB, each with its own names of types
        kinds = zip(column_names(source) or (), getattr(source, "dtypes", ()), strict=False)
    kind = next((str(kind).lower() for name, kind in kinds if name == column), "")
    if not kind.startswith(("timestamp", "datetime")):
        return None
    return re.search(r"\[\w+, |time_zone='|with time zone", kind) is not None


def check_columns(operations: Any, events: Any) -> None:
    """Raise `SchemaError` if only one table has the column `instance`, as far as is known without reading."""
    names = column_names(operations), column_names(events)
    if names[0] is not None and names[1] is not None:
        check_instances(names[0], names[1])


def column_names(source: Any) -> list[str] | None:
    """Return the names of a table's columns; None if they are not known without reading."""
    if isinstance(source, ds.Dataset | pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return list(source.schema.names)
    columns = getattr(source, "columns", None)  # of pandas, Polars, DuckDB and Spark
    return None if columns is None or callable(columns) else [str(column) for column in columns]


def _check_unread(source: Any, name: str, *, came: bool) -> None:
    """Raise `AbeyantError` for a stream without batches: a stream that was read already looks like an empty stream.

    An object with a length is not a stream: it can be read again.
    """
    if not came and not hasattr(source, "__len__"):
        raise AbeyantError(
            f"{name}: the {type(source).__name__} is empty or has been read already (it can be read only once): "
            "give a new one, or a table (reader.read_all()), which may be empty"
        )


def table_of(source: Any, expected: Mapping[str, str], name: str) -> pa.Table:
    """Read the whole table `name`, with all of its columns. Raises what `batches_of` raises."""
    source = _speaks_arrow(source, {}, name)
    if isinstance(source, ds.Dataset):
        source = source.to_table()
    reader = pa.RecordBatchReader.from_stream(source)
    check(reader.schema, expected, name)
    table = reader.read_all()
    _check_unread(source, name, came=bool(table.to_batches()))
    return _plain(table)


def normalize_table(table: pa.Table, expected: Mapping[str, str], *, whole: bool = False) -> pa.Table:
    """Return the expected columns of a checked table, or all columns if `whole`, converted by `normalize`."""
    if not whole:
        table = table.select(columns_read(table.column_names, expected))
    empty = pa.RecordBatch.from_pylist([], table.schema)
    return pa.Table.from_batches([normalize(batch, expected) for batch in [*table.to_batches(), empty]])


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join and split batches into tables of about a quarter of a million rows; none is empty."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS):
            waiting.append(batch.slice(begin, _ROWS))
            rows += waiting[-1].num_rows
            if rows >= _ROWS // 2:
                yield pa.Table.from_batches(waiting)
                waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _speaks_arrow(source: Any, expected: Mapping[str, str], name: str) -> Any:
    if isinstance(source, str | Path):
        return _parquet(source, expected, name)
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if getattr(source, "empty", False) is True:  # pandas has no useful types for columns without rows
        return pa.table({str(column): pa.nulls(0) for column in source.columns})
    if not isinstance(source, ds.Dataset) and not hasattr(source, "__arrow_c_stream__"):
        raise TypeError(
            f"{name} must be a table with an Arrow interface (pandas, Polars, DuckDB, pyarrow, ...) or the path of a "
            f"Parquet file or folder, not {type(source).__name__}{_mend(source)}"
        )
    return source


def _mend(source: Any) -> str:
    """Return a hint on how to make a table of `source`; '' where none is obvious."""
    if isinstance(source, dict):
        return ": make it one with pyarrow.table(...)"
    if isinstance(source, list):
        return ": make it one with pyarrow.Table.from_pylist(...)"
    return ": collect it first" if hasattr(source, "collect") else ""


def _parquet(path: str | Path, expected: Mapping[str, str], name: str) -> ds.Dataset:
    text_columns = [column for column, kind in {"key": "text", **expected}.items() if kind == "text"]
    source: str | Path | list[str] = path
    if not os.path.lexists(path) and "://" not in str(path):
        source = sorted(glob(str(path), recursive=True))
        if not source:
            problem = "nothing matches" if has_magic(str(path)) else "no such file or directory:"
            raise AbeyantError(f"{name}: {problem} {path}")
    try:
        files = (fragment.metadata for fragment in ds.dataset(source, format="parquet").get_fragments())
        file_format = ds.ParquetFileFormat(dictionary_columns=dictionary_columns(files, text_columns))
        return ds.dataset(source, format=file_format)
    except (OSError, pa.ArrowInvalid) as error:
        reader = _READERS.get(Path(path).suffix.lower())
        reason = f"give the table that pandas.{reader} makes of it" if reader else " ".join(str(error).split())
        raise AbeyantError(f"{name}: cannot read {path} as Parquet: {reason}") from None


def _plain(table: T) -> T:
    """Convert string views and run-end encoding, which Polars and DuckDB produce but few Arrow kernels accept."""
    for index, name in enumerate(table.schema.names):
        if pa.types.is_run_end_encoded(table.schema.types[index]):
            table = table.set_column(index, name, pc.run_end_decode(table.column(index)))
    kinds = [_without_views(kind) for kind in table.schema.types]
    if kinds == table.schema.types:
        return table
    return table.cast(pa.schema(list(zip(table.schema.names, kinds, strict=True))))


def _without_views(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return (pa.list_ if pa.types.is_list(kind) else pa.large_list)(_without_views(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_views(kind.value_type), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(_without_views(kind.key_type), _without_views(kind.item_type), kind.keys_sorted)
    if pa.types.is_struct(kind):
        return pa.struct([(kind.field(n).name, _without_views(kind.field(n).type)) for n in range(kind.num_fields)])
    return kind
