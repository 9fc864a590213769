"""Write results to a store that Spark reaches, by URI, where directories may not be renamed.

Each run writes its tables below `out/run-ID`, with a new ID. Then it writes the marker, which names the run and all its
files, in one step; this replaces an earlier marker. Runs that the marker does not name were killed or replaced. A run
removes the files of such runs once its own marker is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abeyant.errors import AbeyantError
from abeyant.former import check_former
from abeyant.pipeline.results.directory import MARKER, REPORT, read_marker
from abeyant.pipeline.results.manifests import (
    BATCHES,
    LEASES,
    batch_manifest,
    files_of,
    manifest,
    read_manifest,
)
from abeyant.pipeline.results.sink import Folder, ResultWriter, Sink
from abeyant.pipeline.spark.location import is_uri, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from abeyant.pipeline.spark.store import Store

__all__ = ["StoreSink"]

_RUN: Final = "run"
_COMMAND: Final = "command"


class StoreSink(Sink):
    """Sink for a URI on a store. Only Spark reaches the store, so PySpark is imported late."""

    manifests = True

    @classmethod
    def takes(cls, place: str) -> bool:
        """Return whether `place` is a URI."""
        return is_uri(place)

    @contextmanager
    def table(self, spark: SparkSession, *, overwrite: bool) -> Iterator[ResultWriter]:
        """Yield a writer of a result. It writes into a new folder, which the marker, written at the end, names."""
        from abeyant.pipeline.results.leases.store import StoreLease
        from abeyant.pipeline.spark.store import Store

        store = Store(spark, str(self.place))
        with StoreLease(store, _RUN) as lease:
            _check_stored(store, overwrite=overwrite)
            for name in lease.expired:
                lease.remove_expired(name)  # a run that was wrongly taken for dead finds its lease gone, and fails
            result = _Result(spark, store, lease.name)
            try:
                yield result
                result.send()
                lease.check()
                # Check again: what appeared since the first check must not be lost.
                _check_stored(store, overwrite=overwrite)
            except BaseException:
                store.remove(lease.name)
                raise
            # If this fails the marker may or may not be there: keep the files it names, and let the next run decide.
            result.mark()
            lease.check()
            # Not earlier: until our marker is there, a run taken for dead may still write one that names its files.
            _remove_runs(store, keep=lease.name)

    @contextmanager
    def stream(self, spark: SparkSession) -> Iterator[Folder]:
        """Yield the folder of a stream, and hold its lease: a second query would write into the same checkpoint."""
        from abeyant.pipeline.results.leases.queries import acquire_store, release_store
        from abeyant.pipeline.spark.store import Store

        store = Store(spark, str(self.place))
        acquire_store(store, _COMMAND)
        try:
            yield store
        finally:
            release_store(store, _COMMAND)

    def outcomes(self, spark: SparkSession, first: int) -> Iterator[Path]:
        """Yield local copies of the files of a stream's outcomes from batch `first` on."""
        from abeyant.pipeline.spark.store import Store

        store = Store(spark, str(self.place))
        names = (name.removesuffix(".json") for name in store.names(BATCHES))
        with tempfile.TemporaryDirectory(prefix="abeyant-outcomes-") as temporary:
            for batch in sorted(int(name) for name in names if name.isdecimal() and int(name) >= first):
                contents = read_manifest(store.read(batch_manifest(batch)), store.uri(batch_manifest(batch)))
                for file in files_of(contents, "outcomes") if contents is not None else []:
                    local_file = Path(temporary) / file.rpartition("/")[2]
                    store.fetch(file, local_file)
                    yield local_file
                    local_file.unlink()


# Removed when the process ends, because a command reads its summary from there at its end.
_folders: Final[list[tempfile.TemporaryDirectory[str]]] = []


class _Result:
    def __init__(self, spark: SparkSession, store: Store, run: str) -> None:
        _folders.append(tempfile.TemporaryDirectory(prefix="abeyant-result-"))
        self.folder: Final = Path(_folders[-1].name)
        self.report: Final = store.uri(f"{run}/{REPORT}")
        self._spark: Final = spark
        self._store: Final = store
        self._run: Final = run
        self._tables: Final[dict[str, dict[str, int]]] = {}
        self._fetched: Final[set[Path]] = set()

    def write(self, name: str, table: DataFrame) -> None:
        table.write.parquet(self._store.uri(f"{self._run}/{name}"))
        self._tables[name] = self._store.written(f"{self._run}/{name}")

    def fetch(self, *names: str) -> None:
        for name in names:
            (self.folder / name).mkdir()
            for file in self._tables[name]:
                self._fetched.add(self._copy(file, self.folder / name))

    def files(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="abeyant-table-") as temporary:
            for file in self._tables[name]:
                local_file = self._copy(file, Path(temporary))
                yield local_file
                local_file.unlink()

    def rows(self, name: str) -> int:
        return self._spark.read.parquet(*(literal(self._store.uri(file)) for file in self._tables[name])).count()

    def send(self) -> None:
        """Upload the files that this process made, except the marker."""
        for file in sorted(self.folder.rglob("*")):
            if file.is_file() and file not in self._fetched and file != self.folder / MARKER:
                relative_path = file.relative_to(self.folder).as_posix()
                self._store.send(file, f"{self._run}/{relative_path}")
                table, slash, _ = relative_path.partition("/")
                if slash:
                    self._tables.setdefault(table, {})[f"{self._run}/{relative_path}"] = file.stat().st_size

    def mark(self) -> None:
        """Write the marker, which makes the result appear."""
        entries = {name: value for name, value in read_marker(self.folder).items() if name != "tool"}
        self._store.put(MARKER, manifest({**entries, "run": self._run}, self._tables))

    def _copy(self, file: str, folder: Path) -> Path:
        local_file = folder / file.rpartition("/")[2]
        self._store.fetch(file, local_file)
        local_file.with_name(f".{local_file.name}.crc").unlink(missing_ok=True)
        return local_file


def _check_stored(store: Store, *, overwrite: bool) -> None:
    """Raise `AbeyantError` unless a result may be put on the store, by the rules of `directory.check_target`."""
    names = store.names("")
    check_former(store.root, names, MARKER, "name another place, or remove it and run this again")
    if read_manifest(store.read(MARKER), store.uri(MARKER)) is not None:
        if not overwrite:
            raise AbeyantError(f"{store.root} already holds a result; use --overwrite to replace it")
        return
    others = [name for name in names if name != LEASES and not name.startswith((f"{_RUN}-", "."))]
    if others:
        raise AbeyantError(f"{store.root} exists and is not a result of abeyant: it is left alone; name another place")


def _remove_runs(store: Store, *, keep: str | None) -> None:
    for name in store.names(""):
        if name.startswith(f"{_RUN}-") and name != keep:
            store.remove(name)
