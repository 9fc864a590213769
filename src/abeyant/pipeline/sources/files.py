"""Read tables in files, local or on a store that Spark can reach: whole, or as files arrive in a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from glob import glob, has_magic
from pathlib import Path
from typing import ClassVar, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.arrival import first_file, list_at_once, pattern_of
from abeyant.pipeline.sources.empty import no_columns
from abeyant.pipeline.sources.source import Facts, Input, Source
from abeyant.pipeline.spark.errors import is_nanoseconds_error
from abeyant.pipeline.spark.location import is_text, is_uri, location

__all__ = ["FileSource", "Orc", "Parquet", "expand", "is_shown"]

_COMPRESSED: Final = (".gz", ".bz2", ".zst")  # compressions that Spark detects by the ending
_LETTER: Final = re.compile(r"([A-Za-z0-9])")


class FileSource(Source):
    """A file, a directory or a glob; if it is a URI, Hadoop expands globs in it. Each subclass is a file format."""

    format: ClassVar[str]
    """Spark's name of the format."""
    called: ClassVar[str]
    """The format's name in messages."""
    endings: ClassVar[tuple[str, ...]]
    """The file name extensions of the format."""
    stream_options: ClassVar[Mapping[str, str]] = {}
    first_file_counts: ClassVar[bool] = True
    """Whether the directory's first file alone defines the columns of a stream."""

    @classmethod
    def takes(cls, name: str, value: Input) -> bool:
        """Return whether the user chose this format or, without a choice, whether the name's extension is of it."""
        if value.format is not None:
            return value.format == cls.format
        name = Path(name).name.lower()
        for compressed in _COMPRESSED:
            name = name.removesuffix(compressed)
        return name.rpartition(".")[2] in cls.endings

    def describe(self) -> Facts:
        """Return the facts known without Spark. Raise `AbeyantError` for a local path that does not exist."""
        path = self.given.name
        if not path:
            raise AbeyantError("a path is empty: name a file, directory or glob")
        if not is_text(path):
            raise AbeyantError(f"{path!r} is not UTF-8, which Spark requires of paths: rename it")
        if is_uri(path):
            return Facts()
        if not Path(path).exists():
            if not has_magic(path):
                raise AbeyantError(f"no such file or directory: {path}")
            if not expand(path):
                raise AbeyantError(f"nothing matches {path}")
        empty = Path(path).is_dir() and not any(is_shown(file.name) for file in Path(path).iterdir())
        return Facts(one_batch=Path(path).is_file(), empty=empty)

    def size(self, most: int) -> int | None:
        """Return the total size of the files in bytes; stop counting beyond `most`. Return None on a store."""
        size = 0
        with suppress(OSError):
            for file in self.files():
                size += file.stat().st_size
                if size > most:
                    break
        return None if is_uri(self.given.name) else size

    def table(self, spark: SparkSession) -> DataFrame:
        """Return the current rows, with their own columns."""
        return self._read(spark, None)

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the existing rows, and the rows that arrive later, as a stream of operations or events."""
        return self.given.of_columns(self.rows(spark))

    def again(self, spark: SparkSession) -> DataFrame:
        """Return the current rows as operations or events, read as `stream` reads them, but not as a stream."""
        return self.given.of_columns(self._read(spark, self.given.fields()))

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return the existing rows, and the rows that arrive later, as a stream with their own columns."""
        schema = self.given.fields() or self.schema(spark)
        if schema is None:
            table = self.given.table
            raise AbeyantError(
                f"{table}: {self.given.name} is empty, so its columns are unknown: give them with "
                f"--{table[:-1]}-schema 'a STRING, ...'"
            )
        reader = spark.readStream.format(self.format).schema(self.read_as(schema)).options(**self.stream_options)
        return self.columns_of(self.arriving(spark, reader))

    def schema(self, spark: SparkSession) -> StructType | None:
        """Return the columns of the current files; None if there are no files."""
        path = self.given.name
        if not is_uri(path) and Path(path).is_dir():
            if not any(is_shown(file.name) for file in Path(path).rglob("*")):
                return None
            pattern, first = pattern_of(Path(path)), first_file(Path(path))
            if self.first_file_counts and pattern is not None and not pattern.options and first is not None:
                return type(self)(Input(self.given.table, str(first))).table(spark).schema
        return self.table(spark).schema

    def arriving(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        """Stream a directory's files, and files that arrive in it, by modification time and name; or one file."""
        path, uri = self.given.name, location(self.given.name)
        reader = reader.option("maxFilesPerTrigger", self.given.files_a_batch)
        if is_uri(path):
            return reader.load(uri)
        if Path(path).is_file():
            # Spark streams a directory or a pattern, not a file: use a pattern that matches only this file.
            folder, slash, name = uri.rpartition("/")
            return reader.load(folder + slash + _LETTER.sub(r"[\1]", name, count=1))
        if _is_glob(path):
            return reader.load(f"file://{os.path.abspath(path)}")
        pattern = pattern_of(Path(path)) if Path(path).is_dir() else None
        if pattern is None:
            return reader.load(uri)
        list_at_once(spark)
        return pattern.only(reader.options(**pattern.options).load(uri + pattern.text))

    def locations(self) -> list[str]:
        """Return the Hadoop paths of the files and directories."""
        return [location(path) for path in expand(self.given.name)]

    def files(self) -> Iterator[Path]:
        """Yield all local files, including files in directories. Yield none on a store."""
        for path in map(Path, [] if is_uri(self.given.name) else expand(self.given.name)):
            yield from (file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())

    def read_as(self, schema: StructType) -> StructType:
        """Return the schema with which Spark reads files that have the columns `schema`; formats override this."""
        return schema

    def columns_of(self, rows: DataFrame) -> DataFrame:
        """Return rows with converted columns; formats override this."""
        return rows

    def _read(self, spark: SparkSession, schema: StructType | None) -> DataFrame:
        try:
            return self.columns_of(self._load(spark, schema))
        except AnalysisException as error:
            if is_nanoseconds_error(error):
                raise AbeyantError(
                    f"{self.given.name}: its times are in nanoseconds, which Spark cannot read from Parquet: write "
                    "them in microseconds (pandas and pyarrow: coerce_timestamps='us')"
                ) from error
            if error.getCondition() == "COLUMN_ALREADY_EXISTS":
                column = (error.getMessageParameters() or {}).get("columnName", "of one name")
                raise AbeyantError(
                    f"{self.given.name}: 2 columns {column}: rename all but one, or tell them apart by their case with "
                    "spark.sql.caseSensitive"
                ) from error
            if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
                raise
            raise no_columns(self.given.name, self.called) from error

    def _load(self, spark: SparkSession, schema: StructType | None) -> DataFrame:
        reader = spark.read.format(self.format)
        return (reader if schema is None else reader.schema(schema)).load(self.locations())


class Parquet(FileSource):
    """Parquet files."""

    format, called, endings = "parquet", "Parquet", ("parquet",)


class Orc(FileSource):
    """ORC files."""

    format, called, endings = "orc", "ORC", ("orc",)


def _is_glob(path: str) -> bool:
    """Return whether a path is a local glob; the name of an existing file is not."""
    return not is_uri(path) and has_magic(path) and not os.path.lexists(path)


def expand(path: str) -> list[str]:
    """Return the matches of a local glob, sorted. Return any other path or URI unchanged, in a list."""
    return sorted(glob(path, recursive=True)) if _is_glob(path) else [path]


def is_shown(name: str) -> bool:
    """Return whether Spark reads files of this name, rather than ignoring them."""
    return not name.startswith(("_", "."))
