"""Rebuild the high watermarks of all partitions from the replication facts in request logs.

One task gets all facts of a partition, sorted by time, and streams them: memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.replication.partition import Moved, Partition
from abeyant.pipeline.replication.produces import appended
from abeyant.pipeline.schemas import HIGH_WATERMARKS, REPLICATION
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.columns import check_table

__all__ = ["high_watermarks"]

_FACTS: Final = ("fetched", "isr", "asking", "metadata")
_COLUMNS: Final = ("key", "replicas", "least", "instance", "what", "offset", "replica", "in_sync", "at", "handling_ms")
# By time; the rest only so that every run does the same.
_ORDER: Final = ("key", "at", "what", "instance", "replica", "offset")


def high_watermarks(replication: DataFrame, *, min_insync_replicas: int | None = None) -> DataFrame:
    """Return when each partition's high watermark went up, and why (`schemas.HIGH_WATERMARKS`): events for `resolve`.

    The replicas in sync are read from the controllers' ALTER_PARTITION lines. Before the first such line, or without
    any, they are read from METADATA responses, which may be late; without these, they are all replicas that ever fetch.
    A request log does not show `min.insync.replicas`. Unless it is given, it is inferred for each topic: one more than
    the replicas in sync when most of the topic's refused produces were refused (NOT_ENOUGH_REPLICAS), or 1 if none was.
    Times are the log's: milliseconds, of one clock for all brokers. Raises `SchemaError` for a table that lacks a
    column, ValueError for a `min_insync_replicas` below 1.
    """
    if min_insync_replicas is not None and min_insync_replicas < 1:
        raise ValueError(f"min_insync_replicas must be at least 1, not {min_insync_replicas}")
    check_table(replication, REPLICATION, "replication")
    facts = replication.where(F.col("what").isin(*_FACTS))
    ends = appended(replication).withColumn("offset", F.col("required"))
    rows = facts.unionByName(ends.drop("required"))
    fetching = facts.where(F.col("what") == "fetched").groupBy("key")
    replicas = fetching.agg(F.collect_set("replica").alias("replicas"))
    inputs = rows.join(replicas, "key", "left").withColumns(
        {"topic": _topic(), "least": F.lit(min_insync_replicas).cast("long")}
    )
    if min_insync_replicas is None:
        inputs = inputs.drop("least").join(F.broadcast(_least_in_sync(replication)), "topic", "left")
    by_partition = inputs.select(*_COLUMNS).repartition("key").sortWithinPartitions(*_ORDER)
    return by_partition.mapInArrow(_watermarks, HIGH_WATERMARKS)


def _topic() -> Column:
    return F.regexp_replace("key", "-[0-9]+$", "")


def _least_in_sync(replication: DataFrame) -> DataFrame:
    """Return, for each topic with refused produces, how many replicas must be in sync: `min.insync.replicas`."""
    before = Window.partitionBy("key").orderBy("at")
    in_sync = F.last(F.size(F.when(F.col("what") == "isr", F.col("in_sync"))), ignorenulls=True).over(before)
    changes = replication.where(F.col("what").isin("isr", "refused")).withColumn("_in_sync", in_sync)
    # Most, not all: those refused while the leader had not yet heard of a change met another number than the log's.
    refused = changes.where((F.col("what") == "refused") & F.col("_in_sync").isNotNull())
    return refused.groupBy(_topic().alias("topic")).agg((F.mode("_in_sync", deterministic=True) + 1).alias("least"))


def _watermarks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each time that a high watermark goes up, from facts sorted by key and time."""
    schema = arrow_schema(HIGH_WATERMARKS)
    current_key: str | None = None
    partition = Partition((), 1)
    for batch in batches:
        rows = []
        columns = [batch[name] for name in _COLUMNS]
        times = columns[_COLUMNS.index("at")]
        columns[_COLUMNS.index("at")] = times.cast(pa.int64())
        for key, replicas, least, *fact, at, handling_ms in zip(*(c.to_pylist() for c in columns), strict=True):
            if key != current_key:
                current_key, partition = key, Partition(replicas or (), least or 1)
            for change in _moved(partition, *fact):
                timed = change.cause != "isr"
                replica = fact[3] if change.cause == "fetch" else None
                rows.append(
                    (change.instance, key, at, change.progress, change.cause, replica, handling_ms if timed else None)
                )
        if rows:
            yield pa.record_batch(
                [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)],
                schema=schema,
            )


def _moved(
    partition: Partition, instance: str, what: str, offset: int, replica: int, in_sync: list[int]
) -> Iterable[Moved]:
    if what == "fetched":
        return partition.fetched(instance, replica, offset)
    if what == "appended":
        return partition.appended(instance, offset)
    if what == "asking":
        partition.asking(in_sync)
        return ()
    return partition.changed(replica, in_sync, by_controller=what == "isr")
