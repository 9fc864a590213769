"""Write outcomes and rejected rows to Delta Lake or Apache Iceberg: each batch once, even after a kill at any moment.

Each batch is one commit per table, which records the query and the batch. A repeated batch finds the record and appends
nothing. Delta has such records itself (`txnAppId` and `txnVersion` of a write), and checks them as it commits. In
Iceberg the record is a property of the snapshot, read before the write, as in Iceberg's own streaming sink.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.rejected import REJECTED_ROWS, rejected_rows_of
from abeyant.pipeline.resolver.streams.plan import outcomes_of
from abeyant.pipeline.resolver.streams.query_identity import checkpoint_of, query_of
from abeyant.pipeline.spark.errors import lacks_format
from abeyant.pipeline.spark.versions import minor_of
from abeyant.renamed import former_keywords

__all__ = ["DeltaSink", "IcebergSink"]

_QUERY: Final = "abeyant-query"
_BATCH: Final = "abeyant-batch"


class _LakeSink:
    """The base of both sinks, which creates the two tables if they are missing, and appends each batch's rows."""

    _format: ClassVar[str]
    _name: ClassVar[str]
    _artifact: ClassVar[str]
    """The package's Maven coordinate without its version; `{}` stands for Spark's minor version."""
    _tried: ClassVar[dict[str, str]]
    """The package version that our tests use, by Spark's minor version."""

    @former_keywords(aside="rejected")
    def __init__(self, outcomes: str, rejected: str, *, checkpoint: str | Path | None = None) -> None:
        """Create a sink for two tables, by their names. Raises as the class says."""
        if outcomes == rejected:
            raise ValueError(f"outcomes and rejected must be two tables, not {outcomes} twice")
        self.outcomes: Final = outcomes
        self.rejected: Final = rejected
        self._checkpoint: Final = checkpoint_of(type(self).__name__, checkpoint)
        self._prepared = False
        session = SparkSession.getActiveSession()
        if session is not None:  # fail here rather than in a running query
            self._check_format(session)

    @property
    def aside(self) -> str:
        """Former name of `rejected`."""
        return self.rejected

    def __call__(self, answers: DataFrame, batch: int) -> None:
        """Append one batch, unless the tables have it already."""
        query = query_of(answers, self._checkpoint)
        if not self._prepared:
            self._check_format(answers.sparkSession)
            self._prepare(answers.sparkSession, self.outcomes, outcomes_of(answers).schema)
            self._prepare(answers.sparkSession, self.rejected, REJECTED_ROWS)
            self._prepared = True
        answers.persist()
        try:
            # Count first: without rows there is no commit, and only a batch that is read to its end commits its state.
            counts = answers.agg(*(F.count(column) for column in ("outcome", "reason"))).head()
            ended, rejected = counts if counts is not None else (0, 0)
            if ended:
                self._append(outcomes_of(answers), self.outcomes, query, batch)
            if rejected:
                self._append(rejected_rows_of(answers), self.rejected, query, batch)
        finally:
            answers.unpersist()

    def _append(self, rows: DataFrame, table: str, query: str, batch: int) -> None:
        raise NotImplementedError

    def _prepare(self, spark: SparkSession, table: str, schema: StructType) -> None:
        """Create a table unless it exists. Raises `AbeyantError` if it exists in another format."""
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema)
        spark.sql(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {self._format}")
        provider = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("lower(col_name) = 'provider'").head()
        existing_format = provider["data_type"] if provider is not None else "unknown"
        if existing_format.lower() != self._format:
            raise AbeyantError(
                f"{table} has the format {existing_format}: {type(self).__name__} writes only {self._name} tables"
            )

    def _check_format(self, spark: SparkSession) -> None:
        """Raise `AbeyantError` if the session lacks the format; the message names the package that adds it."""
        if lacks_format(spark, self._format):
            raise AbeyantError(self._lacking(minor_of(spark)))

    @classmethod
    def _lacking(cls, minor: str) -> str:
        """Return an error message: which package this session lacks, and the `--packages` option that adds it."""
        package = cls._artifact.format(minor)
        if minor in cls._tried:
            mend = f"start it with --packages {package}:{cls._tried[minor]}"
        else:
            others = " and ".join(f"{version} with Spark {spark}" for spark, version in cls._tried.items())
            mend = f"start it with --packages {package}:VERSION, if there is one (tried: {others})"
        return f"this Spark session has no tables of {cls._name}: {mend}"


class DeltaSink(_LakeSink):
    """For `foreachBatch`: appends outcomes and rejected rows to two tables of Delta Lake, each batch once.

    Name tables as Spark does: `shop.outcomes`, or delta.`s3a://lake/outcomes`. Missing tables are created; create them
    yourself to choose partitions or properties. Several queries may write to one table. Which batches were appended is
    recorded for each checkpoint: so a query with a new checkpoint appends its batches anew. On Spark Connect
    `checkpoint` is required.

    Raises `AbeyantError` where the session lacks Delta Lake, naming the package, and for a table of another format;
    ValueError if both tables are the same.
    """

    _format = "delta"
    _name = "Delta Lake"
    _artifact = "io.delta:delta-spark_{}_2.13"
    _tried: ClassVar = {"4.1": "4.4.0", "4.2": "4.4.0"}

    def _append(self, rows: DataFrame, table: str, query: str, batch: int) -> None:
        rows.writeTo(table).options(txnAppId=f"abeyant-{query}", txnVersion=batch).append()


class IcebergSink(_LakeSink):
    """For `foreachBatch`: appends outcomes and rejected rows to two tables of Apache Iceberg, each batch once.

    Name tables with their catalog: `lake.shop.outcomes`. All else is the same as for `DeltaSink`. That a batch was
    appended is recorded in its snapshot's properties. So do not let the last snapshot of a query expire while the query
    is down, and do not run one checkpoint in two processes at the same time.

    Raises as `DeltaSink` does.
    """

    _format = "iceberg"
    _name = "Apache Iceberg"
    _artifact = "org.apache.iceberg:iceberg-spark-runtime-{}_2.13"
    _tried: ClassVar = {"4.1": "1.12.0"}

    def _append(self, rows: DataFrame, table: str, query: str, batch: int) -> None:
        last = _last_batch(rows.sparkSession, table, query)
        if last is None or last < batch:
            note = {f"snapshot-property.{_QUERY}": query, f"snapshot-property.{_BATCH}": str(batch)}
            rows.writeTo(table).options(**note).append()


def _last_batch(spark: SparkSession, table: str, query: str) -> int | None:
    """Return the last batch of a query in the current state of an Iceberg table; None if it has none.

    Snapshots that were rolled back do not count. Reads the table's list of snapshots, no data.
    """
    spark.catalog.refreshTable(table)  # Iceberg's catalog caches a table for 30 s, also while others write to it
    current = spark.table(f"{table}.history").where("is_current_ancestor").select("snapshot_id")
    snapshots = spark.table(f"{table}.snapshots").join(current, "snapshot_id", "left_semi")
    own_snapshots = snapshots.where(F.col("summary")[_QUERY] == query)
    row = own_snapshots.agg(F.max(F.col("summary")[_BATCH].cast("long"))).head()
    return None if row is None or row[0] is None else int(row[0])
