"""Write outcomes and rejected rows as Parquet, each batch once and atomically.

A batch is written beside its directory and renamed into place, so a reader never sees a part of a batch. Spark repeats
a batch if it was killed before it recorded the batch as done; a batch that is already in place is kept, because a
repeated batch has the same rows. (Spark's own Parquet sink may leave torn files for readers of its raw files.) Where
directories cannot be renamed, manifests list the files that count (`listed_batches`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.streams.listed_batches import write_listed, write_tables
from abeyant.pipeline.resolver.streams.query_identity import checkpoint_of, query_of
from abeyant.pipeline.results.leases.local import stream_lease
from abeyant.pipeline.results.leases.queries import lease_store_while_query_runs, lease_while_query_runs
from abeyant.pipeline.results.leases.store import StoreLease
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.file_system import FileSystem, file_system
from abeyant.pipeline.spark.location import plain
from abeyant.pipeline.spark.store import Store, renames

__all__ = ["ParquetSink"]

_UNFINISHED: Final = "_unfinished"
_QUERY: Final = "_query"
_LOCAL: Final = "file://"


class ParquetSink:
    """For `foreachBatch`: writes outcomes to `out/outcomes/batch=N`, and rejected rows to `out/aside/batch=N`.

    Read them with `read_result(spark, out)`; `batch` is then a column. `out` is a path, or a URI of any file system
    that Spark reads. Local file systems and HDFS rename a directory atomically: there any reader of Parquet sees whole
    batches in `out/outcomes`. Elsewhere (`s3a://`) a manifest, `out/batches/N.json`, lists the files that count. By
    default the URI decides whether to write manifests. Set `manifests` to override that: True, for instance, for a
    bucket mounted as a directory.

    `out` belongs to one query, that is, to one checkpoint. A query with another checkpoint is refused with
    `AbeyantError`, since its batches have the same numbers. On Spark Connect, `checkpoint` is required, a local path is
    on the server's machine, and manifests are not supported.
    """

    def __init__(self, out: str | Path, *, checkpoint: str | Path | None = None, manifests: bool | None = None) -> None:
        self.out: Final = plain(str(out)).rstrip("/")
        self._checkpoint: Final = checkpoint_of("ParquetSink", checkpoint)
        self._manifests: Final = not renames(self.out) if manifests is None else manifests

    def __call__(self, answers: DataFrame, batch: int) -> None:
        """Write the outcomes and rejected rows of one batch, unless `out` has the batch already."""
        if self._manifests:
            write_listed(answers, batch, self.out, query_of(answers, self._checkpoint))
            return
        files = file_system(answers.sparkSession, self.out)
        query = query_of(answers, self._checkpoint)
        place = _Place(files, self.out, self._hold(answers, query))
        place.bind_to(query)
        files.remove(_UNFINISHED)
        for table in write_tables(answers, lambda table: place.temporary(f"{table}/batch={batch}")):
            place.put(f"{table}/batch={batch}")
        files.remove(_UNFINISHED)

    def _hold(self, answers: DataFrame, query: str) -> StoreLease | None:
        """Lease `out` until the query ends: by a lock on a local path, elsewhere by the lease that is returned."""
        if self.out.startswith(_LOCAL):
            out = Path(self.out.removeprefix(_LOCAL))
            lease_while_query_runs(answers, query, stream_lease(out), out)
            return None
        if is_connect(answers.sparkSession):
            return None
        return lease_store_while_query_runs(Store(answers.sparkSession, self.out), answers, query)


class _Place:
    """The output directory of a query; writes batches to a temporary directory and renames them into place."""

    def __init__(self, files: FileSystem, out: str, lease: StoreLease | None) -> None:
        self._files = files
        self._out = out
        self._lease = lease
        # A unique name: a writer that lost its lease without dying cannot rename the files of its successor.
        self._unfinished = f"{_UNFINISHED}/{uuid4().hex[:12]}"

    def temporary(self, name: str) -> str:
        """Return the temporary directory to write to before `put(name)`."""
        return f"{self._out}/{self._unfinished}/{name}"

    def put(self, name: str) -> None:
        """Rename `temporary(name)` to `name`, unless `name` exists from an earlier run of the batch."""
        if self._lease is not None:
            self._lease.check()
        if self._files.exists(name):
            return
        self._files.make_directory(name.rpartition("/")[0])
        if not self._files.rename(f"{self._unfinished}/{name}", name):
            raise AbeyantError(f"cannot rename {self.temporary(name)} to {self._out}/{name}")

    def bind_to(self, query: str) -> None:
        """Record this query as the owner of `out` if it has none; raise `AbeyantError` if another query owns it."""
        note = f"{_QUERY}/id={query}"
        if not self._files.exists(_QUERY):
            self._files.make_directory(note)
        elif not self._files.exists(note):
            raise AbeyantError(
                f"{self._out} holds the outcomes of another query, whose batches have the same numbers. Give "
                "that query's checkpoint, or another place for the outcomes"
            )
