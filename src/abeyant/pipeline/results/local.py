"""Write results to a directory that this machine shares with Spark's: write beside it, then rename (`directory`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abeyant.errors import AbeyantError
from abeyant.pipeline.results.directory import REPORT, check_target, new_result
from abeyant.pipeline.results.leases.local import check_free, leased, result_lease, stream_lease
from abeyant.pipeline.results.sink import Folder, ResultWriter, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LocalFolder", "LocalSink", "check_shared"]


class LocalSink(Sink):
    """Sink for a local directory."""

    place: Path
    manifests = False

    def __init__(self, place: str) -> None:
        self.place = Path(os.path.abspath(place))

    @classmethod
    def takes(cls, place: str) -> bool:
        """Return True: a place that no other sink takes is a local path."""
        return True

    def describe(self) -> Folder:
        """Return the folder of a stream; raise `AbeyantError` if another process writes there."""
        check_free(stream_lease(self.place), self.place)
        return LocalFolder(self.place)

    def check(self, *, overwrite: bool) -> None:
        """Raise `AbeyantError` unless a result may be put there."""
        check_target(self.place, overwrite=overwrite)

    def held(self, *, whole: bool) -> AbstractContextManager[None]:
        """Return a context manager that holds the lease on a whole result (`whole`) or on a stream's directory."""
        return leased((result_lease if whole else stream_lease)(self.place), self.place)

    @contextmanager
    def table(self, spark: SparkSession | None, *, overwrite: bool) -> Iterator[ResultWriter]:
        """Yield a writer of a result. It writes into a hidden directory, which is renamed to `place` at the end."""
        with new_result(self.place, overwrite=overwrite) as staging:
            result = _Result(staging, self.place)
            yield result
        result.folder = self.place

    @contextmanager
    def stream(self, spark: SparkSession) -> Iterator[Folder]:
        """Yield the folder of a stream; `held` has leased it."""
        yield LocalFolder(self.place)

    def outcomes(self, spark: SparkSession, first: int) -> Iterator[Path]:
        """Yield the files of a stream's outcomes from batch `first` on."""
        batches = ((int(folder.name.partition("=")[2]), folder) for folder in (self.place / "outcomes").glob("batch=*"))
        return (file for batch, folder in sorted(batches) if batch >= first for file in folder.glob("*.parquet"))


class LocalFolder:
    """Folder of a stream's small files, in a local directory."""

    def __init__(self, root: Path) -> None:
        self._root: Final = root

    def read(self, name: str) -> str | None:
        """Return a file's text; None if there is no such file."""
        file = self._root / name
        try:
            return file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise AbeyantError(f"{file.parent} is not a directory") from error
        except (OSError, ValueError) as error:
            raise AbeyantError(f"cannot read {file}: {error}") from error

    def put(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""
        file = self._root / name
        temporary = file.with_name(f".{file.name}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, file)
        except OSError as error:
            raise AbeyantError(f"cannot write {file}: {error.strerror or error}") from error

    def names(self, name: str) -> list[str]:
        """Return the names in a subfolder; for a file, its own name."""
        folder = self._root / name
        if folder.is_dir():
            return sorted(file.name for file in folder.iterdir())
        return [folder.name] if folder.exists() else []

    def make_directory(self, name: str) -> None:
        """Create a subfolder unless it exists."""
        (self._root / name).mkdir(parents=True, exist_ok=True)


def check_shared(directory: Path) -> None:
    """Raise `AbeyantError` unless this machine sees the Parquet files that Spark wrote into `directory`."""
    if not any(directory.glob("*.parquet")):
        raise AbeyantError(
            f"Spark wrote {directory} on another machine: name a directory that Spark's machines share with this one"
        )


class _Result:
    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = folder
        self.report: Final = out / REPORT

    def write(self, name: str, table: DataFrame) -> None:
        # Not percent-encoded: Hadoop does not decode the path.
        table.write.parquet(f"file://{self.folder / name}")
        check_shared(self.folder / name)

    def fetch(self, *names: str) -> None:
        """Do nothing: the tables are local."""

    def files(self, name: str) -> Iterator[Path]:
        yield from sorted((self.folder / name).glob("*.parquet"))

    def rows(self, name: str) -> int:
        import pyarrow.parquet as pq

        return sum(pq.read_metadata(part).num_rows for part in self.files(name))
