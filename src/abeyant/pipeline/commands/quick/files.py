"""Read one local file of CSV or Parquet as an Arrow table, with the values that Spark would read.

Files that Arrow and Spark would read differently (quotes within a field, rows of another length) are left to Spark.
"""

from __future__ import annotations

import csv
import io
import re
from functools import cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from abeyant.pipeline.commands.quick.eligible import NeedsSparkError, format_of
from abeyant.pipeline.sources.csv_separator import check_utf_8, separator_of
from abeyant.pipeline.sources.empty import no_columns

__all__ = ["read_file"]

# Searched one after the other, as each begins with a fixed byte: one pattern for all takes ten times as long.
_ODD: Final = [re.compile(odd) for odd in (rb"\r(?!\n)", rb"\x00", rb"\xef\xbf\xbd", rb"\n[ \t]+\r?(?:\n|\Z)")]
_BOM: Final = b"\xef\xbb\xbf"


def read_file(name: str, form: str | None) -> pa.Table:
    """Return the rows of a file; columns of CSV are text. `form` is the format, by default that of the file's ending.

    Raises `NeedsSparkError` for files of other formats, and for files that Spark may read differently; `AbeyantError`
    for an empty Parquet file. Memory: the file's rows.
    """
    path, form = Path(name), format_of(name, form)
    if not path.stat().st_size:
        if form == "csv":
            return pa.table({})
        raise no_columns(name, "Parquet")
    try:
        return _csv(path) if form == "csv" else pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NeedsSparkError(f"{name}: {str(error).splitlines()[0]}") from error


@cache
def _rfc_4180(separator: bytes) -> re.Pattern[bytes]:
    """Return a pattern that matches CSV of RFC 4180, where quotes stand only around a whole field."""
    sep = re.escape(separator)
    return re.compile(rb'(?:(?:"[^"]*+(?:""[^"]*+)*+"|[^"%b\r\n]*+)(?:%b|\r?\n|\Z))*+' % (sep, sep))


def _csv(path: Path) -> pa.Table:
    data = path.read_bytes().removeprefix(_BOM)
    check_utf_8(data, path)
    header = data.partition(b"\n")[0].decode().rstrip("\r")
    separator = separator_of(header, path.name)
    if (
        any(odd.search(data) for odd in _ODD)
        or (header and not header.strip(" \t"))
        or (b'"' in data and not _rfc_4180(separator.encode()).fullmatch(data))
    ):
        raise NeedsSparkError(f"{path} has quotes, line ends or characters that Spark may read differently")
    first = next(csv.reader(io.StringIO(header), delimiter=separator), [])
    if not all(first) or len({column.lower() for column in first}) < len(first) or not first:
        raise NeedsSparkError(f"{path} has columns without a name, or several columns of the same name")
    text = pacsv.ConvertOptions(
        column_types=dict.fromkeys(first, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    # Not from `data`: a thread of Arrow's may hold it beyond the end of Python, which then aborts.
    with pa.OSFile(str(path)) as file:
        form = pacsv.ParseOptions(delimiter=separator, newlines_in_values=True)
        rows = pacsv.read_csv(file, parse_options=form, convert_options=text)
    if rows.column_names != first:
        raise NeedsSparkError(f"{path} has a header of several lines")
    return rows
