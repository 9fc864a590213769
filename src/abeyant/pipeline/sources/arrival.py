"""In which order a stream takes the files of a local directory: by the time of their last change, then by name.

Spark sorts them by that time, in milliseconds. Those of one millisecond stay as the file system lists them. HDFS and
object stores list by name, a local file system in no order; but what a pattern matches is sorted by name (Hadoop's
`Globber`). So Spark is given a pattern in place of the directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["Pattern", "first_file", "list_at_once", "pattern_of"]

_SHOWN: Final = "/[^_.]*"
"""What Spark looks at in a directory."""

_LISTING_JOB: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"


class Pattern(NamedTuple):
    """What Spark is to read in place of a directory."""

    text: str
    """To be put behind the directory."""
    options: dict[str, str]
    slashes: int | None
    """How many the path of a file has between its names; None for any number."""

    def only(self, files: DataFrame) -> DataFrame:
        """Leave out the files in folders of the directory, which Spark does not read where no pattern is."""
        return files if self.slashes is None else files.where(_has_at_most(F.col("_metadata.file_path"), self.slashes))


def pattern_of(directory: Path) -> Pattern | None:
    """Return the pattern for a local directory. None where Spark is to list the directory itself.

    That is so where Spark's own notes say what is in it (`_spark_metadata`), and where its folders are not those of a
    partitioned table of one depth. O(what is in it).
    """
    directory = directory.resolve()
    levels = _levels(directory)
    if levels is None:
        return None
    if levels:
        return Pattern(_SHOWN * (levels + 1), {"basePath": f"file://{directory}"}, None)
    return Pattern(_SHOWN, {}, len(directory.parts) - 1)


def _levels(directory: Path) -> int | None:
    """Return how many levels of folders `column=value` there are; None where that cannot be said."""
    found = list(directory.iterdir())
    folders = [each for each in found if "=" in each.name and not each.name.startswith(".") and each.is_dir()]
    if any(each.name == "_spark_metadata" for each in found):
        return None
    if not folders:
        return 0
    if len(folders) < sum(not each.name.startswith((".", "_")) for each in found):
        return None
    below = {None if each.name.startswith("_") else _levels(each) for each in folders}
    level = below.pop()
    return None if below or level is None else level + 1


def first_file(directory: Path) -> Path | None:
    """Return the file that a stream takes first of a directory's own; None where there is none. O(what is in it)."""
    files = [file for file in directory.iterdir() if not file.name.startswith(("_", ".")) and file.is_file()]
    return min(files, key=lambda file: (file.stat().st_mtime_ns // 1_000_000, file.name), default=None)


def _has_at_most(uri: Column, slashes: int) -> Column:
    # Spark writes file:/a/b where a pattern was, file:///a/b elsewhere.
    path = F.ltrim(F.substr(uri, F.lit(len("file:") + 1)), F.lit("/"))
    return F.substring_index(path, "/", slashes + 1) == path


def list_at_once(spark: SparkSession) -> None:
    """Let the driver list what a pattern matches: for more than 32 names Spark would run a job, with a task each."""
    spark.conf.set(_LISTING_JOB, str((1 << 31) - 1))
