"""Make the tables of the benchmark with Spark: random rows, the same at every run, kept as Parquet.

Progress grows with time, by about ten per event of its key, and goes back now and then. Operations require about the
progress that their key has at their start, so most keys complete some operations and expire some.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

OPERATIONS, EVENTS, KEYS = 5_000_000, 20_000_000, 500_000
_DAY_US = 86_400_000_000
_EPOCH_US = 1_767_225_600_000_000  # 2026-01-01
_FILES = 8


def make(spark: SparkSession, folder: Path, scale: float, *, hot: bool) -> Path:
    """Write `operations` and `events` below `folder` unless they are there; return their directory."""
    home = folder / f"{scale:g}-{'hot' if hot else 'even'}"
    keys, operations, events = (max(int(count * scale), 1) for count in (KEYS, OPERATIONS, EVENTS))
    for name, rows in (("operations", operations), ("events", events)):
        if (home / name / "_SUCCESS").exists():
            continue
        seed = len(name)
        number = _below(keys, seed)
        if hot:  # every second row is of key 0
            number = F.when(_below(2, seed + 1) == 0, 0).otherwise(number)
        since = _below(_DAY_US, seed + 2)
        # How many events the key has in all: its progress grows by ten with each.
        share = F.when(F.col("number") == 0, events / 2 if hot else events / keys).otherwise(events / keys)
        level = (F.col("since") / _DAY_US * share * 10).cast("long")
        table = spark.range(0, rows, 1, _FILES).select("id", number.alias("number"), since.alias("since"))
        key = F.format_string("key-%07d", F.col("number")).alias("key")
        at = F.timestamp_micros(F.col("since") + _EPOCH_US)
        instance = F.concat(F.lit("shop-"), F.col("number") % 4).alias("instance")
        if name == "events":
            made = table.select(instance, key, at.alias("at"), (level + _below(20, seed + 3) - 15).alias("progress"))
        else:
            required = (level + _below(40, seed + 3)).alias("required")
            made = table.select(
                instance,
                F.concat(F.lit("op-"), "id").alias("op_id"),
                F.lit("ORDER").alias("kind"),
                at.alias("start"),
                (_below(7_140_000, seed + 4) + 60_000).alias("timeout_ms"),
                F.array(F.struct(key, required)).alias("watches"),
                F.lit("all").alias("condition"),
            )
        made.write.mode("overwrite").parquet(f"file://{(home / name).resolve()}")
    return home


def _below(limit: int, seed: int) -> Column:
    return F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(limit))
