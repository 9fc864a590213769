"""Incidents: when, where and on what operations expired, or waited far longer than their kind does, in bursts.

The rule. An operation *suffers* when it

* expired, unless it is a long poll (a fetch): for that, to expire is the ordinary end; or
* waited `LONG_TIMES` times as long as 95 in 100 of those of its kind that waited, and at least `LONG_MS`.

A *burst* is a run of such operations of one kind, on any broker, in which no `GAP_S` whole seconds pass between the end
of one and the end of the next. A burst of at least `LEAST` operations is an incident.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import ALL_INSTANCES, INCIDENTS, OPERATIONS, check_table
from pipeline.analysis.former.ranked import Ranked, checked, ranked_waits

__all__ = ["GAP_S", "LEAST", "LONG_MS", "LONG_TIMES", "MOST_KEYS", "incidents"]

LONG_TIMES: Final = 10
LONG_MS: Final = 100
GAP_S: Final = 10
LEAST: Final = 3
MOST_KEYS: Final = 5
"""Keys that an incident names: those on which most of its operations waited."""

_BURST: Final = ("kind", "burst")


def incidents(operations: DataFrame, ranked: Ranked | None = None) -> DataFrame:
    """Return the incidents of a log (`schemas.INCIDENTS`), by the rule at the head of this module.

    `ranked` are the operations' ranked waits, where they are at hand already. Spark sorts one row a kind and second,
    not the operations.
    """
    check_table(operations, OPERATIONS.__class__([OPERATIONS["watches"]]), "operations")
    ends = F.unix_micros("start") + F.col("wait_us")
    suffering = (
        checked(operations)
        .where((F.col("wait_us") > 0) & F.col("start").isNotNull())
        .join(F.broadcast(_long(ranked or ranked_waits(operations))), "kind", "left")
        .withColumn("expires", (F.col("outcome") == "expired") & ~F.col("kind").contains("FETCH"))
        .where(F.col("expires") | (F.col("wait_us") >= F.col("long_us")))
        .withColumns({"end_us": ends, "second": F.floor(ends / 1_000_000)})
    )
    burst = _bursts(suffering)
    struck = suffering.join(F.broadcast(burst), ["kind", "second"])
    found = struck.groupBy(*_BURST).agg(
        F.timestamp_micros(F.min(F.unix_micros("start"))).alias("first"),
        F.timestamp_micros(F.max("end_us")).alias("last"),
        F.count("*").alias("operations"),
        F.count_if("expires").alias("expired"),
        (F.max("wait_us") / 1000).alias("longest_ms"),
        F.array_sort(F.collect_set("instance")).alias("instances"),
    )
    return (
        found.where(F.col("operations") >= LEAST).join(_keys(struck), [*_BURST], "left").select(*INCIDENTS.fieldNames())
    )


def _long(ranked: Ranked) -> DataFrame:
    """From what wait on an operation of each kind suffers."""
    waits = ranked.rows.where((F.col("wait_us") > 0) & (F.col("instance") != ALL_INSTANCES))
    waited = waits.groupBy("kind", "wait_us").agg(F.sum("operations").alias("operations"))
    usual = waited.groupBy("kind").agg(F.expr("percentile(wait_us, 0.95, operations)").alias("usual_us"))
    return usual.select("kind", F.greatest(F.col("usual_us") * LONG_TIMES, F.lit(LONG_MS * 1000.0)).alias("long_us"))


def _bursts(suffering: DataFrame) -> DataFrame:
    """Number the bursts: (kind, second, burst)."""
    order = Window.partitionBy("kind").orderBy("second")
    apart = F.coalesce(F.col("second") - F.lag("second").over(order) > GAP_S, F.lit(True))
    return (
        suffering.select("kind", "second")
        .distinct()
        .withColumn("begins", apart.cast("long"))
        .withColumn("burst", F.sum("begins").over(order))
        .select("kind", "second", "burst")
    )


def _keys(struck: DataFrame) -> DataFrame:
    """Of each burst, how many keys it struck, and those that it struck most."""
    keys = F.explode(F.array_distinct(F.transform("watches", lambda watch: watch["key"])))
    counted = struck.select(*_BURST, keys.alias("key")).groupBy(*_BURST, "key").agg(F.count("*").alias("operations"))
    rank = Window.partitionBy(*_BURST).orderBy(F.col("operations").desc(), "key")
    ranked = counted.withColumn("rank", F.row_number().over(rank))
    most = F.array_sort(F.collect_list(F.when(F.col("rank") <= MOST_KEYS, F.struct("rank", "key"))))
    return ranked.groupBy(*_BURST).agg(
        F.count("*").alias("keys_struck"), F.transform(most, lambda entry: entry["key"]).alias("keys")
    )
