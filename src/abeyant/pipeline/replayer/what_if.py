"""Count outcomes under other time-outs: exact if events are given; from a log, some outcomes are unknown.

The time at which a condition comes true does not depend on the time-out (it is a test of the running maximum of each
key's progress). So resolving once with the longest time-out gives the outcome under every shorter time-out T: an
operation whose condition took w completes if w <= T (`deadline="exclusive"`: w < T, or w = 0), else it expires after T.

Of an operation that expired, a log says only that its condition took longer than its time-out. Under a longer time-out
its outcome is `unknown`. `timeout_curve` estimates unknown outcomes, assuming that such operations are like the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.analysis.columns import Integers
from abeyant.pipeline.analysis.ranked import PERCENTILES, Ranked, rank_by_group
from abeyant.pipeline.resolver.tables import resolve
from abeyant.pipeline.schemas import ALL_INSTANCES, OBSERVED, WHAT_IF
from abeyant.pipeline.spark.columns import check_table

__all__ = ["client_timeouts", "own_timeouts", "what_if"]

Deadline = Literal["inclusive", "exclusive"]

_MOST_MS: Final = 1 << 50
_RANKS: Final = PERCENTILES | {"max_ms": 100}
_GROUP: Final = ("instance", "kind")
_NEEDED: Final = ("instance", "kind", "timeout_ms", "outcome", "waited_ms")


def what_if(
    operations: DataFrame,
    events: DataFrame | None,
    timeouts_ms: Iterable[int],
    *,
    deadline: Deadline = "inclusive",
) -> DataFrame:
    """Count the outcomes of each time-out, by instance (`*`: all) and kind (`schemas.WHAT_IF`).

    With `events` the counts are exact; the operations' own time-outs are ignored and may be null. Without `events`, the
    operations need `outcome` and `waited_ms`, as the operations of a request log have. Operations that expired before
    the time-out in question are then `unknown`. `expired_share` and `expired_share_most` bound the share that expired;
    percentiles that depend on unknown outcomes are null. Operations whose wait is null are not counted.

    Lazy, and one pass for any number of time-outs. With `events` it takes and rejects what `resolve` does. Raises
    `SchemaError` for a table that lacks a column, and ValueError if there is no time-out, or a time-out is not a whole
    number of milliseconds, at least 0.
    """
    timeouts = sorted(set(timeouts_ms))
    if not timeouts:
        raise ValueError("timeouts_ms is empty: give at least one time-out")
    for timeout in timeouts:
        if isinstance(timeout, bool) or not isinstance(timeout, int) or not 0 <= timeout <= _MOST_MS:
            raise ValueError(f"a time-out must be a whole number of milliseconds from 0 to {_MOST_MS}, not {timeout!r}")
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    watched = _observed(operations) if events is None else _resolved(operations, events, timeouts[-1])
    rows = partial(_rows, timeouts_ms=timeouts, exclusive=deadline == "exclusive")
    return rank_by_group(watched, _GROUP, rows, WHAT_IF, all_instances=True)


def own_timeouts(operations: DataFrame) -> DataFrame:
    """Return the least, median and greatest time-out of each instance's (`*`: all) operations by kind (`OWN_TIMEOUTS`).

    The median is one of the time-outs; its rank is exact to 1 in 10,000. Lazy, and one pass.
    """
    expired = F.col("outcome") == "expired"
    named = operations.where("timeout_ms is not null").select(
        F.explode(F.array(F.coalesce("instance", F.lit("")), F.lit(ALL_INSTANCES))).alias("instance"),
        F.coalesce("kind", F.lit("")).alias("kind"),
        "timeout_ms",
        "outcome",
    )
    return named.groupBy(*_GROUP).agg(
        F.count("*").alias("operations"),
        F.min("timeout_ms").alias("least_ms"),
        F.percentile_approx("timeout_ms", 0.5).alias("median_ms"),
        F.max("timeout_ms").alias("most_ms"),
        F.min(F.when(expired, F.col("timeout_ms"))).alias("expired_least_ms"),
        F.max(F.when(expired, F.col("timeout_ms"))).alias("expired_most_ms"),
    )


def client_timeouts(operations: DataFrame) -> DataFrame:
    """Count operations, and expired operations, by kind, client and time-out (`CLIENT_TIMEOUTS`). Lazy."""
    named = {name: F.coalesce(name, F.lit("")) for name in ("kind", "client_id")}
    return (
        operations.where("timeout_ms is not null")
        .withColumns(named)
        .groupBy(*named, "timeout_ms")
        .agg(F.count("*").alias("operations"), F.count(F.when(F.col("outcome") == "expired", 1)).alias("expired"))
    )


def _resolved(operations: DataFrame, events: DataFrame, longest_ms: int) -> DataFrame:
    # A negative one stays, and is rejected.
    patient = operations.withColumn("timeout_ms", F.expr(f"if(timeout_ms < 0, timeout_ms, {longest_ms}L)"))
    return _waits(resolve(patient, events), F.lit(None).cast("long"))


def _observed(operations: DataFrame) -> DataFrame:
    check_table(operations, StructType([field for field in OBSERVED.fields if field.name in _NEEDED]), "operations")
    return _waits(operations.where(F.col("waited_ms").between(0, _MOST_MS)), F.try_multiply("timeout_ms", F.lit(1000)))


def _waits(outcomes: DataFrame, timeout_us: Column) -> DataFrame:
    """Return (instance, kind, wait_us, outcome) per operation: how long it was observed, and whether it completed."""
    wait_us = F.round(F.col("waited_ms") * 1000).cast("long")
    # If it expired by its own time-out, it waited for all of that, whatever the log shows: Kafka is up to 1 ms early.
    watched = F.when(F.col("outcome") == "expired", F.greatest(wait_us, timeout_us)).otherwise(wait_us)
    return outcomes.select(
        *(F.coalesce(name, F.lit("")).alias(name) for name in _GROUP), watched.alias("wait_us"), "outcome"
    )


def _rows(ranked: Ranked, *, timeouts_ms: Sequence[int], exclusive: bool) -> pa.Table:
    """Return the rows of `WHAT_IF`, one for each time-out and group, from the ranked waits of whole groups."""
    unwatched = ranked.operations - ranked.completed
    known_us = np.minimum.reduceat(np.where(unwatched > 0, ranked.wait_us, _MOST_MS * 1000), ranked.starts)
    waits = {name: (percent, _percentile(ranked, percent)) for name, percent in _RANKS.items()}
    parts = []
    for timeout_ms in timeouts_ms:
        limit = timeout_ms * 1000
        below = ranked.wait_us < limit
        in_time = below | (ranked.wait_us == (0 if exclusive else limit))
        completed = ranked.sums(ranked.completed * in_time)
        unknown = ranked.sums(unwatched * below)
        expired = ranked.total - completed - unknown
        columns = {
            **{name: ranked.groups[name] for name in _GROUP},
            "timeout_ms": np.full(len(ranked.total), timeout_ms, np.int64),
            "operations": ranked.total,
            "completed": completed,
            "expired": expired,
            "unknown": unknown,
            "expired_share": expired / ranked.total,
            "expired_share_most": (ranked.total - completed) / ranked.total,
        }
        for name, (percent, wait) in waits.items():
            # Capped at the time-out; null where it depends on unknown operations.
            at_limit = (ranked.total - expired) * 100 < ranked.total * percent
            cut = np.minimum(wait, limit)
            is_known = at_limit | (cut <= known_us)
            columns[name] = pa.array(np.where(at_limit, limit, cut) / 1000, mask=~is_known)
        parts.append(pa.table(columns).select(WHAT_IF.fieldNames()))
    return pa.concat_tables(parts)


def _percentile(ranked: Ranked, percent: int) -> Integers:
    """Return each group's percentile, from completed operations; all others waited longer, for an unknown time."""
    before = np.cumsum(ranked.operations) - ranked.operations
    # Among equal waits, the completed come first.
    found = np.searchsorted(before + ranked.completed, before[ranked.starts] - -ranked.total * percent // 100)
    wait = ranked.wait_us[np.minimum(found, len(before) - 1)]
    return np.where(found < ranked.ends, wait, _MOST_MS * 1000)
