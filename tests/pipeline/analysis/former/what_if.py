"""What other time-outs would have done: exact where the events are known; of a log, no more than it tells.

When an operation's condition came true does not hang on its time-out (it is over the running maximum of each key's
progress), so one look with the longest time-out tells what every shorter one does: an operation whose condition took w
completes under T if w <= T (`deadline="exclusive"`: w < T, or w = 0), else it expires after T.

A log knows of an operation that expired only that its condition took longer than its time-out. Under a longer one it is
`unknown`. `timeout_curve` gives an estimate there, which assumes that such operations are like the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.resolver.tables import resolve
from abeyant.pipeline.schemas import OBSERVED, WHAT_IF, check_table
from pipeline.analysis.former.ranked import PERCENTILES, rank, with_all_instances

__all__ = ["what_if"]

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
    """Return what each time-out would have done to the operations of each instance (`*`: all) and kind (`WHAT_IF`).

    With `events` the answer is exact. The operations' own time-outs do not matter, and may be null. Without `events`,
    the operations must tell how they ended (`outcome`, `waited_ms`), as those of a request log do. Then operations that
    were not watched for so long are `unknown`; `expired_share` and `expired_share_most` are the least and the greatest
    share that may have expired; percentiles that depend on unknown ones are null. Operations without a wait are left
    out.

    Lazy, and one pass whatever the number of time-outs. With `events` it takes and rejects what `resolve` does.
    Raises `SchemaError` for a table that lacks a column, ValueError for no time-out at all, or one that is no whole
    number of milliseconds from 0.
    """
    asked = sorted(set(timeouts_ms))
    if not asked:
        raise ValueError("timeouts_ms is empty")
    for timeout in asked:
        if isinstance(timeout, bool) or not isinstance(timeout, int) or not 0 <= timeout <= _MOST_MS:
            raise ValueError(f"a time-out must be a whole number of milliseconds from 0 to {_MOST_MS}, not {timeout!r}")
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    watched = _observed(operations) if events is None else _resolved(operations, events, asked[-1])
    ranked = rank(with_all_instances(watched), _GROUP)
    others, exclusive = F.col("operations") - F.col("completed"), deadline == "exclusive"
    by_group = ranked.rows.groupBy(*_GROUP).agg(
        F.sum("operations").alias("operations"),
        F.min(F.when(others > 0, F.col("wait_us"))).alias("_unwatched"),
        *(_percentile(percent).alias(f"_{name}") for name, percent in _RANKS.items()),
        F.array(*(_ended(timeout, exclusive) for timeout in asked)).alias("_ended"),
    )
    expired = F.col("operations") - F.col("completed") - F.col("unknown")
    each = by_group.select("*", F.inline("_ended")).withColumn("expired", expired)
    shares = {"expired_share": F.col("expired"), "expired_share_most": others}
    waits_ms = {name: _cut_off(name, percent) for name, percent in _RANKS.items()}
    return each.withColumns({name: count / F.col("operations") for name, count in shares.items()} | waits_ms).select(
        *WHAT_IF.fieldNames()
    )


def _resolved(operations: DataFrame, events: DataFrame, longest_ms: int) -> DataFrame:
    # A negative one stays, and is rejected.
    patient = operations.withColumn("timeout_ms", F.expr(f"if(timeout_ms < 0, timeout_ms, {longest_ms}L)"))
    return _waits(resolve(patient, events), F.lit(None).cast("long"))


def _observed(operations: DataFrame) -> DataFrame:
    check_table(operations, StructType([field for field in OBSERVED.fields if field.name in _NEEDED]), "operations")
    return _waits(operations.where(F.col("waited_ms").between(0, _MOST_MS)), F.try_multiply("timeout_ms", F.lit(1000)))


def _waits(outcomes: DataFrame, timeout_us: Column) -> DataFrame:
    """Return (instance, kind, wait_us, outcome): how long it was watched, and whether it had completed then."""
    wait_us = F.round(F.col("waited_ms") * 1000).cast("long")
    # A log that saw it expire by its own time-out saw it wait for all of that: Kafka fires up to 1 ms early.
    watched = F.when(F.col("outcome") == "expired", F.greatest(wait_us, timeout_us)).otherwise(wait_us)
    # A group's columns are not null: the ranks are found by joining on them.
    return outcomes.select(
        *(F.coalesce(name, F.lit("")).alias(name) for name in _GROUP), watched.alias("wait_us"), "outcome"
    )


def _ended(timeout_ms: int, exclusive: bool) -> Column:
    """Count what completes under a time-out, and what nobody watched for so long."""
    wait, limit = F.col("wait_us"), F.lit(timeout_ms * 1000)
    in_time = (wait < limit) | (wait == 0) if exclusive else wait <= limit
    return F.struct(
        F.lit(timeout_ms).cast("long").alias("timeout_ms"),
        F.sum(F.when(in_time, F.col("completed")).otherwise(0)).alias("completed"),
        F.sum(F.when(wait < limit, F.col("operations") - F.col("completed")).otherwise(0)).alias("unknown"),
    )


def _percentile(percent: int) -> Column:
    # Of those who waited just so long, the completed come first: the others waited longer.
    upto = F.col("before") + F.col("completed")
    return F.min(F.when(upto * 100 >= F.col("total") * percent, F.col("wait_us")))


def _cut_off(name: str, percent: int) -> Column:
    """Return a percentile of the waits as a time-out cuts them off, in ms; null where it depends on unknown ones."""
    wait, limit = F.col(f"_{name}"), F.col("timeout_ms") * 1000
    at_limit = (F.col("operations") - F.col("expired")) * 100 < F.col("operations") * percent
    tells = F.least(wait, limit) <= F.coalesce("_unwatched", F.lit(_MOST_MS * 1000))
    return F.when(at_limit, limit).when(tells, F.least(wait, limit)) / 1000
