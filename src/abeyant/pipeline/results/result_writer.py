"""A result under way, wherever it goes: Spark writes the large tables, this process the small ones and the page.

On this machine it is written beside its place and renamed (`directory`). Elsewhere, by URI, there may be no rename: the
tables go below `out/run-ID`, a name that is new for each run; then the marker, which names that run and all its files,
appears at once, or over an earlier one. What no marker names is of a run that was killed, and the next one removes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from abeyant.errors import AbeyantError
from abeyant.former import check_former
from abeyant.pipeline.results.directory import (
    MARKER,
    Out,
    check_written,
    new_result,
    read_marker,
)
from abeyant.pipeline.results.leases.store import StoreLease
from abeyant.pipeline.results.manifests import LEASES, manifest, read_manifest
from abeyant.pipeline.spark.location import literal, location
from abeyant.pipeline.spark.store import Store

__all__ = ["ResultWriter", "open_result"]

_RUN: Final = "run"


class ResultWriter(Protocol):
    """A result under way."""

    @property
    def folder(self) -> Path:
        """On this machine: small tables, the page and the marker are put here, and stay until the process ends."""

    @property
    def page(self) -> Out:
        """The directory in which the page will be, once the result is there."""

    def write(self, name: str, table: DataFrame) -> None:
        """Let Spark write a table."""

    def put(self, name: str, table: pa.Table) -> None:
        """Write a small table from this process: it is in the folder, and goes wherever the result goes."""

    def uri(self, name: str) -> str:
        """Return where Spark finds a table that it wrote."""

    def fetch(self, *names: str) -> None:
        """Have tables that Spark wrote, which are small, in the folder as well."""

    def files(self, name: str) -> Iterator[Path]:
        """Yield the files of a table that Spark wrote, each to be read before the next."""

    def rows(self, name: str) -> int:
        """Return how many rows a table has that Spark wrote."""


@contextmanager
def open_result(spark: SparkSession, out: Out, *, overwrite: bool) -> Iterator[ResultWriter]:
    """Give a result to be made; when the block ends well it is at `out`, whole, else nothing is.

    The block has to write the marker into the folder. Raises `AbeyantError` when `out` may not be written.
    """
    if isinstance(out, Path):
        with new_result(out, overwrite=overwrite) as aside:
            local = _Local(aside, out)
            yield local
        local.folder = out
        return
    store = Store(spark, out)
    with StoreLease(store, _RUN) as lease:
        _check_stored(store, overwrite=overwrite)
        for name in lease.expired:
            lease.remove_expired(name)  # whoever was taken for dead, and is not, learns of it by this
        stored = _Store(spark, store, lease.name)
        try:
            yield stored
            stored.send()
            lease.check()
            # Asked again: much time has passed, and nothing that appeared meanwhile may be lost.
            _check_stored(store, overwrite=overwrite)
        except BaseException:
            store.remove(lease.name)
            raise
        # Where this fails nobody knows whether the marker is there: what it names stays, the next run looks.
        stored.mark()
        lease.check()
        # Not earlier: until our marker is there, that of a run taken for dead may still come, and name its files.
        _remove_runs(store, keep=lease.name)


class _Local:
    """On this machine, or where it and Spark's machines see the same directory."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = folder
        self.page: Final = out

    def write(self, name: str, table: DataFrame) -> None:
        # Not a URI with %20 and the like: Hadoop takes the path as it is.
        table.write.parquet(f"file://{self.folder / name}")
        check_written(self.folder / name)

    def put(self, name: str, table: pa.Table) -> None:
        _put(self.folder / name, table)

    def uri(self, name: str) -> str:
        return location(str(self.folder / name))

    def fetch(self, *names: str) -> None:
        """Nothing: they are there."""

    def files(self, name: str) -> Iterator[Path]:
        yield from sorted((self.folder / name).glob("*.parquet"))

    def rows(self, name: str) -> int:
        return sum(pq.read_metadata(part).num_rows for part in self.files(name))


# Each goes when the process ends, not before: what a command says at its end is read there.
_folders: Final[list[tempfile.TemporaryDirectory[str]]] = []


class _Store:
    """On a store that Spark reaches."""

    def __init__(self, spark: SparkSession, store: Store, run: str) -> None:
        _folders.append(tempfile.TemporaryDirectory(prefix="abeyant-result-"))
        self.folder: Final = Path(_folders[-1].name)
        self.page: Final = store.uri(run)
        self._spark: Final = spark
        self._store: Final = store
        self._run: Final = run
        self._tables: Final[dict[str, dict[str, int]]] = {}
        self._fetched: Final[set[Path]] = set()

    def write(self, name: str, table: DataFrame) -> None:
        table.write.parquet(self._store.uri(f"{self._run}/{name}"))
        self._tables[name] = self._store.written(f"{self._run}/{name}")

    def put(self, name: str, table: pa.Table) -> None:
        _put(self.folder / name, table)

    def uri(self, name: str) -> str:
        return literal(self._store.uri(f"{self._run}/{name}"))

    def fetch(self, *names: str) -> None:
        for name in names:
            (self.folder / name).mkdir()
            for file in self._tables[name]:
                self._fetched.add(self._copy(file, self.folder / name))

    def files(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="abeyant-table-") as passing:
            for file in self._tables[name]:
                copied = self._copy(file, Path(passing))
                yield copied
                copied.unlink()

    def rows(self, name: str) -> int:
        return self._spark.read.parquet(*(literal(self._store.uri(file)) for file in self._tables[name])).count()

    def send(self) -> None:
        """Copy what this process has made, but for the marker."""
        for file in sorted(self.folder.rglob("*")):
            if file.is_file() and file not in self._fetched and file != self.folder / MARKER:
                below = file.relative_to(self.folder).as_posix()
                self._store.send(file, f"{self._run}/{below}")
                table, slash, _ = below.partition("/")
                if slash:
                    self._tables.setdefault(table, {})[f"{self._run}/{below}"] = file.stat().st_size

    def mark(self) -> None:
        """Write the marker: from now on the result is there."""
        told = {name: value for name, value in read_marker(self.folder).items() if name != "tool"}
        self._store.put(MARKER, manifest({**told, "run": self._run}, self._tables))

    def _copy(self, file: str, to: Path) -> Path:
        copied = to / file.rpartition("/")[2]
        self._store.fetch(file, copied)
        copied.with_name(f".{copied.name}.crc").unlink(missing_ok=True)
        return copied


def _put(directory: Path, table: pa.Table) -> None:
    directory.mkdir()
    pq.write_table(table, directory / "part-0.zstd.parquet", compression="zstd")


def _check_stored(store: Store, *, overwrite: bool) -> None:
    """As `directory.check_target`: only a result of ours is ever replaced, and only when told to."""
    there = store.names("")
    check_former(store.root, there, MARKER, "name another place, or remove it and run this again")
    if read_manifest(store.read(MARKER), store.uri(MARKER)) is not None:
        if not overwrite:
            raise AbeyantError(f"{store.root} already holds a result; use --overwrite to replace it")
        return
    others = [name for name in there if name != LEASES and not name.startswith((f"{_RUN}-", "."))]
    if others:
        raise AbeyantError(f"{store.root} exists and is not a result of abeyant: it is left alone")


def _remove_runs(store: Store, *, keep: str | None) -> None:
    for name in store.names(""):
        if name.startswith(f"{_RUN}-") and name != keep:
            store.remove(name)
