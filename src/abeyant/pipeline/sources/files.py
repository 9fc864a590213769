"""Tables in files: Parquet, JSON lines, or CSV with a header; read whole, or as files arrive in a directory."""

from __future__ import annotations

import os
import re
from glob import glob, has_magic
from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.arrival import first_file, list_at_once, pattern_of
from abeyant.pipeline.sources.csv_quotes import quoted_breaks
from abeyant.pipeline.spark.errors import says_nanoseconds
from abeyant.pipeline.spark.location import location

__all__ = [
    "expand",
    "file_format",
    "is_glob",
    "location",
    "read_files",
    "schema_of_files",
    "stream_lines",
    "stream_table",
]

_OPTIONS: Final = {
    # Columns of CSV stay text: what cannot be read as its column's type is rejected row by row. A quote within quotes
    # is doubled, as RFC 4180 has it and all but Spark write it.
    "csv": {"header": "true", "escape": '"'},
}
_STREAM_OPTIONS: Final = {
    # Of several files one whose header differs from the first one's is refused; by default Spark goes by position.
    # Nobody knows beforehand whether a file that arrives has line breaks within quotes.
    "csv": {**_OPTIONS["csv"], "enforceSchema": "false", "multiLine": "true"},
}
_CALLED: Final = {"parquet": "Parquet", "json": "JSON", "csv": "CSV"}
_COMPRESSED: Final = (".gz", ".bz2", ".zst")  # which Spark reads without more
_LETTER: Final = re.compile(r"([A-Za-z0-9])")
_UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"


def file_format(path: str, chosen: str | None = None) -> str:
    """Return `parquet`, `json` or `csv`: the chosen one, or what the name's ending, or that of a file in it, says."""
    if chosen is not None:
        return chosen
    by_name = _by_ending(path)
    if by_name is not None:
        return by_name
    inside = [file for found in expand(path) if Path(found).is_dir() for file in sorted(Path(found).iterdir())]
    named = [Path(found) for found in expand(path)] + inside
    return next((form for file in named if (form := _by_ending(file.name)) is not None), "parquet")


def is_glob(path: str) -> bool:
    """Whether a path is a pattern for files of this machine; a name with such letters that is there is itself."""
    return "://" not in path and has_magic(path) and not os.path.lexists(path)


def expand(path: str) -> list[str]:
    """Return the paths that a glob stands for, sorted; a path of its own, or a URI, as it is."""
    return sorted(glob(path, recursive=True)) if is_glob(path) else [path]


def _by_ending(name: str) -> str | None:
    name = Path(name).name.lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    ending = name.rpartition(".")[2]
    return {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}.get(ending)


def read_files(spark: SparkSession, path: str, form: str, schema: StructType | None = None) -> DataFrame:
    """Read what is there now: a file, a folder, or what a glob matches.

    Raises `AbeyantError` where nothing says what the columns are, and for a CSV file whose quotes Spark cannot read.
    """
    options = _OPTIONS.get(form, {}) | (_quoting(spark, path) if form == "csv" else {})
    reader = spark.read.format(form).options(**options)
    where = [location(found) for found in expand(path)]
    try:
        table = (reader if schema is None else reader.schema(schema)).load(where)
        if form == "csv" and not Path(path).is_file() and not _renamed(table.columns):
            reader = spark.read.format(form).options(**options, enforceSchema="false")
            table = reader.schema(table.schema).load(where)
        if form == "json" and table.columns == [str(spark.conf.get("spark.sql.columnNameOfCorruptRecord"))]:
            raise AbeyantError(f"{path}: no line of it is an object of JSON: there has to be one in each line")
        return _as_utf8(table) if form == "csv" else table
    except AnalysisException as error:
        if says_nanoseconds(error):
            raise AbeyantError(
                f"{path}: its times are in nanoseconds, which Spark does not read from Parquet: write them in "
                "microseconds (pandas and pyarrow: coerce_timestamps='us')"
            ) from error
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        raise AbeyantError(
            f"{path}: no {_CALLED[form]} file with columns is there (names that begin with _ or . do not count)"
        ) from error


def _quoting(spark: SparkSession, path: str) -> dict[str, str]:
    """Return how Spark is to read the line breaks within quotes of CSV files; nothing where there are none.

    Where they cannot be looked at here, one job looks for a line with an odd number of quotes, and its file is refused.
    """
    given = [Path(found) for found in expand(path) if "://" not in found]
    files = [
        file for each in given for file in (sorted(each.rglob("*")) if each.is_dir() else [each]) if file.is_file()
    ]
    files = [file for file in files if _shown(file.name)]
    if given and not any(file.suffix == ".zst" for file in files):
        ending = quoted_breaks(files)
        return {} if ending is None else {"multiLine": "true", "lineSep": ending}
    lines = spark.read.text([location(found) for found in expand(path)])
    torn = lines.where("length(regexp_replace(value, '[^\"]', '')) % 2 = 1").select("_metadata.file_path").first()
    if torn is not None:
        raise AbeyantError(
            f"{torn[0]}: a line of it ends within quotes: from {'a .zst file' if given else 'a store'} no line breaks "
            "within quotes are read: bring it to this machine, uncompressed, or write it as Parquet"
        )
    return {}


def _renamed(names: list[str]) -> bool:
    """Whether names may not be those of the header: Spark adds its place to one that is there twice, or to none."""
    return any(name.endswith(str(place)) for place, name in enumerate(names))


def read_lines(spark: SparkSession, path: str) -> DataFrame:
    """Read the lines that are there now, as `stream_lines` does."""
    return _as_records(spark.read.format("text").load([location(found) for found in expand(path)]))


def schema_of_files(spark: SparkSession, path: str, form: str) -> StructType | None:
    """Return the columns of what is there now; None where there is nothing yet.

    Of a directory's Parquet and CSV files those of the first count, so that a later one with others changes nothing.
    """
    if "://" not in path and Path(path).is_dir():
        if not any(_shown(file.name) for file in Path(path).rglob("*")):
            return None
        pattern, first = pattern_of(Path(path)), first_file(Path(path))
        if form != "json" and pattern is not None and not pattern.options and first is not None:
            path = str(first)
    return read_files(spark, path, form).schema


def stream_table(spark: SparkSession, path: str, form: str, schema: StructType, files_a_batch: int) -> DataFrame:
    """Read the Parquet or CSV files of a directory, and those that arrive in it; or one file."""
    reader = spark.readStream.format(form).schema(schema).options(**_STREAM_OPTIONS.get(form, {}))
    table = _loaded(spark, reader, path, files_a_batch)
    return _as_utf8(table) if form == "csv" else table


def stream_lines(spark: SparkSession, path: str, files_a_batch: int) -> DataFrame:
    """Read the lines of a directory's files, or of one, as records: `value`, and in `record` the file they stand in."""
    return _as_records(_loaded(spark, spark.readStream.format("text"), path, files_a_batch))


def _as_records(lines: DataFrame) -> DataFrame:
    return lines.select("value", F.struct(F.col("_metadata.file_path").alias("file")).alias("record"))


def _loaded(spark: SparkSession, reader: DataStreamReader, path: str, files_a_batch: int) -> DataFrame:
    where = location(path)
    reader = reader.option("maxFilesPerTrigger", files_a_batch)
    if "://" not in path and Path(path).is_file():
        # Spark streams what is in a directory, or what a pattern matches: one that matches this file only.
        folder, slash, name = where.rpartition("/")
        return reader.load(folder + slash + _LETTER.sub(r"[\1]", name, count=1))
    if is_glob(path):
        return reader.load(f"file://{os.path.abspath(path)}")
    pattern = pattern_of(Path(path)) if "://" not in path and Path(path).is_dir() else None
    if pattern is None:
        return reader.load(where)
    list_at_once(spark)
    return pattern.only(reader.options(**pattern.options).load(where + pattern.text))


def _as_utf8(table: DataFrame) -> DataFrame:
    """Make null what is no UTF-8 in CSV: Spark has one letter for all that it cannot read, and two keys would be one.

    (A table in Latin-1 would have one key for Müller and Möller.)
    """
    texts = [field.name for field in table.schema.fields if isinstance(field.dataType, StringType)]
    columns = {name: F.col(f"`{name.replace('`', '``')}`") for name in texts}
    read = {name: F.when(~column.contains(_UNREADABLE), column) for name, column in columns.items()}
    return table.withColumns(read) if read else table


def _shown(name: str) -> bool:
    """Whether Spark looks at a file of this name."""
    return not name.startswith(("_", "."))
