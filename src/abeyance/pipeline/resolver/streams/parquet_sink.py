"""Outcomes and rows set aside as Parquet, each batch once and whole.

A batch is written beside its place and renamed into it, so a reader never meets half of one. Spark does a batch again
when it was killed before it noted that the batch was done; what is in its place then stays, since a batch done again
comes to the same. (In the raw files of Spark's own Parquet sink one may meet torn ones.) Where directories cannot be
renamed, manifests say which files count (`listed_batches`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from abeyance.errors import AbeyanceError
from abeyance.pipeline.resolver.streams.listed_batches import write_listed
from abeyance.pipeline.resolver.streams.plan import aside_of, outcomes_of
from abeyance.pipeline.resolver.streams.query_identity import checkpoint_of, hold_while_it_runs, query_of
from abeyance.pipeline.results.local_claims import of_stream
from abeyance.pipeline.spark.file_system import FileSystem, file_system
from abeyance.pipeline.spark.store import renames

__all__ = ["ParquetSink"]

_UNFINISHED: Final = "_unfinished"
_QUERY: Final = "_query"
_LOCAL: Final = "file://"


class ParquetSink:
    """For `foreachBatch`: writes answers to `out/outcomes/batch=N` and `out/aside/batch=N`.

    Read them with `read_result(spark, out)`; `batch` is then a column. `out` is a path, or a URI of any file system
    that Spark reads. Local ones and HDFS rename a directory at once: there any reader of Parquet sees whole batches in
    `out/outcomes`. Elsewhere (`s3a://`) only `out/batches/N.json` tells which files count;
    `manifests` asks for such a file system, or denies it: True for a bucket mounted as a directory, say.

    `out` belongs to one query, that is, to one checkpoint. Another's batches have the same numbers, and are refused
    with `AbeyanceError`. On Spark Connect `checkpoint` has to name that checkpoint, a local path is one of the server's
    machine, and manifests cannot be had.
    """

    def __init__(self, out: str | Path, *, checkpoint: str | Path | None = None, manifests: bool | None = None) -> None:
        text = str(out)
        # Not a URI with %20 and the like: Hadoop takes the path as it is.
        self.out: Final = text.rstrip("/") if "://" in text else f"file://{Path(text).absolute()}"
        self._checkpoint: Final = checkpoint_of("ParquetSink", checkpoint)
        self._manifests: Final = not renames(self.out) if manifests is None else manifests

    def __call__(self, answers: DataFrame, batch: int) -> None:
        """Write one batch, unless it is there."""
        if self._manifests:
            write_listed(answers, batch, self.out, query_of(answers, self._checkpoint))
            return
        files = file_system(answers.sparkSession, self.out)
        place = _Place(files, self.out)
        query = query_of(answers, self._checkpoint)
        if self.out.startswith(_LOCAL):
            out = Path(self.out.removeprefix(_LOCAL))
            hold_while_it_runs(answers, query, of_stream(out), out)
        place.claim(query)
        files.remove(_UNFINISHED)
        answers.persist()  # for the rows set aside: seldom there, and then not worth a second turn of every shard
        try:
            # Always, since a batch that nobody reads to its end leaves no state behind. Counted on the way.
            seen = Observation()
            counted = answers.observe(seen, *(F.count(column).alias(column) for column in ("outcome", "reason")))
            self._write(outcomes_of(counted), "outcomes", batch)
            if seen.get["reason"]:
                self._write(aside_of(answers), "aside", batch)
                place.put(f"aside/batch={batch}")
            if seen.get["outcome"]:
                place.put(f"outcomes/batch={batch}")
        finally:
            answers.unpersist()

    def _write(self, rows: DataFrame, table: str, batch: int) -> None:
        rows.write.parquet(f"{self.out}/{_UNFINISHED}/{table}/batch={batch}")


class _Place:
    """Where the batches of one query stand, once they are whole."""

    def __init__(self, files: FileSystem, out: str) -> None:
        self._files = files
        self._out = out

    def put(self, name: str) -> None:
        """Rename what was written, unless it is there from when the batch was done before."""
        if self._files.exists(name):
            return
        self._files.make_directory(name.rpartition("/")[0])
        if not self._files.rename(f"{_UNFINISHED}/{name}", name):
            raise AbeyanceError(f"cannot rename {self._out}/{_UNFINISHED}/{name} to {self._out}/{name}")

    def claim(self, query: str) -> None:
        """Note whose `out` this is, if nobody's, else check that it is this query's."""
        note = f"{_QUERY}/id={query}"
        if not self._files.exists(_QUERY):
            self._files.make_directory(note)
        elif not self._files.exists(note):
            raise AbeyanceError(
                f"{self._out} holds the outcomes of another query: its batches have the same numbers. Give the "
                "checkpoint that goes with it, or another place for the outcomes"
            )
