"""Read and write small files on any file system of Spark, in the driver's JVM with the session's settings.

An object store has no rename, but a small object appears whole or not at all, replaces another object atomically, and
can be created on condition that it does not exist. The package `results` relies on these guarantees.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal
from uuid import uuid4

from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.errors import in_one_line, is_missing_file, is_replaced_file
from abeyant.pipeline.spark.hadoop_files import HadoopError, HadoopFiles

__all__ = ["Store", "places_of", "renames", "scheme_of"]

_RENAME_DIRECTORIES: Final = ("file", "hdfs")
"""Schemes with an atomic rename of directories."""

_RENAME_FILES: Final = (*_RENAME_DIRECTORIES, "viewfs", "webhdfs", "abfs", "abfss")
"""Schemes where a file is visible while it is written, and renamed atomically."""

_REPLACE_FILES: Final = ("hdfs",)
"""Schemes where a rename replaces another file atomically. Elsewhere Hadoop first removes the other file."""

_REFUSE_NAMES: Final = ("abfs", "abfss")
"""Schemes where we rename by `FileSystem.rename`: it refuses existing names, and `FileContext` would leak a client."""

_NEXT: Final = ".next"
"""Suffix of a new file while the old one is removed. The name has no leading dot, which Spark would hide."""

_LOOKS: Final = 10


def scheme_of(place: str) -> str:
    """Return a URI's scheme; `file` for a path that has none."""
    scheme, separator, _ = place.partition("://")
    return scheme.lower() if separator else "file"


def renames(place: str) -> bool:
    """Return whether a directory at this URI is renamed atomically; on an object store it is not."""
    return scheme_of(place) in _RENAME_DIRECTORIES


def places_of(place: str) -> tuple[str, ...]:
    """Return the URIs at which `Store.put` may have put a small file, in the order in which to look for it."""
    # The third finds a file that was renamed between the first two reads.
    return (place, f"{place}{_NEXT}", place) if _stands_in(place) else (place,)


def _stands_in(place: str) -> bool:
    """Return whether a new file must first stand beside the old file, as a rename cannot replace it atomically."""
    return scheme_of(place) in _RENAME_FILES and scheme_of(place) not in _REPLACE_FILES


class Store:
    """The files below a root URI (`file://` with an unquoted path). Names are relative to the root.

    The constructor raises `AbeyantError` in a session of Spark Connect, which has no JVM here. It and all methods raise
    `AbeyantError` if the session lacks the file system, or the file system fails.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        if is_connect(spark):
            raise AbeyantError(
                f"{root}: cannot write small files there from Spark Connect, which has no JVM here: run this in a "
                "session without Spark Connect"
            )
        self.root: Final = root.rstrip("/")
        self._aside: Final = scheme_of(root) in _RENAME_FILES
        self._stands_in: Final = _stands_in(root)
        with self._failing_to("reach"):
            self._files: Final = HadoopFiles(spark, self.root)

    def uri(self, name: str) -> str:
        """Return the URI of a name."""
        return f"{self.root}/{name}"

    def exists(self, name: str) -> bool:
        """Return whether a file or directory exists."""
        with self._failing_to("read"):
            return self._files.exists(name)

    def read(self, name: str) -> str | None:
        """Return a small file's text; None if the file does not exist."""
        with self._failing_to("read"):
            for remaining in reversed(range(_LOOKS)):
                try:
                    return self._look(name)
                except HadoopError as error:
                    if not remaining or not is_replaced_file(error):
                        raise
        return None

    def put(self, name: str, text: str) -> None:
        """Write a small file, or replace it. Meanwhile, `read` returns either the old text or the new text."""
        with self._failing_to("write"):
            if not self._aside:
                self._files.write_text(name, text)
            elif not self._stands_in:
                self._rename(self._write_hidden(name, text), name, "OVERWRITE")
            else:
                self._put_beside(name, text)

    def renew(self, name: str, text: str) -> None:
        """Rewrite a small file to refresh its modification time. Meanwhile the file exists, but may be truncated."""
        if not self._stands_in:
            self.put(name, text)
            return
        with self._failing_to("write"):
            self._files.write_text(name, text)

    def put_new(self, name: str, text: str) -> bool:
        """Write a small file unless it exists; return whether it was written.

        On file systems with conditional writes (HDFS, S3, local disks), only one of several callers succeeds.
        """
        with self._failing_to("write"):
            if self._files.exists(name):
                return False
            hidden_name = self._write_hidden(name, text) if self._aside else None
            try:
                if hidden_name is not None:
                    self._rename(hidden_name, name, "NONE")
                else:
                    self._files.create_text(name, text)
            except (HadoopError, _NameTakenError):
                if hidden_name is not None:
                    self._files.remove(hidden_name)
                if self._files.exists(name):
                    return False
                raise
        return True

    def make_directory(self, name: str) -> None:
        """Create a directory and its parents unless they exist."""
        with self._failing_to("write"):
            self._files.make_directory(name)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with its contents, if it exists."""
        with self._failing_to("write"):
            self._files.remove(name)

    def names(self, name: str) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""
        with self._failing_to("read"):
            return self._files.names(name) if self._files.exists(name) else []

    def changed_ms(self, name: str) -> int | None:
        """Return a file's time of modification by the store's clock, in ms since 1970; None if it does not exist."""
        with self._failing_to("read"):
            try:
                return self._files.modified_ms(name)
            except HadoopError as error:
                if is_missing_file(error):
                    return None
                raise

    def written(self, name: str) -> dict[str, int]:
        """Return the sizes in bytes of the files of a table that Spark wrote into a directory, by name."""
        with self._failing_to("read"):
            return self._files.data_files(name)

    def fetch(self, name: str, to: Path) -> None:
        """Download a file."""
        with self._failing_to("read"):
            self._files.download(name, to)

    def send(self, file: Path, name: str) -> None:
        """Upload a file."""
        with self._failing_to("write"):
            self._files.upload(file, name)

    def _look(self, name: str) -> str | None:
        for place in places_of(self.uri(name)):
            text = self._text(place.removeprefix(f"{self.root}/"))
            if text is not None:
                return text
        return None

    def _text(self, name: str) -> str | None:
        return self._files.read_text(name) if self._files.exists(name) else None

    def _put_beside(self, name: str, text: str) -> None:
        """Write a file in several steps. After each step, `read` finds the whole old text or the whole new text."""
        exists, next_name = self._files.exists(name), f"{name}{_NEXT}"
        if self._files.exists(next_name):  # a run was killed between these steps
            if exists:
                self._files.remove(next_name)
            else:
                self._rename(next_name, name, "NONE")
                exists = True
        hidden_name = self._write_hidden(name, text)
        if exists:
            self._rename(hidden_name, next_name, "NONE")
            self._files.remove(name)
            hidden_name = next_name
        self._rename(hidden_name, name, "NONE")

    def _write_hidden(self, name: str, text: str) -> str:
        """Write a hidden file beside `name`, where readers might see a partial file; return the hidden file's name."""
        folder, slash, last = name.rpartition("/")
        hidden_name = f"{folder}{slash}.{last}.{uuid4().hex[:12]}"
        self._files.write_text(hidden_name, text)
        return hidden_name

    def _rename(self, name: str, to: str, option: Literal["OVERWRITE", "NONE"]) -> None:
        if scheme_of(self.root) not in _REFUSE_NAMES:
            self._files.rename(name, to, option)
        elif not self._files.rename_plainly(name, to):
            raise _NameTakenError(f"cannot rename {self.uri(name)} to {self.uri(to)}")

    @contextmanager
    def _failing_to(self, action: str) -> Iterator[None]:
        try:
            yield
        except HadoopError as error:
            raise AbeyantError(f"cannot {action} {self.root}: {in_one_line(error)}") from error


class _NameTakenError(AbeyantError):
    """Raised if a file was not renamed: the new name is taken, or the file no longer exists."""
