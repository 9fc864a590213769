"""The methods that are measured: ours, plans that people write by hand on Spark, and two engines outside Spark.

Each reads the two tables from Parquet and writes a row per operation to Parquet: instance, op_id, kind, at, completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant import tables as in_process
from abeyant.pipeline.spark.location import location

_BIN_US = 600_000_000
_OPERATION = ("instance", "op_id", "kind", "start", "until")


class Method(NamedTuple):
    """A method: `run(spark, tables, out)` does the whole work. Methods on Spark also accept a URI of the tables."""

    label: str
    run: Callable[[SparkSession, Any, Path], None]
    stands_skew: bool
    """Whether the method ends in time if one key has half of the rows; a join on the key does not."""
    on_spark: bool = True
    resolves: bool = True
    """Whether the method computes outcomes; the floor does not."""


def _tables(spark: SparkSession, tables: Path | str) -> tuple[DataFrame, DataFrame]:
    operations, events = (spark.read.parquet(f"{location(str(tables))}/{name}") for name in ("operations", "events"))
    return operations, events


def _flat(spark: SparkSession, tables: Path | str) -> tuple[DataFrame, DataFrame]:
    """Return the tables as hand-written plans use them: one watch per operation, times as integers."""
    operations, events = _tables(spark, tables)
    watch = F.col("watches")[0]
    start = F.unix_micros("start")
    until = start + F.col("timeout_ms") * 1000
    flat = operations.select(
        "instance",
        "op_id",
        "kind",
        start.alias("start"),
        until.alias("until"),
        watch.key.alias("key"),
        watch.required.alias("required"),
    )
    return flat, events.select("instance", "key", "progress", F.unix_micros("at").alias("at"))


def _write(table: DataFrame, out: Path) -> None:
    """Write the result, given a column `reached`: when the operation's condition came true in time, or null."""
    reached = F.when(F.col("reached").isNotNull(), F.greatest("reached", "start"))
    done = table.select(
        "instance",
        "op_id",
        "kind",
        F.coalesce(reached, "until").alias("at"),
        F.col("reached").isNotNull().alias("completed"),
    )
    done.write.mode("overwrite").parquet(f"file://{out.resolve()}")


def _abeyant(
    *, unique_ids: bool = False, filters: tuple[str, str] | None = None
) -> Callable[[SparkSession, Path, Path], None]:
    """Return a method that calls `pipeline.resolve`. `filters`, on operations and events, keep every row.

    A filter with arithmetic makes Spark compute the table, which is then not a plain file to `resolve`.
    """

    def run(spark: SparkSession, tables: Path, out: Path) -> None:
        operations, events = _tables(spark, tables)
        if filters is not None:
            operations, events = operations.where(filters[0]), events.where(filters[1])
        outcomes = pipeline.resolve(operations, events, unique_ids=unique_ids)
        done = outcomes.select(
            "instance",
            "op_id",
            "kind",
            F.unix_micros("at").alias("at"),
            (F.col("outcome") == "completed").alias("completed"),
        )
        done.write.mode("overwrite").parquet(f"file://{out.resolve()}")

    return run


def _floor(spark: SparkSession, tables: Path | str, out: Path) -> None:
    """Do what any method in Python has to: read both tables, pass the columns to Python, write a row per operation."""

    # Inner functions, for these reach Python's workers whole: they need not import this module and its engines.
    def first_columns(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch.column(n) for n in range(4)]
            yield pa.record_batch([*columns, pc.is_valid(columns[0])], [*batch.schema.names[:4], "completed"])

    def nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from ()

    operations, events = _flat(spark, tables)
    waiting = operations.selectExpr(*_OPERATION[:3], "until AS at", "key", "required", "start")
    passed = waiting.mapInArrow(first_columns, "instance string, op_id string, kind string, at long, completed boolean")
    taken = events.mapInArrow(nothing, passed.schema)
    passed.union(taken).write.mode("overwrite").parquet(f"file://{out.resolve()}")


def _tables_alone(spark: SparkSession, tables: Path, out: Path) -> None:
    """Resolve with `abeyant.tables` in this process, from Parquet to Parquet, without Spark."""
    found = in_process.resolve(tables / "operations", tables / "events", threads=2)
    done = pa.table(
        {
            **{name: found[name] for name in ("instance", "op_id", "kind")},
            "at": found["at"].cast(pa.int64()),
            "completed": pc.equal(found["outcome"], "completed"),
        }
    )
    out.mkdir()
    half = -(-done.num_rows // 2)

    def write(number: int) -> None:  # Arrow writes a file on one core; zstd, as the others do
        part = done.slice(number * half, half)
        pq.write_table(part, out / f"{number}.parquet", use_dictionary=["instance", "kind"], compression="zstd")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))


def _join(spark: SparkSession, tables: Path, out: Path) -> None:
    operations, events = _flat(spark, tables)
    met = (events["progress"] >= operations["required"]) & (events["at"] <= operations["until"])
    same = (operations["instance"] == events["instance"]) & (operations["key"] == events["key"])
    joined = operations.join(events, same & met, "left").select(
        *(operations[name] for name in _OPERATION), events["at"]
    )
    _write(joined.groupBy(*_OPERATION).agg(F.min("at").alias("reached")), out)


def _window(spark: SparkSession, tables: Path, out: Path) -> None:
    operations, events = _flat(spark, tables)
    rows = operations.withColumnRenamed("required", "progress").unionByName(events, allowMissingColumns=True)
    above = Window.partitionBy("instance", "key").orderBy(F.desc("progress"))
    found = rows.withColumn("first", F.min("at").over(above)).where(F.col("op_id").isNotNull())
    _write(found.withColumn("reached", F.when(F.col("first") <= F.col("until"), F.col("first"))), out)


def _bins(spark: SparkSession, tables: Path, out: Path) -> None:
    """Join operations with events of their lifetime by ten-minute bins; a second join finds events before the start."""
    operations, events = _flat(spark, tables)
    binned = events.withColumn("bin", F.floor(F.col("at") / _BIN_US))
    every = F.explode(F.sequence(F.floor(F.col("start") / _BIN_US), F.floor(F.col("until") / _BIN_US)))
    inside = (
        operations.withColumn("bin", every)
        .join(binned, ["instance", "key", "bin"])
        .where((F.col("progress") >= F.col("required")) & F.col("at").between(F.col("start"), F.col("until")))
        .select(*_OPERATION, "at")
    )
    before = (
        operations.join(events, ["instance", "key"])
        .where((F.col("progress") >= F.col("required")) & (F.col("at") < F.col("start")))
        .select(*_OPERATION, "at")
    )
    none = operations.select(*_OPERATION, F.lit(None).cast("long").alias("at"))
    _write(inside.union(before).union(none).groupBy(*_OPERATION).agg(F.min("at").alias("reached")), out)


def _duckdb(spark: SparkSession, tables: Path, out: Path) -> None:
    import duckdb

    con: Any = duckdb.connect()
    con.execute("SET threads TO 2; SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
    con.execute(f"""
        COPY (
            WITH o AS (
                SELECT instance, op_id, kind, epoch_us("start") AS begun,
                       epoch_us("start") + timeout_ms * 1000 AS until,
                       watches[1].key AS key, watches[1].required AS required
                FROM '{tables}/operations/*.parquet'
            ),
            e AS (SELECT instance, key, progress, epoch_us("at") AS at_us FROM '{tables}/events/*.parquet'),
            r AS (
                SELECT o.instance, o.op_id, o.kind, o.begun, o.until, min(e.at_us) AS reached
                FROM o LEFT JOIN e ON o.instance = e.instance AND o.key = e.key
                                  AND e.progress >= o.required AND e.at_us <= o.until
                GROUP BY ALL
            )
            SELECT instance, op_id, kind, reached IS NOT NULL AS completed,
                   CASE WHEN reached IS NULL THEN until ELSE greatest(reached, begun) END AS "at"
            FROM r
        ) TO '{out}' (FORMAT parquet, COMPRESSION zstd)
    """)
    con.close()


def _polars(spark: SparkSession, tables: Path, out: Path) -> None:
    import polars as pl

    watch = pl.col("watches").list.get(0)
    begun = pl.col("start").dt.epoch("us")
    operations = pl.scan_parquet(f"{tables}/operations/*.parquet").select(
        "instance", "op_id", "kind", begun.alias("begun"), (begun + pl.col("timeout_ms") * 1000).alias("until"),
        watch.struct.field("key"), watch.struct.field("required"),
    )  # fmt: skip
    events = pl.scan_parquet(f"{tables}/events/*.parquet").with_columns(pl.col("at").dt.epoch("us"))
    met = (pl.col("progress") >= pl.col("required")) & (pl.col("at") <= pl.col("until"))
    reached = (
        operations.join(events, on=["instance", "key"])
        .filter(met)
        .group_by("instance", "op_id")
        .agg(pl.col("at").min().alias("reached"))
    )
    both = operations.join(reached, on=["instance", "op_id"], how="left")
    at = pl.when(pl.col("reached").is_null()).then("until").otherwise(pl.max_horizontal("reached", "begun"))
    done = both.select("instance", "op_id", "kind", at.alias("at"), pl.col("reached").is_not_null().alias("completed"))
    done.collect(engine="streaming").write_parquet(out)


METHODS = {
    "floor": Method("floor: read, hand to Python, write", _floor, True, resolves=False),
    "abeyant": Method("abeyant: pipeline.resolve", _abeyant(), True),
    "abeyant-filtered": Method(
        "abeyant, a filter on each table", _abeyant(filters=("timeout_ms > 0", "progress > -1000000")), True
    ),
    "abeyant-computed": Method(
        "abeyant, filters that Spark computes", _abeyant(filters=("timeout_ms % 7 > -7", "progress % 7 > -7")), True
    ),
    "abeyant-unique": Method("abeyant, unique_ids=True", _abeyant(unique_ids=True), True),
    "join": Method("Spark: equi-join, filter, min", _join, False),
    "window": Method("Spark: union, window min by progress", _window, True),
    "bins": Method("Spark: range join on 10-minute bins", _bins, False),
    "tables": Method("abeyant: tables.resolve, no Spark", _tables_alone, True, on_spark=False),
    "duckdb": Method("DuckDB: exact range join", _duckdb, False, on_spark=False),
    "polars": Method("Polars: join, filter, min", _polars, False, on_spark=False),
}
