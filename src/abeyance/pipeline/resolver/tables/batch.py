"""`resolve` over whole tables.

    operations ── valid ── one row a watch ── packed ──┐
                                                       ├─ by shard ── reached ─────────────── outcomes
    events ────── valid ───────────────────── packed ──┘          └── reached ── combined ── outcomes

Each watch of an operation is told when it was reached. That is the outcome of an operation with one watch, if no other
row can have its id. All others are *combined* in a second step, by id: of several rows with one id the first counts,
and of its watches all or any have to be reached. Both steps read the same shuffle.

What takes which way is told by a look at the tables beforehand (`first_look`). Tables that Spark's own statistics hold
for small are not worth it: Spark alone resolves them (`small`), and all of their operations are combined.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.resolver.reasons import DEADLINE_US
from abeyance.pipeline.resolver.tables.first_look import is_repeated, look_at, seen_in
from abeyance.pipeline.resolver.tables.from_files import files_of
from abeyance.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE, FIRST_OF_PARTITION, IDENTITY, PLACE, Sample
from abeyance.pipeline.resolver.tables.one_shuffle import part_of
from abeyance.pipeline.resolver.tables.packing import (
    ALONE,
    COMBINED,
    EVENTS,
    KINDS,
    PACKED,
    SHARDS,
    pack_events,
    pack_operations,
)
from abeyance.pipeline.resolver.tables.reaching import REACHED, first_reached
from abeyance.pipeline.resolver.tables.small import few_partitions, reached_by_spark
from abeyance.pipeline.resolver.tables.spreading import spread
from abeyance.pipeline.resolver.tables.validity import valid_events, valid_operations
from abeyance.pipeline.schemas import EVENTS as EVENT_COLUMNS
from abeyance.pipeline.schemas import OPERATIONS, check_table, columns_of
from abeyance.pipeline.spark.estimates import estimated_size
from abeyance.pipeline.spark.session import shuffle_partitions

__all__ = ["resolve"]

Deadline = Literal["inclusive", "exclusive"]

# In the order of `packing`.
_EVENT: Final = f"array({PLACE}, {IDENTITY}, progress, unix_micros(at))"
_NUMBERS: Final = f"array(start_us, deadline_us, required, {IDENTITY}, {PLACE}, bigint(alone), bigint(any_of))"
# No list that goes to Python is null: where Spark measures its batches, it fills in all nulls of one anew at each row.
_NO_CUTS: Final = "CAST(array() AS array<bigint>)"
_NO_TEXTS: Final = "CAST(array() AS array<string>)"
# What else tells rows of one id apart, as one list, and that again: Spark takes a time for each struct and its fields.
_AS_TEXTS: Final = "concat(array(condition), watches.key, CAST(watches.required AS array<string>))"
_PART: Final = "slice(version, {}, size(version) div 2)"
_WATCHES: Final = f"arrays_zip({_PART.format(2)}, {_PART.format('2 + size(version) div 2')})"
_FROM_TEXTS: Final = (
    "if(size(version) > 0, struct(version[0] AS condition, "
    f"CAST({_WATCHES} AS array<struct<key: string, required: bigint>>) AS watches), NULL) AS version"
)
_SPAN: Final = (
    *("instance", "op_id", "kind", "alone", "watches"),
    "unix_micros(start) AS start_us",
    f"{DEADLINE_US} AS deadline_us",
    "coalesce(condition = 'any', false) AS any_of",
    f"if(rivals, {_AS_TEXTS}, {_NO_TEXTS}) AS version",
)
_WATCH: Final = (
    *("instance", "op_id", "kind", "version"),
    f"if({FIRST_OF_PARTITION}, concat({_NUMBERS}, cuts), {_NUMBERS}) AS numbers",
)
_READ: Final = ("instance", "op_id", "kind", "start_us", "deadline_us", "any_of", "reached", _FROM_TEXTS)
_ROW: Final = ("instance", "op_id", "kind", "start_us", "deadline_us", "version")
_ROW_REACHED: Final = (
    "CASE WHEN first(any_of) THEN min(reached) WHEN count(reached) = count(*) THEN max(reached) END AS reached"
)
# In the order of `validity`: the first row of an id counts.
_COUNTS: Final = (
    "min_by(struct(kind, start_us, deadline_us, reached), "
    "struct(start_us, deadline_us, version.condition, kind, version.watches)) AS row"
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
    sample: Sample | None = None,
) -> DataFrame:
    """Return the outcome of every operation (`schemas.OUTCOMES`): completed or expired, when, and after what wait.

    An operation completes at the first time from its `start` to `start + timeout_ms`, both included, at which `all` or
    `any` of its watches are reached: the greatest progress of the key up to then is at least `required`. Otherwise it
    expires at the end of that time. With `deadline="exclusive"` progress at the very end comes too late (unless the
    condition holds at the start). Keys belong to their instance. Events may come in any order, twice, and long before
    or after; progress may go back.

    Lazy: nothing runs before an action, and no row is collected to the driver. Inputs are read twice unless they are
    small; where that is dear, persist them first. Rows that cannot be resolved have no outcome: see
    `invalid_operations` and `invalid_events`. `unique_ids` promises that no (instance, op_id) is there twice and saves
    the search for such. `sample` says how hot keys are found and how finely they are cut; it changes no outcome.
    Without it, tables that Spark's statistics hold for small (96 MB together, or 16 MB of files) are not looked at
    beforehand at all.

    Raises `SchemaError` for a table without the columns needed, ValueError for another `deadline`.
    """
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    check_table(operations, OPERATIONS, "operations")
    check_table(events, EVENT_COLUMNS, "events")
    ours = columns_of(operations, OPERATIONS), columns_of(events, EVENT_COLUMNS)
    sizes = [] if sample is not None else [estimated_size(table) for table in ours]
    few = few_partitions(operations.sparkSession, sizes) if sizes else None
    if few is not None:
        reached = reached_by_spark(valid_operations(operations), valid_events(events), deadline, few)
        return _combined(reached.repartition(*few, "instance", "op_id"))
    ids, sample = not unique_ids, sample or DEFAULT_SAMPLE
    files = files_of(*ours)
    if files is not None:
        seen = _seen(seen_in(files.looked(sample.fraction, ids=ids), sample))
        packed = files.packed(seen, ids=ids)
    else:
        seen = _seen(look_at(operations, events, sample=sample, ids=ids))
        packed = _packed_by_spark(operations, events, seen, ids=ids)
    by_shard = _by_shard(packed)
    # Where nothing has to be combined, Spark finds one side of this join empty, and does nothing for the other.
    several = operations.sparkSession.range(0, 1, 1, 1).where(seen.getField("several")).select()
    reached = _reached(by_shard.crossJoin(F.broadcast(several)), COMBINED, deadline)
    combined = _combined(reached.selectExpr(*_READ).repartition("instance", "op_id"))
    return _reached(by_shard, ALONE, deadline).selectExpr(*_OUTCOME).union(combined)


def _seen(look: DataFrame) -> Column:
    """Return the one row of a look as a column, of which the job has one however often it is named."""
    return look.select(F.struct("*")).scalar()


def _packed_by_spark(operations: DataFrame, events: DataFrame, seen: Column, *, ids: bool) -> DataFrame:
    """Pack the rows of tables of any kind."""
    event = F.expr(_EVENT)
    first_too = F.when(F.expr(FIRST_OF_PARTITION), F.concat(event, seen.getField("cuts"))).otherwise(event)
    rivals = is_repeated("seen") if ids else "false"
    # A column of its own, since each time that it is named it stands in the plan, with all that it is made from.
    marked = (
        valid_operations(operations)
        .withColumn("seen", seen)
        .selectExpr("*", f"{rivals} AS rivals", f"{FIRST_OF_PARTITION} AS first")
    )
    marked = marked.selectExpr(
        "*", "size(watches) = 1 AND NOT rivals AS alone", f"if(first, seen.cuts, {_NO_CUTS}) AS cuts"
    )
    return _packed(_watches(marked), valid_events(events).select(first_too.alias("numbers")))


def _watches(operations: DataFrame) -> DataFrame:
    """Return a row a watch."""
    return operations.selectExpr(*_SPAN, "cuts").selectExpr("*", "inline(watches)").selectExpr(*_WATCH)


def _packed(watches: DataFrame, events: DataFrame) -> DataFrame:
    """Pack rows by shard."""
    return events.mapInArrow(pack_events, PACKED).union(watches.mapInArrow(pack_operations, PACKED))


def _by_shard(packed: DataFrame) -> DataFrame:
    """Shuffle packed rows."""
    return packed.repartition(F.expr(spread(f"`order` div {KINDS}", SHARDS, shuffle_partitions(packed.sparkSession))))


def _reached(by_shard: DataFrame, kind: int, deadline: Deadline) -> DataFrame:
    """Tell of the operations of one kind when each watch was reached."""
    rows = part_of(by_shard, f"`order` % {KINDS} IN ({EVENTS}, {kind})").select("order", "cuts", "packed")
    reach = partial(first_reached, kind=kind, deadline=deadline)
    return rows.sortWithinPartitions("order").mapInArrow(reach, REACHED[kind])


def _combined(by_id: DataFrame) -> DataFrame:
    """Of each id, tell the outcome of the row that counts."""
    rows = by_id.groupBy(*_ROW).agg(F.expr(_ROW_REACHED))
    return rows.groupBy("instance", "op_id").agg(F.expr(_COUNTS)).selectExpr("*", "row.*").selectExpr(*_OUTCOME)
