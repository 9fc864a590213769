"""`resolve` over whole tables.

    operations ── valid ── one row a watch ── packed ──┐
                                                       ├─ by shard ── reached ─────────────── outcomes
    events ────── valid ───────────────────── packed ──┘          └── reached ── combined ── outcomes

Each watch of an operation is told when it was reached. That is the outcome of an operation with one watch; those with
several are combined in a second step, keyed by operation. Both read the same shuffle.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.resolver.reasons import DEADLINE_US
from abeyance.pipeline.resolver.tables.first_look import any_several, look_at, repeated_groups, sampled_watches
from abeyance.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE, IDENTITY, PLACE, Sample, cuts_once_a_partition
from abeyance.pipeline.resolver.tables.one_shuffle import part_of
from abeyance.pipeline.resolver.tables.packing import (
    EVENTS,
    KINDS,
    PACKED,
    SEVERAL,
    SINGLE,
    pack_events,
    pack_operations,
)
from abeyance.pipeline.resolver.tables.reaching import REACHED, first_reached
from abeyance.pipeline.resolver.tables.validity import valid_events, valid_operations
from abeyance.pipeline.schemas import OPERATIONS, check_table
from abeyance.pipeline.spark.session import shuffle_partitions

__all__ = ["resolve"]

Deadline = Literal["inclusive", "exclusive"]

_EVENT: Final = (f"{PLACE} AS place", f"{IDENTITY} AS identity", "progress", "unix_micros(at) AS at_us")
_SPAN: Final = (
    "instance",
    "op_id",
    "kind",
    "unix_micros(start) AS start_us",
    f"{DEADLINE_US} AS deadline_us",
    "CASE WHEN size(watches) = 1 THEN 0 WHEN condition = 'any' THEN -size(watches) ELSE size(watches) END AS combine",
)
_WATCH: Final = (
    *("instance", "op_id", "kind", "start_us", "deadline_us", "combine", "required"),
    f"{PLACE} AS place",
    f"{IDENTITY} AS identity",
)
_COMBINED: Final = (
    *(f"first({name}) AS {name}" for name in ("kind", "start_us", "deadline_us")),
    "CASE WHEN first(combine) < 0 THEN min(reached) "
    "WHEN count(reached) = first(combine) THEN max(reached) END AS reached",
)
_OUTCOME: Final = (
    "instance",
    "op_id",
    "kind",
    "if(reached IS NULL, 'expired', 'completed') AS outcome",
    "timestamp_micros(coalesce(reached, deadline_us)) AS at",
    "(coalesce(reached, deadline_us) - start_us) / 1000 AS waited_ms",
)


def resolve(
    operations: DataFrame,
    events: DataFrame,
    *,
    deadline: Deadline = "inclusive",
    unique_ids: bool = False,
    sample: Sample = DEFAULT_SAMPLE,
) -> DataFrame:
    """Return the outcome of every operation (`schemas.OUTCOMES`): completed or expired, when, and after what wait.

    An operation completes at the first time from its `start` to `start + timeout_ms`, both included, at which `all` or
    `any` of its watches are reached: the greatest progress of the key up to then is at least `required`. Otherwise it
    expires at the end of that time. With `deadline="exclusive"` progress at the very end comes too late (unless the
    condition holds at the start). Keys belong to their instance. Events may come in any order, twice, and long before
    or after; progress may go back.

    Lazy: nothing runs before an action, and no row is collected to the driver. The inputs are read more than once;
    where that is dear, persist them first. Rows that cannot be resolved have no outcome: see `invalid_operations` and
    `invalid_events`. `unique_ids` promises that no (instance, op_id) is there twice and saves the search for such.
    `sample` says how hot keys are found and how finely they are cut; it changes no outcome.

    Raises `SchemaError` for a table without the columns needed, ValueError for another `deadline`.
    """
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    check_table(operations, OPERATIONS, "operations")
    seen = look_at(operations, fraction=sample.fraction, ids=not unique_ids)
    waiting = valid_operations(operations, None if unique_ids else repeated_groups(seen))
    watches = waiting.selectExpr(*_SPAN, "inline(watches)").selectExpr(*_WATCH)
    happened = valid_events(events).selectExpr(*_EVENT)
    cuts = cuts_once_a_partition(sampled_watches(seen), events, sample).alias("cuts")
    by_shard = _by_shard(
        happened.select("*", cuts).mapInArrow(pack_events, PACKED),
        watches.select("*", cuts).mapInArrow(pack_operations, PACKED),
    )
    single = _reached(by_shard, SINGLE, deadline)
    # Where no operation has several watches, Spark finds one side of this join empty, and does nothing for the other.
    several = _reached(by_shard.crossJoin(F.broadcast(any_several(seen))), SEVERAL, deadline)
    combined = several.groupBy("instance", "op_id").agg(*map(F.expr, _COMBINED))
    return single.selectExpr(*_OUTCOME).union(combined.selectExpr(*_OUTCOME))


def _by_shard(events: DataFrame, operations: DataFrame) -> DataFrame:
    """Bring together what is packed of a shard."""
    partitions = shuffle_partitions(events.sparkSession)
    return events.union(operations).repartitionById(partitions, F.expr(f"int(`order` div {KINDS} % {partitions})"))


def _reached(by_shard: DataFrame, kind: int, deadline: Deadline) -> DataFrame:
    """Tell of the operations of one kind when each watch was reached."""
    rows = part_of(by_shard, f"`order` % {KINDS} IN ({EVENTS}, {kind})").select("order", "cuts", "packed")
    return rows.sortWithinPartitions("order").mapInArrow(partial(first_reached, deadline=deadline), REACHED)
