"""Renaming on the file system that Spark writes to: through the driver's JVM, on Spark Connect through Arrow.

Spark has no public call for it. Arrow knows local paths and HDFS; it has none of the session's settings for others.
"""

from __future__ import annotations

from typing import Final, Protocol

from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.hadoop_files import HadoopError, HadoopFiles
from abeyant.pipeline.spark.store import renames

__all__ = ["FileSystem", "file_system"]


class FileSystem(Protocol):
    """What is below one root; names are relative to it."""

    def exists(self, name: str) -> bool:
        """Return whether there is such a file or directory."""

    def remove(self, name: str) -> None:
        """Remove a directory with all in it, if it is there."""

    def make_directory(self, name: str) -> None:
        """Make a directory, and those above it, unless they are there."""

    def rename(self, name: str, to: str) -> bool:
        """Rename a directory to a name that is free; return whether that went well: not where another has the name."""


def file_system(spark: SparkSession, root: str) -> FileSystem:
    """Return what is below `root`, a URI (`file://` and a path as it is, not quoted).

    Raises `AbeyantError` on Spark Connect where Arrow has no directories that can be renamed.
    """
    return _ByArrow(root) if is_connect(spark) else _ByHadoop(spark, root)


class _ByHadoop(HadoopFiles):
    """Spark's own view, with the session's settings."""

    def rename(self, name: str, to: str) -> bool:  # type: ignore[override]
        if not renames(self.root):
            return self.rename_plainly(name, to)
        # Not FileSystem.rename: where the name is taken, that puts one directory into the other.
        try:
            super().rename(name, to, "NONE")
        except HadoopError:
            return False
        return True


class _ByArrow:
    """Of the machine that this runs on, which in a batch of Spark Connect is the server's; or HDFS."""

    def __init__(self, root: str) -> None:
        from pyarrow import fs

        self._kinds: Final = fs.FileType
        if root.startswith("file://"):
            self._files, self._root = fs.LocalFileSystem(), root.removeprefix("file://")
            return
        try:
            self._files, self._root = fs.FileSystem.from_uri(root)
        except (OSError, ValueError) as error:
            raise AbeyantError(_not_here(root, str(error))) from error
        if self._files.type_name != "hdfs":
            raise AbeyantError(_not_here(root, "it renames no directories"))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def exists(self, name: str) -> bool:
        return bool(self._files.get_file_info(self._path(name)).type != self._kinds.NotFound)

    def remove(self, name: str) -> None:
        if self.exists(name):
            self._files.delete_dir(self._path(name))

    def make_directory(self, name: str) -> None:
        self._files.create_dir(self._path(name), recursive=True)

    def rename(self, name: str, to: str) -> bool:
        try:
            self._files.move(self._path(name), self._path(to))
        except OSError:
            return False
        return True


def _not_here(root: str, why: str) -> str:
    return (
        f"{root}: on Spark Connect a batch can be put in place on a local path or HDFS only ({why}): name such a "
        "place, or run the query in a session that is not Connect's"
    )
