"""`resolve` over whole tables.

    operations ── valid ── one row a watch ── placed ───────────────┐
                                                                    ├─ by shard ── kernel ── outcomes
    events ────── valid ───────────────────── placed ── packed ─────┘                    └── combined ── outcomes

The kernel says of each watch when it was reached. That is the outcome of an operation with one watch; those with
several are combined in a second step, keyed by operation. Both read the same shuffle.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.resolver.kernel import PACKED, REACHED, SHARDS, first_reached, pack_events
from abeyance.pipeline.resolver.places import DEFAULT_HEAT, Heat, HotKeys
from abeyance.pipeline.resolver.validity import deadline_us, valid_events, valid_operations

__all__ = ["resolve"]

Deadline = Literal["inclusive", "exclusive"]

_OPERATION: Final = ("instance", "op_id", "kind", "start_us", "deadline_us", "combine")


def resolve(
    operations: DataFrame,
    events: DataFrame,
    *,
    deadline: Deadline = "inclusive",
    unique_ids: bool = False,
    heat: Heat = DEFAULT_HEAT,
) -> DataFrame:
    """Return the outcome of every operation (`schemas.OUTCOMES`): completed or expired, when, and after what wait.

    An operation completes at the first time from its `start` to `start + timeout_ms`, both included, at which `all` or
    `any` of its watches are reached: the greatest progress of the key up to then is at least `required`. Otherwise it
    expires at the end of that time. With `deadline="exclusive"` progress at the very end comes too late (unless the
    condition holds at the start). Keys belong to their instance. Events may come in any order, twice, and long before
    or after; progress may go back.

    Lazy: nothing runs before an action, and nothing is collected to the driver. The inputs are read more than once;
    where that is dear, persist them first. Rows that cannot be resolved have no outcome: see `invalid_operations` and
    `invalid_events`. `unique_ids` promises that no (instance, op_id) is there twice and saves the search for such.
    `heat` says from how many rows on a key is worth splitting over tasks; it changes no outcome.

    Raises `SchemaError` for a table without the columns needed, ValueError for another `deadline`.
    """
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    watches = _watches(valid_operations(operations, unique_ids=unique_ids))
    happened = valid_events(events).withColumn("at_us", F.unix_micros("at"))
    hot = HotKeys(operations, events, heat)
    packed = hot.place_events(happened).mapInArrow(pack_events, PACKED)
    placed = hot.place_operations(watches).withColumn("order", F.pmod("place", F.lit(SHARDS)) * 2 + 1)
    by_shard = _by_shard(packed.unionByName(placed.drop("key"), allowMissingColumns=True))
    several = F.col("combine") != 0
    single = _reached(by_shard, ~several, deadline)
    combined = _combined(_reached(by_shard, several, deadline))
    return _outcomes(single).union(_outcomes(combined))


def _watches(operations: DataFrame) -> DataFrame:
    """Return one row a watch. `combine`: 0 for an only one, else how many have to be reached, negative for any."""
    several = F.when(F.col("condition") == "any", -F.size("watches")).otherwise(F.size("watches"))
    combine = F.when(F.size("watches") == 1, 0).otherwise(several).cast("int")
    return operations.select(
        "instance",
        "op_id",
        "kind",
        F.unix_micros("start").alias("start_us"),
        deadline_us().alias("deadline_us"),
        combine.alias("combine"),
        F.inline("watches"),
    )


def _by_shard(rows: DataFrame) -> DataFrame:
    partitions = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    shard = F.shiftright("order", 1)
    return rows.repartitionById(partitions, F.pmod(shard, F.lit(partitions)).cast("int"))


def _reached(by_shard: DataFrame, wanted: Column, deadline: Deadline) -> DataFrame:
    """Say of the wanted operations when each watch was reached."""
    # A filter that Spark takes for random stays where it is: both readers must find the one shuffle the same.
    here = F.col("events").isNotNull() | wanted | (F.monotonically_increasing_id() < 0)
    rows = by_shard.where(here).sortWithinPartitions("order")
    return rows.mapInArrow(partial(first_reached, deadline=deadline), REACHED)


def _combined(watches: DataFrame) -> DataFrame:
    """Bring the watches of each operation together."""
    same = {name: F.first(name).alias(name) for name in _OPERATION[2:]}
    by_operation = watches.groupBy("instance", "op_id").agg(
        *same.values(),
        F.count("reached").alias("_done"),
        F.min("reached").alias("_first"),
        F.max("reached").alias("_last"),
    )
    reached = F.when(F.col("combine") < 0, F.col("_first")).when(F.col("_done") == F.col("combine"), F.col("_last"))
    return by_operation.withColumn("reached", reached)


def _outcomes(operations: DataFrame) -> DataFrame:
    ended = F.coalesce("reached", "deadline_us")
    return operations.select(
        "instance",
        "op_id",
        "kind",
        F.when(F.col("reached").isNotNull(), "completed").otherwise("expired").alias("outcome"),
        F.timestamp_micros(ended).alias("at"),
        ((ended - F.col("start_us")) / 1000).alias("waited_ms"),
    )
