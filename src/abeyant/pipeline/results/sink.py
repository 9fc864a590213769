"""The protocol of sinks, to which a command writes its result: as a whole (`table`) or batch by batch (`stream`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Folder", "Out", "ResultWriter", "Sink"]

Out = Path | str
"""The place of a result: a path on this machine, or a URI."""


class ResultWriter(Protocol):
    """Writer of a result: tables, a page and a marker. The result appears when it is complete."""

    @property
    def folder(self) -> Path:
        """A local folder for small tables, the page and the marker. It stays until the process ends."""

    @property
    def report(self) -> Out:
        """The place of the page once the result is complete."""

    def write(self, name: str, table: DataFrame) -> None:
        """Write a table with Spark."""

    def fetch(self, *names: str) -> None:
        """Copy small tables that Spark wrote into `folder`."""

    def files(self, name: str) -> Iterator[Path]:
        """Yield the files of a table that Spark wrote. Read each file before the next is requested."""

    def rows(self, name: str) -> int:
        """Return the number of rows of a table that Spark wrote."""


class Folder(Protocol):
    """The folder of a stream's result, for reading and writing small files. `Store` also implements it."""

    def read(self, name: str) -> str | None:
        """Return a file's text; None if there is no such file."""

    def put(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""

    def names(self, name: str) -> list[str]:
        """Return the names in a subfolder."""

    def make_directory(self, name: str) -> None:
        """Create a subfolder unless it exists."""


class Sink(Protocol):
    """The destination of a result. `takes` says which paths or URIs a kind of sink is for."""

    place: Out
    """An absolute path, or a URI."""
    manifests: ClassVar[bool]
    """Whether a manifest commits each batch of a stream; if not, a rename does."""

    def __init__(self, place: str) -> None:
        self.place = place

    @classmethod
    def takes(cls, place: str) -> bool:
        """Return whether this kind of sink is for `place`, as the user wrote it."""

    def below(self, name: str) -> Self:
        """Return the sink of a place below this one."""
        return type(self)(f"{self.place}/{name}")

    def describe(self) -> Folder | None:
        """Return the folder of a stream if it can be read without Spark, else None.

        Raises `AbeyantError` if another process writes there.
        """

    def check(self, *, overwrite: bool) -> None:
        """Raise `AbeyantError` if it is known without Spark that a result cannot be put there."""

    def held(self, *, whole: bool) -> AbstractContextManager[None]:
        """Return a context manager that leases a whole result (`whole`) or a stream's folder. It may do nothing."""
        return nullcontext()

    def table(self, spark: SparkSession, *, overwrite: bool) -> AbstractContextManager[ResultWriter]:
        """Return a context manager that yields a writer. When the block succeeds the result appears, else nothing does.

        The block must write the marker into the folder. Raises `AbeyantError` if the result cannot be written.
        """

    def stream(self, spark: SparkSession) -> AbstractContextManager[Folder]:
        """Return a context manager that yields the folder of a stream and holds its lease during the block."""

    def outcomes(self, spark: SparkSession, first: int) -> Iterator[Path]:
        """Yield the files of a stream's outcomes from batch `first` on. Read each file before the next is requested."""
