"""`resolve` over whole tables.

    operations ── valid ── one row a watch ── packed ──┐             ┌─ reached ───────────────────────────── outcomes
                                                       ├─ by shard ──┼─ profile
    events ────── valid ───────────────────── packed ──┘             └─ cut ─ by shard ┬─ reached ─────────── outcomes
                                                                                       └─ reached ─ combined ─ outcomes

For each watch of an operation, the time at which it was reached is computed. If the operation has one watch, and no
other row can have its id, this time decides the outcome: such operations go the *direct* way. All others go the *slow*
way, where their watches are *combined* by id: of several rows with one id only the first counts, and all or any of its
watches have to be reached. The shards of hot keys are cut and shuffled a second time, and then go the same two ways. A
profile, computed while rows are packed, decides which rows go which way.

Workers pack the rows that Spark has read (`from_spark`), or read the files themselves (`plain_parquet`). Packing does
not pay for tables that are small by Spark's own statistics: Spark alone resolves them (`small`), and combines all of
their operations.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.resolver.rules import has_own_rules
from abeyant.pipeline.resolver.tables.by_rules import SEVERAL_KEYS, resolve_by_rules
from abeyant.pipeline.resolver.tables.from_spark import packed_by_spark
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE, Sample
from abeyant.pipeline.resolver.tables.packing import (
    ALONE,
    COARSE,
    CONDITION,
    EVENTS,
    IS_ONE,
    KINDS,
    NTH,
    ORDERS,
    PACKED,
    PROFILE,
    SHARDS,
    spot,
)
from abeyant.pipeline.resolver.tables.plain_parquet import (
    Files,
    PlainTable,
    files_of,
    may_have_steps,
    plain_operations,
)
from abeyant.pipeline.resolver.tables.profile import DIRECT, SLOW, merge_profiles
from abeyant.pipeline.resolver.tables.reaching import (
    REACHED,
    TO_COMBINE,
    cut_hot_keys,
    first_reached,
    reached_to_combine,
)
from abeyant.pipeline.resolver.tables.small import (
    SmallTablePlan,
    are_large,
    are_moderate,
    reached_by_spark,
    small_table_plan,
)
from abeyant.pipeline.resolver.tables.validity import valid_events, valid_operations
from abeyant.pipeline.schemas import EVENTS as EVENT_COLUMNS
from abeyant.pipeline.sources.tables import complete
from abeyant.pipeline.spark.columns import columns_of, operations_schema
from abeyant.pipeline.spark.plans import estimated_size
from abeyant.pipeline.spark.session import shuffle_partitions
from abeyant.pipeline.spark.spreading import spread
from abeyant.tables.calendar import Calendar
from abeyant.tables.contradictions import check_deadline
from abeyant.tables.rules import Combine, Count, Deadline, Holds, Rules, Serves, Within

__all__ = ["resolve"]

# Rows of one id are distinguished by their condition and watches; with one watch, `version` is a hash of that watch.
_ROW: Final = ("instance", "op_id", "kind", "start_us", "deadline_us", "condition", "version")
_WATCH_ROW: Final = (
    *(name for name in _ROW if name not in ("condition", "version")),
    f"flags div {CONDITION} % {NTH // CONDITION} AS condition",
    f"if(flags % 2 = {IS_ONE}, xxhash64(key, required), version) AS version",
    f"flags div {NTH} AS nth",
    *("key", "required", "repeated", "reached"),
)
_ROW_REACHED: Final = (
    "CASE WHEN condition = 2 THEN min(reached) WHEN count(reached) = count(*) THEN max(reached) END AS reached"
)
_ROW_WATCHES: Final = "array_sort(collect_set(struct(nth, key, required)) FILTER (WHERE repeated)) AS watches"
# The row of an id that counts, the first in the order of `validity`.
_COUNTS: Final = (
    "min_by(struct(kind, start_us, deadline_us, reached), "
    "struct(start_us, deadline_us, condition, kind, watches)) AS row"
)
# As for large tables, but with the condition and the watches themselves in place of codes and hashes.
_SMALL_ROW: Final = ("instance", "op_id", "kind", "start_us", "deadline_us", "version")
_SMALL_REACHED: Final = (
    "CASE WHEN first(any_of) THEN min(reached) WHEN count(reached) = count(*) THEN max(reached) END AS reached"
)
_SMALL_COUNTS: Final = (
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
    count: Count = "always",
    combine: Combine = "max",
    holds: Holds = "ever",
    serves: Serves = "every",
    within: Within = "whole",
    calendar: Calendar | None = None,
    details: bool = False,
    unique_ids: bool = False,
    sample: Sample | None = None,
) -> DataFrame:
    """Return the outcome of every operation (`schemas.OUTCOMES`): completed or expired, when, and after what wait.

    An operation completes at the first time from its `start` to `start + timeout_ms`, both included, at which `all` or
    `any` of its watches are reached: the greatest progress of the key up to then is at least `required`. Otherwise it
    expires at the end of that time. With `deadline="exclusive"` progress exactly at the end is too late (unless the
    condition holds at the start). Keys belong to their instance. Events may be in any order, repeated, and long before
    or after; progress may decrease.

    `count`, `combine`, `holds`, `serves`, `within` and `calendar` change when an operation completes, as in
    `abeyant.tables.resolve` and with the same outcomes; so do the condition `then`, watches with a `role`, and the
    columns `cancel_key`, `extend_key`, `pause_key`, `timeout`, `deadline` and `extend` (`docs/design-resolve.md`). Some
    operations may then be `cancelled`, or `pending` (for ever: `at` is null). With `details` the outcomes have the
    watch that decided, and how many events counted (`schemas.DETAILS`).

    Lazy: nothing runs before an action, with two exceptions. A job checks whether any `condition` is `then`, if the
    column exists and neither an option nor the files' statistics decide it. With options, jobs find the hot keys of
    large tables. Over plain Parquet files the driver reads some rows to find hot keys. Apart from these rows, only the
    names of hot keys and their cuts are collected to the driver. Without options, each input is read once. Rows that
    cannot be resolved have no outcome: see `rejected_operations` and `rejected_events`. `unique_ids` promises that no
    (instance, op_id) occurs twice, and saves the search for duplicates. `sample` sets how hot keys are found and how
    finely they are cut; it changes no outcome. Without it, tables that are small by Spark's statistics (96 MB together,
    or 16 MB of files) are resolved by Spark alone.

    Raises `SchemaError` for a table without the columns needed, ValueError for an unknown value of an option and for
    options that contradict each other. Watches that contradict the options fail the job.
    """
    rules = Rules(deadline, count, combine, holds, serves, within, calendar, details)
    columns = {column.lower() for column in operations.columns}
    operations, events = complete(operations, "operations"), complete(events, "events")
    schema = operations_schema(operations)
    check_deadline(schema.fieldNames(), rules)
    tables = columns_of(operations, schema), columns_of(events, EVENT_COLUMNS)
    sizes = [] if sample is not None else [estimated_size(table) for table in tables]
    small = small_table_plan(operations.sparkSession, sizes) if sizes else None
    has_rules = has_own_rules(schema, rules)
    # The files' footers are read once, for the search for `then` and for the direct reading.
    plain = plain_operations(tables[0]) if not has_rules and (small is None or "condition" in columns) else None
    if has_rules or ("condition" in columns and _has_steps(operations, plain)):
        several = not columns.isdisjoint(SEVERAL_KEYS)
        if sample is None and are_large(sizes):
            sample = DEFAULT_SAMPLE
        return resolve_by_rules(
            operations, events, rules, unique_ids=unique_ids, several=several, small=small, sample=sample
        )
    if small is not None:
        return _plain_of_small(operations, events, deadline, small)
    together = COARSE if are_moderate(sizes, shuffle_partitions(operations.sparkSession)) else 1
    files = files_of(plain, tables[1])
    return _plain(operations, events, files, deadline, unique_ids=unique_ids, sample=sample, together=together)


def _has_steps(operations: DataFrame, plain: PlainTable | None) -> bool:
    """Return whether any condition is `then`. Runs a job unless the plan or the files' statistics decide it."""
    return may_have_steps(operations, plain) and not operations.where("condition = 'then'").select(F.lit(1)).isEmpty()


def _plain_of_small(operations: DataFrame, events: DataFrame, deadline: Deadline, plan: SmallTablePlan) -> DataFrame:
    """Return the outcomes of small tables, made by `complete`, with no option but `deadline`."""
    reached = reached_by_spark(valid_operations(operations), valid_events(events), deadline, plan)
    rows = plan.repartition(reached, "instance", "op_id").groupBy(*_SMALL_ROW).agg(F.expr(_SMALL_REACHED))
    return _counting(rows, _SMALL_COUNTS)


def _plain(
    operations: DataFrame,
    events: DataFrame,
    files: Files | None,
    deadline: Deadline,
    *,
    unique_ids: bool,
    sample: Sample | None,
    together: int,
) -> DataFrame:
    """Return the outcomes of tables of any size with no option but `deadline`. Read `files` instead, if they are given.

    `together` neighbouring shards are packed as one.
    """
    ids, sample = not unique_ids, sample or DEFAULT_SAMPLE
    if files:
        packed = files.packed(sample, ids=ids, together=together)
    else:
        packed = packed_by_spark(operations, events, sample, ids=ids, together=together)
    place = F.expr(spread(spot(together), SHARDS // together, shuffle_partitions(operations.sparkSession)))
    by_shard = packed.repartition(place)
    profiled = _part_of(by_shard, F.expr(f"`order` % {KINDS} = {PROFILE}"))
    # Spark computes a scalar subquery once, however often the plan names it.
    profile = merge_profiles(profiled, sample, together).select(F.struct("*")).scalar()

    def going(way: int) -> DataFrame:
        ways = profile.getField("ways")[F.expr(f"int(`order` % {ORDERS})")]
        return _part_of(by_shard, ways.bitwiseAND(way) > 0).sortWithinPartitions("order")

    reach = partial(first_reached, deadline=deadline)
    direct = _with_profile(going(DIRECT), profile).mapInArrow(reach, REACHED).selectExpr(*_OUTCOME)
    cut = _with_profile(going(SLOW), profile).mapInArrow(partial(cut_hot_keys, together=together), PACKED)
    second_shuffle = cut.repartition(place)
    way = F.expr(f"`order` div {ORDERS}")
    of_one = F.expr(f"`order` % {KINDS}").isin(EVENTS, ALONE)
    of_hot = _part_of(second_shuffle, of_one & (way.bitwiseAND(DIRECT) > 0)).sortWithinPartitions("order")
    cut_direct = _with_profile(of_hot, profile).mapInArrow(reach, REACHED).selectExpr(*_OUTCOME)
    of_several = _part_of(second_shuffle, way.bitwiseAND(SLOW) > 0).sortWithinPartitions("order")
    to_combine = partial(reached_to_combine, deadline=deadline)
    watches = _with_profile(of_several, profile).mapInArrow(to_combine, TO_COMBINE).selectExpr(*_WATCH_ROW)
    by_id = watches.repartition("instance", "op_id").groupBy(*_ROW)
    rows = by_id.agg(F.expr(_ROW_REACHED), F.expr(_ROW_WATCHES))
    return direct.union(cut_direct).union(_counting(rows, _COUNTS))


def _with_profile(packed: DataFrame, profile: Column) -> DataFrame:
    """Add a column `profile`, which is set only in the first row of each partition, since a profile may be long."""
    is_first = F.expr("(monotonically_increasing_id() & ((1L << 33) - 1)) = 0")
    return packed.select("order", "packed", F.when(is_first, profile).alias("profile"))


def _part_of(shuffled: DataFrame, condition: Column) -> DataFrame:
    """Filter a shuffled table so that Spark shuffles it once for several filters.

    Spark would push each filter below the shuffle, and could then share no shuffle. It does not push a filter that it
    takes for nondeterministic.
    """
    return shuffled.where(condition | (F.monotonically_increasing_id() < 0))


def _counting(rows: DataFrame, counts: str) -> DataFrame:
    """Return one outcome for each id: the outcome of the row that counts."""
    return rows.groupBy("instance", "op_id").agg(F.expr(counts)).selectExpr("*", "row.*").selectExpr(*_OUTCOME)
