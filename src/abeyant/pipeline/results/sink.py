"""What a sink is: where a command's result goes, made whole by `table` or batch by batch by `stream`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Folder", "Out", "ResultWriter", "Sink"]

Out = Path | str
"""A place: a path of this machine, or a URI."""


class ResultWriter(Protocol):
    """A result under way."""

    @property
    def folder(self) -> Path:
        """On this machine: small tables, the page and the marker are put here, and stay until the process ends."""

    @property
    def report(self) -> Out:
        """Where the page will be, once the result is there."""

    def write(self, name: str, table: DataFrame) -> None:
        """Let Spark write a table."""

    def fetch(self, *names: str) -> None:
        """Have tables that Spark wrote, which are small, in the folder as well."""

    def files(self, name: str) -> Iterator[Path]:
        """Yield the files of a table that Spark wrote, each to be read before the next."""

    def rows(self, name: str) -> int:
        """Return how many rows a table has that Spark wrote."""


class Folder(Protocol):
    """Where a stream's result is, and its small files; a `Store` is one."""

    def read(self, name: str) -> str | None:
        """Return a file's text; None where there is none."""

    def put(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""

    def names(self, name: str) -> list[str]:
        """Return what is in a folder of it."""

    def make_directory(self, name: str) -> None:
        """Make a folder of it, unless it is there."""


class Sink(Protocol):
    """Where a result goes. A kind of sink says which places are its own, and overrides what it does otherwise."""

    place: Out
    """An absolute path, or a URI."""
    manifests: ClassVar[bool]
    """Whether a stream's batches are there when a manifest says so, and not when they have been renamed."""

    def __init__(self, place: str) -> None:
        self.place = place

    @classmethod
    def takes(cls, place: str) -> bool:
        """Return whether a place, as the user names it, is of this kind."""

    def below(self, name: str) -> Self:
        """Return the sink of a place below this one."""
        return type(self)(f"{self.place}/{name}")

    def describe(self) -> Folder | None:
        """Return the folder of a stream where it can be read without Spark, else None.

        Raises `AbeyantError` where another process writes there.
        """

    def check(self, *, overwrite: bool) -> None:
        """Raise `AbeyantError` unless a result may be put there, as far as that is known without Spark."""

    def held(self, *, whole: bool) -> AbstractContextManager[None]:
        """Keep other processes out from before Spark starts, where that can be: of a whole result, or of a stream's."""
        return nullcontext()

    def table(self, spark: SparkSession, *, overwrite: bool) -> AbstractContextManager[ResultWriter]:
        """Give a result to be made; when the block ends well it is there, whole, else nothing is.

        The block has to write the marker into the folder. Raises `AbeyantError` where it may not be written.
        """

    def stream(self, spark: SparkSession) -> AbstractContextManager[Folder]:
        """Give the folder of a stream, held by this process during the block."""

    def outcomes(self, spark: SparkSession, first: int) -> Iterator[Path]:
        """Yield the files of a stream's outcomes from batch `first` on, each to be read before the next."""
