"""Outcomes and rows set aside as Parquet, each batch once and whole.

A batch is written beside its place and renamed into it, so a reader never meets half of one. Spark does a batch again
when it was killed before it noted that the batch was done; what is in its place then stays, since a batch done again
comes to the same. (In the raw files of Spark's own Parquet sink one may meet torn ones.)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from abeyance.errors import AbeyanceError
from abeyance.pipeline.resolver.streams.plan import aside_of, outcomes_of
from abeyance.pipeline.resolver.streams.query_identity import query_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ParquetSink"]

_UNFINISHED: Final = "_unfinished"
_QUERY: Final = "_query"


class ParquetSink:
    """For `foreachBatch`: writes answers to `out/outcomes/batch=N` and `out/aside/batch=N`.

    Read them with `spark.read.parquet(f"{out}/outcomes")` or any reader of Parquet; `batch` is then a column.
    `out` is a path or URI on a file system that renames a directory atomically: a local one, HDFS. It belongs to one
    query, that is, to one checkpoint. Another's batches have the same numbers, and are refused with `AbeyanceError`.
    """

    def __init__(self, out: str | Path) -> None:
        text = str(out)
        # Not a URI with %20 and the like: Hadoop takes the path as it is.
        self.out: Final = text.rstrip("/") if "://" in text else f"file://{Path(text).absolute()}"

    def __call__(self, answers: DataFrame, batch: int) -> None:
        """Write one batch, unless it is there."""
        files = _Files(answers.sparkSession, self.out)
        files.claim(query_of(answers))
        files.remove(_UNFINISHED)
        answers.persist()  # for the rows set aside: seldom there, and then not worth a second turn of every shard
        try:
            # Always, since a batch that nobody reads to its end leaves no state behind. Counted on the way.
            seen = Observation()
            counted = answers.observe(seen, *(F.count(column).alias(column) for column in ("outcome", "reason")))
            self._write(outcomes_of(counted), "outcomes", batch)
            if seen.get["reason"]:
                self._write(aside_of(answers), "aside", batch)
                files.put_in_place(f"aside/batch={batch}")
            if seen.get["outcome"]:
                files.put_in_place(f"outcomes/batch={batch}")
        finally:
            answers.unpersist()

    def _write(self, rows: DataFrame, table: str, batch: int) -> None:
        rows.write.parquet(f"{self.out}/{_UNFINISHED}/{table}/batch={batch}")


class _Files:
    """Spark's own view of the file system that `out` is on."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        jvm: Any = spark._jvm
        self._path: Callable[[str], Any] = lambda name: jvm.org.apache.hadoop.fs.Path(f"{out}/{name}")
        session: Any = spark._jsparkSession
        self._fs: Any = self._path("").getFileSystem(session.sessionState().newHadoopConf())

    def exists(self, name: str) -> bool:
        return bool(self._fs.exists(self._path(name)))

    def remove(self, name: str) -> None:
        self._fs.delete(self._path(name), True)

    def put_in_place(self, name: str) -> None:
        """Rename what was written, unless it is there from when the batch was done before."""
        written, place = self._path(f"{_UNFINISHED}/{name}"), self._path(name)
        if self.exists(name):
            return
        self._fs.mkdirs(place.getParent())
        if not self._fs.rename(written, place):
            raise AbeyanceError(f"cannot rename {written} to {place}")

    def claim(self, query: str) -> None:
        """Note whose `out` this is, if nobody's, else check that it is this query's."""
        note, fresh = self._path(f"{_QUERY}/id={query}"), not self.exists(_QUERY)
        if fresh:
            self._fs.mkdirs(note)
        elif not self._fs.exists(note):
            raise AbeyanceError(
                f"{self._path('')} holds the outcomes of another query: its batches have the same numbers. Give the "
                "checkpoint that goes with it, or another place for the outcomes"
            )
