"""Call Hadoop's file systems in the driver's JVM, and read Hadoop's settings of a session.

PySpark has no public calls for these. All uses of `_jvm`, `_gateway` and `_jsparkSession` for files are here; a session
of Spark Connect has no such attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from abeyant.pipeline.spark.connect import is_connect

__all__ = ["HadoopError", "HadoopFiles", "hadoop_settings", "hadoop_user"]

HadoopError = Py4JJavaError
"""Raised when Hadoop fails; the module `errors` interprets its text."""


class HadoopFiles:
    """The file system of a root URI (`file://` with an unquoted path); names are relative to the root.

    Every method raises `HadoopError` when the file system fails.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root: Final = root
        gateway: Any = spark.sparkContext._gateway
        self._gateway: Final = gateway
        self._hadoop: Final = gateway.jvm.org.apache.hadoop.fs
        self._settings: Final = _settings(spark)
        self._files: Final[Any] = self.path("").getFileSystem(self._settings)

    def path(self, name: str) -> Any:
        """Return Hadoop's `Path` of a name; the root for ''."""
        return self._hadoop.Path(f"{self.root}/{name}" if name else self.root)

    def exists(self, name: str) -> bool:
        """Return whether a file or directory exists."""
        return bool(self._files.exists(self.path(name)))

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with its contents, if it exists."""
        self._files.delete(self.path(name), True)

    def make_directory(self, name: str) -> None:
        """Create a directory and its parents unless they exist."""
        self._files.mkdirs(self.path(name))

    def rename_plainly(self, name: str, to: str) -> bool:
        """Rename by `FileSystem.rename`, which treats an existing target differently in each file system."""
        return bool(self._files.rename(self.path(name), self.path(to)))

    def rename(self, name: str, to: str, how: Literal["OVERWRITE", "NONE"]) -> None:
        """Rename atomically by `FileContext`: over an existing file (`OVERWRITE`), or to a free name only (`NONE`)."""
        source = self.path(name)
        options = self._gateway.new_array(getattr(self._hadoop, "Options$Rename"), 1)
        options[0] = getattr(getattr(self._hadoop, "Options$Rename"), how)
        context = self._hadoop.FileContext.getFileContext(source.toUri(), self._settings)
        context.rename(source, self.path(to), options)

    def read_text(self, name: str) -> str:
        """Return a small file's text."""
        stream = self._files.open(self.path(name))
        try:
            return bytes(stream.readAllBytes()).decode("utf-8", errors="replace")
        finally:
            stream.close()

    def write_text(self, name: str, text: str) -> None:
        """Write a small file, or replace it if it exists."""
        _write(self._files.create(self.path(name), True), text)

    def create_text(self, name: str, text: str) -> None:
        """Write a small file unless it exists, on file systems with conditional writes (S3)."""
        builder = self._files.createFile(self.path(name)).overwrite(False)
        _write(builder.opt("fs.option.create.conditional.overwrite", "true").build(), text)

    def names(self, name: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(status.getPath().getName() for status in self._files.listStatus(self.path(name)))

    def modified_ms(self, name: str) -> int:
        """Return a file's time of modification by the file system's clock, in ms since 1970."""
        return int(self._files.getFileStatus(self.path(name)).getModificationTime())

    def data_files(self, name: str) -> dict[str, int]:
        """Return the sizes in bytes of the files below a directory, by name; skip hidden files (`_` or `.` first)."""
        found = {}
        folder = self.path(name)
        listing = self._files.listFiles(folder, True)
        while listing.hasNext():
            status = listing.next()
            path = status.getPath()
            parts: list[str] = []
            for _ in range(path.depth() - folder.depth()):
                parts.insert(0, path.getName())
                path = path.getParent()
            if not any(part.startswith(("_", ".")) for part in parts):
                found["/".join([name, *parts])] = int(status.getLen())
        return dict(sorted(found.items()))

    def download(self, name: str, to: Path) -> None:
        """Copy a file to this machine."""
        self._files.copyToLocalFile(False, self.path(name), self._local(to), True)

    def upload(self, file: Path, name: str) -> None:
        """Copy a file from this machine; replace a file of this name."""
        self._files.copyFromLocalFile(False, True, self._local(file), self.path(name))

    def _local(self, file: Path) -> Any:
        return self._hadoop.Path(f"file://{file.absolute()}")


def hadoop_settings(spark: SparkSession) -> Callable[[str], str]:
    """Return a function from the name of a Hadoop setting to its value in this session, '' if it is not set.

    On Spark Connect only `spark.hadoop.*` is known, not the server's `core-site.xml`.
    """
    if is_connect(spark):
        return lambda name: str(spark.conf.get(f"spark.hadoop.{name}", None) or "").strip()
    settings = _settings(spark)
    return lambda name: str(settings.get(name) or "").strip()


def hadoop_user(spark: SparkSession) -> str:
    """Return the short name of Hadoop's current user. Not on Spark Connect."""
    jvm: Any = spark._jvm
    return str(jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName())


def _settings(spark: SparkSession) -> Any:
    session: Any = spark._jsparkSession
    return session.sessionState().newHadoopConf()


def _write(stream: Any, text: str) -> None:
    # Not closed when a write fails: on an object store, closing makes the object appear.
    stream.write(bytearray(text.encode("utf-8")))
    stream.close()
