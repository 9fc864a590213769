"""Plan `resolve_stream`, which turns streams of operations and events into one stream of outcomes and rejected rows.

    operations ─ checked ─ one row a watch ─ packed ─┐
    events ───── checked ─────────────────── packed ─┤  by      ┌─────────────┐  by
    tick (rate source) ───────────────────── marked ─┼─ shard ──┤ shard's turn├─ operation ── answered ─→ answers
    end of input (a directory) ───────────── marked ─┘          └─── state ───┘

Spark shuffles few rows: each packs all rows of one task for one shard. Python works on columns, never on single rows.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.rejected import DEADLINE_US, EVENT_REASON, OPERATION_REASON, REJECTED_ROWS
from abeyant.pipeline.resolver.streams.end import end_rows
from abeyant.pipeline.resolver.streams.layout import OUTCOMES as RULES_OUTCOMES
from abeyant.pipeline.resolver.streams.layout import PACKED
from abeyant.pipeline.resolver.streams.map_side import pack, pack_marks
from abeyant.pipeline.resolver.streams.options import (
    DEFAULT_LATENESS,
    DEFAULT_SHARDS,
    Options,
    Time,
    checked,
)
from abeyant.pipeline.resolver.streams.progress import STANDING, observed
from abeyant.pipeline.resolver.streams.rules.layout import DETAILS as RULES_DETAILS
from abeyant.pipeline.resolver.streams.rules.plan import answers_of, columns_of_rules, packed_by_rules
from abeyant.pipeline.resolver.streams.rules.stages import turn as turn_by_rules
from abeyant.pipeline.resolver.streams.stages import answered, shards_turn
from abeyant.pipeline.resolver.streams.state import STATE
from abeyant.pipeline.resolver.streams.with_reason import with_reason
from abeyant.pipeline.schemas import ANSWERS, EVENTS, OPERATIONS
from abeyant.pipeline.sources.tables import check_constants, complete
from abeyant.pipeline.spark.session import SHUFFLE_PARTITIONS, default_partitions, shuffle_partitions
from abeyant.pipeline.spark.versions import check_arrow
from abeyant.tables.calendar import Calendar
from abeyant.tables.rules import Combine, Count, Deadline, Holds, Rules, Serves, Within

__all__ = ["ANSWERS", "outcomes_of", "resolve_stream"]


def resolve_stream(
    operations: DataFrame,
    events: DataFrame,
    *,
    deadline: Deadline = "inclusive",
    count: Count = "always",
    combine: Combine = "max",
    holds: Holds = "ever",
    serves: Serves = "every",
    within: Within = "whole",
    calendar: Calendar | None = None,
    details: bool = False,
    lateness: float | timedelta = DEFAULT_LATENESS,
    time: Time = "event",
    tick: float | timedelta | None = 1.0,
    end_of_input: str | Path | None = None,
    forget_after: float | timedelta | None = None,
    shards: int = DEFAULT_SHARDS,
) -> DataFrame:
    """Resolve two streams: return outcomes and rejected rows as one stream (`schemas.ANSWERS`).

    Split it with `outcomes_of` and `rejected_rows_of`. Or pass it to `foreachBatch(ParquetSink(...))` or
    `foreachBatch(SQLiteSink(...))`, which write both to separate tables, and each batch once. The laws are the same as
    for `resolve`, with one difference: a row whose time is before the *watermark* is rejected as late.
    The command `abeyant stream` does the same.

    - `deadline`: `inclusive` or `exclusive`: progress exactly at an operation's deadline counts, or does not.
    - `count`, `combine`, `holds`, `serves`, `within`, `calendar`, `details`: as in `abeyant.tables.resolve`; so are
      watches with a `role`, and the columns `cancel_key`, `extend_key`, `pause_key`, `timeout`, `deadline`, `extend`
      (`docs/design-resolve.md`). With `details` the answers have the columns of `schemas.DETAILS`. The condition
      `then` needs one of these options or columns. An operation that contradicts the options is rejected.
    - `lateness`: seconds by which the watermark stays behind both tables' clocks. A table's clock is the greatest time
      of its rows so far, so rows may be out of order by `lateness`. An outcome is returned once the watermark has
      passed it.
    - `time`: `event`, or `processing`: rows get the time at which their batch begins; `start` and `at` are not needed,
      and no row is late before the end of input.
    - `tick`: seconds, from 0.001 to 1, between batches when no rows arrive. The clock of a table without a new row
      advances with the wall clock, so time-outs fire on an idle stream. None: only rows advance the clocks.
    - `end_of_input`: a directory. After `end_of_input(directory)`, the next batch resolves all pending operations.
    - `forget_after`: seconds without an event after which a key's progress is dropped, if no operation waits for the
      key. Operations that start later do not see that progress. None: never.
    - `shards`: the number of shards of the state, from 1 to 4,096.

    With options, a shard holds whole operations. If each operation names one key (`key`, and neither `watches` nor
    columns such as `cancel_key`), the instance and the key choose its shard. Else the instance alone does: then many
    instances are needed to fill all shards.

    While a checkpoint is used, `deadline`, the other options and the columns that go with them, `time`, `shards`, and
    whether `tick` and `end_of_input` are used, must not change: other values are refused. State is kept in RocksDB
    unless the session sets another store. Warns if the session has more shuffle partitions than there are shards: Spark
    takes the number from the session when a checkpoint is begun. Raises `SchemaError` for a table without the columns
    needed, `AbeyantError` for a table that is not a stream and for a PySpark that needs another pyarrow, ValueError for
    any other value, and for options that contradict each other.
    """
    rules = Rules(deadline, count, combine, holds, serves, within, calendar, details)
    options = checked(rules, lateness=lateness, time=time, tick=tick, forget_after=forget_after, shards=shards)
    _check_streaming(operations=operations, events=events)
    options = replace(options, columns=columns_of_rules(operations, rules))
    if time == "processing":
        operations = operations.withColumn("start", F.current_timestamp())
        events = events.withColumn("at", F.current_timestamp())
    check_constants(operations, "operations")
    operations, events = complete(operations, "operations"), complete(events, "events")
    spark = operations.sparkSession
    check_arrow(spark)
    _set_up(spark)
    _warn_of_empty_partitions(spark, shards)
    if options.columns is None:
        packed = _packed(_watches(operations), "operations", shards).union(_packed(_events(events), "events", shards))
    else:
        packed = packed_by_rules(operations, events, options)
    if options.rate is not None:
        ticks = spark.readStream.format("rate").option("rowsPerSecond", options.rate).option("numPartitions", 1).load()
        packed = packed.union(ticks.mapInArrow(partial(pack_marks, source="tick", shards=shards), PACKED))
    if end_of_input is not None:
        ends = end_rows(spark, end_of_input)
        packed = packed.union(ends.mapInArrow(partial(pack_marks, source="end", shards=shards), PACKED))
    schema = answers_of(rules)
    return observed(_answers(packed, options, schema)).select(*schema.fieldNames())


def outcomes_of(answers: DataFrame) -> DataFrame:
    """Return the outcomes of `answers`, from `resolve_stream` (`schemas.OUTCOMES`, with details `schemas.DETAILS`)."""
    rejected = REJECTED_ROWS.fieldNames()
    return answers.where(F.col("reason").isNull()).drop(*rejected)


def _check_streaming(**tables: DataFrame) -> None:
    for name, table in tables.items():
        if not table.isStreaming:
            raise AbeyantError(
                f"{name} is not a stream: read both tables with spark.readStream, or both with spark.read "
                "(a complete table can be read as a stream, too, with the trigger availableNow)"
            )


def _set_up(spark: SparkSession) -> None:
    """Make the session keep state in RocksDB, unless it sets another provider."""
    if spark.conf.get(_PROVIDER, _DEFAULT_PROVIDER) == _DEFAULT_PROVIDER:
        spark.conf.set(_PROVIDER, _ROCKSDB)


_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_STATE: Final = "org.apache.spark.sql.execution.streaming.state."
_DEFAULT_PROVIDER: Final = _STATE + "HDFSBackedStateStoreProvider"
_ROCKSDB: Final = _STATE + "RocksDBStateStoreProvider"


def _warn_of_empty_partitions(spark: SparkSession, shards: int) -> None:
    """Warn if some tasks of a batch would hold no shard: only the session sets the number of partitions."""
    there = shuffle_partitions(spark)
    if there > shards:
        value = min(shards, default_partitions(spark) or shards)
        warnings.warn(
            f"{SHUFFLE_PARTITIONS} is {there}, and this stream has {shards} shards: in each batch, {there - shards} "
            "tasks start Python and commit state for nothing. Before the query starts for the first time, set "
            f"spark.conf.set({SHUFFLE_PARTITIONS!r}, '{value}')",
            stacklevel=3,
        )


def _watches(operations: DataFrame) -> DataFrame:
    """Return a row per watch (`layout.WATCHES`, `reason` and `row`), but a single row for a rejected operation."""
    checked_rows = with_reason(operations, OPERATIONS, F.expr(OPERATION_REASON))
    several = F.size("watches") > 1
    sign = F.when(F.col("condition") == "any", -1).otherwise(1)
    exploded = checked_rows.select(
        "*", F.posexplode_outer(F.when(F.col("reason").isNull(), F.col("watches"))).alias("watch", "_one")
    )
    return exploded.select(
        "instance",
        "op_id",
        "kind",
        F.col("_one.key").alias("key"),
        *_hashes(F.col("instance"), F.col("_one.key")),
        F.col("_one.required").alias("required"),
        F.unix_micros("start").alias("start"),
        F.expr(DEADLINE_US).alias("deadline"),
        F.when(several, F.size("watches") * sign).otherwise(0).cast("int").alias("combine"),
        "watch",
        F.xxhash64("instance", "op_id").alias("operation"),
        F.xxhash64("kind", F.col("condition") == "any", "watches").alias("version"),
        F.when(several & (F.col("watch") == 0), F.to_json("watches")).alias("watches"),
        "reason",
        "row",
    )


def _events(events: DataFrame) -> DataFrame:
    """Return events with the columns of `layout.EVENTS`, and `reason` and `row`."""
    return with_reason(events, EVENTS, F.expr(EVENT_REASON)).select(
        "instance",
        "key",
        *_hashes(F.col("instance"), F.col("key")),
        "progress",
        F.unix_micros("at").alias("at"),
        "reason",
        "row",
    )


def _hashes(instance: Column, key: Column) -> list[Column]:
    return [F.xxhash64(instance, key).alias("place"), F.xxhash64(F.lit(1), instance, key).alias("identity")]


def _packed(rows: DataFrame, table: Literal["operations", "events"], shards: int) -> DataFrame:
    return rows.mapInArrow(partial(pack, table=table, shards=shards), PACKED)


def _answers(packed: DataFrame, options: Options, schema: StructType) -> DataFrame:
    turn = partial(shards_turn if options.columns is None else turn_by_rules, options=options)
    ended = packed.groupBy("shard").applyInPandasWithState(turn, PACKED, STATE, "append", GroupStateTimeout.NoTimeout)
    schema = StructType([*schema.fields, *STANDING.fields])
    if options.columns is not None:
        outcomes = RULES_DETAILS if options.rules.details else RULES_OUTCOMES
        return ended.mapInArrow(partial(answered, outcomes=outcomes), schema)
    # Spark cannot shuffle the rows in the form in which a worker returns them; a cast makes it copy them.
    by_operation = ended.withColumn("shard", F.col("shard").cast("long"))
    by_operation = by_operation.repartition(min(options.shards, shuffle_partitions(packed.sparkSession)), "shard")
    return by_operation.mapInArrow(answered, schema)
