"""Make Spark stream the files of a local directory by modification time, then by name.

Spark sorts files by modification time in milliseconds, and keeps the order of the listing within a millisecond. HDFS
and object stores list files by name, but a local file system lists them in no order. Hadoop's `Globber` sorts the
matches of a pattern by name. So we give Spark a pattern instead of the directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["Pattern", "first_file", "list_at_once", "pattern_of"]

_SHOWN: Final = "/[^_.]*"
"""A glob that matches the names in a directory, except names that Spark ignores."""

_LISTING_JOB: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"


class Pattern(NamedTuple):
    """A glob that Spark reads instead of a directory, and the reader's options for it."""

    text: str
    """The text to append to the directory's path."""
    options: dict[str, str]
    slashes: int | None
    """The number of slashes in the path of a file that is directly in the directory; None to accept any depth."""

    def only(self, files: DataFrame) -> DataFrame:
        """Drop files in subfolders, which the glob also matches: Spark reads no subfolders of a plain directory."""
        return files if self.slashes is None else files.where(_has_at_most(F.col("_metadata.file_path"), self.slashes))


def pattern_of(directory: Path) -> Pattern | None:
    """Return the pattern for a local directory; None if Spark should list the directory itself.

    Spark should do so if its metadata lists the files (`_spark_metadata`), or if the directory has folders that do not
    form a partitioned table of uniform depth. O(entries).
    """
    directory = directory.resolve()
    levels = _levels(directory)
    if levels is None:
        return None
    if levels:
        return Pattern(_SHOWN * (levels + 1), {"basePath": f"file://{directory}"}, None)
    return Pattern(_SHOWN, {}, len(directory.parts) - 1)


def _levels(directory: Path) -> int | None:
    """Return the number of levels of folders `column=value`; None if they are not uniform, or Spark should list."""
    entries = list(directory.iterdir())
    folders = [entry for entry in entries if "=" in entry.name and not entry.name.startswith(".") and entry.is_dir()]
    if any(entry.name == "_spark_metadata" for entry in entries):
        return None
    if not folders:
        return 0
    if len(folders) < sum(not entry.name.startswith((".", "_")) for entry in entries):
        return None
    depths = {None if entry.name.startswith("_") else _levels(entry) for entry in folders}
    level = depths.pop()
    return None if depths or level is None else level + 1


def first_file(directory: Path) -> Path | None:
    """Return the file directly in a directory that a stream reads first; None if it has no file. O(entries)."""
    files = [file for file in directory.iterdir() if not file.name.startswith(("_", ".")) and file.is_file()]
    return min(files, key=lambda file: (file.stat().st_mtime_ns // 1_000_000, file.name), default=None)


def _has_at_most(uri: Column, slashes: int) -> Column:
    # Spark writes file:/a/b for the matches of a pattern, file:///a/b otherwise.
    path = F.ltrim(F.substr(uri, F.lit(len("file:") + 1)), F.lit("/"))
    return F.substring_index(path, "/", slashes + 1) == path


def list_at_once(spark: SparkSession) -> None:
    """Make the driver list a pattern's matches. By default, Spark lists more than 32 in a job, with a task for each."""
    spark.conf.set(_LISTING_JOB, str((1 << 31) - 1))
