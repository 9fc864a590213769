"""Renaming on the file system that Spark writes to: through the driver's JVM, on Spark Connect through Arrow.

Spark has no public call for it. Arrow knows local paths and HDFS; it has none of the session's settings for others.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.store import rename_path, renames

__all__ = ["FileSystem", "file_system"]


class FileSystem(Protocol):
    """What is below one root; names are relative to it."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file or directory."""

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


class _ByHadoop:
    """Spark's own view, with the session's settings."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark._jvm
        self._root: Final = root
        self._spark: Final = spark
        self._hadoop: Final = jvm.org.apache.hadoop.fs
        session: Any = spark._jsparkSession
        self._settings: Any = session.sessionState().newHadoopConf()
        self._files: Any = self._path("").getFileSystem(self._settings)

    def _path(self, name: str) -> Any:
        return self._hadoop.Path(f"{self._root}/{name}")

    def exists(self, name: str) -> bool:
        return bool(self._files.exists(self._path(name)))

    def remove(self, name: str) -> None:
        self._files.delete(self._path(name), True)

    def make_directory(self, name: str) -> None:
        self._files.mkdirs(self._path(name))

    def rename(self, name: str, to: str) -> bool:
        source, target = self._path(name), self._path(to)
        if not renames(self._root):
            return bool(self._files.rename(source, target))
        # Not FileSystem.rename: where the name is taken, that puts one directory into the other.
        try:
            rename_path(self._spark, self._settings, source, target, "NONE")
        except Py4JJavaError:
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
