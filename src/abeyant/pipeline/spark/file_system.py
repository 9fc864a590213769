"""Rename directories on the file system that Spark writes to: by the driver's JVM, on Spark Connect by Arrow.

Spark has no public call to rename. Arrow renames local directories and HDFS's; for other file systems, Arrow lacks the
session's settings.
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
    """The directories below one root; names are relative to the root."""

    def exists(self, name: str) -> bool:
        """Return whether a file or directory exists."""

    def remove(self, name: str) -> None:
        """Remove a directory with its contents, if it exists."""

    def make_directory(self, name: str) -> None:
        """Create a directory and its parents unless they exist."""

    def rename(self, name: str, to: str) -> bool:
        """Rename a directory to a free name; return False if the name is taken."""


def file_system(spark: SparkSession, root: str) -> FileSystem:
    """Return the file system of `root`, a URI (`file://` with an unquoted path).

    Raises `AbeyantError` on Spark Connect where Arrow cannot rename directories.
    """
    return _ByArrow(root) if is_connect(spark) else _ByHadoop(spark, root)


class _ByHadoop(HadoopFiles):
    """Spark's own file system, with the session's settings."""

    def rename(self, name: str, to: str) -> bool:  # type: ignore[override]
        if not renames(self.root):
            return self.rename_plainly(name, to)
        # Not FileSystem.rename: if the name is taken, it moves one directory into the other.
        try:
            super().rename(name, to, "NONE")
        except HadoopError:
            return False
        return True


class _ByArrow:
    """Arrow's file system: local (a batch of Spark Connect runs on the server, so on the server's disk), or HDFS."""

    def __init__(self, root: str) -> None:
        from pyarrow import fs

        self._kinds: Final = fs.FileType
        if root.startswith("file://"):
            self._files, self._root = fs.LocalFileSystem(), root.removeprefix("file://")
            return
        try:
            self._files, self._root = fs.FileSystem.from_uri(root)
        except (OSError, ValueError) as error:
            raise AbeyantError(_connect_error(root, str(error))) from error
        if self._files.type_name != "hdfs":
            raise AbeyantError(_connect_error(root, "Arrow cannot rename directories there"))

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


def _connect_error(root: str, why: str) -> str:
    return (
        f"{root}: on Spark Connect a batch can be written to a local path or HDFS only ({why}): write to one of these, "
        "or run the query in a session without Spark Connect"
    )
