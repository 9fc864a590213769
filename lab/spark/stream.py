"""Measure how fast a stream is resolved, beside a floor that only reads and writes the same files, in one run.

python -m lab.spark.stream               200,000 operations and 800,000 events in 10 batches, 3 rounds
python -m lab.spark.stream --rounds 1 --methods floor abeyant

Each method reads the same files, with an hour of rows per batch, from a new checkpoint. The first round warms Spark up;
it is printed but not counted. The outcomes of `abeyant` must be those of `resolve` over the whole tables.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from abeyant import pipeline
from lab.spark.processes import Cost

OPERATIONS, EVENTS, KEYS, BATCHES = 200_000, 800_000, 5_000, 10
_HOUR_US = 3_600_000_000
_EPOCH_US = 1_767_225_600_000_000  # 2026-01-01
_LATENESS = 30.0


class Bench:
    """The benchmark's tables and folders, with the calls that every method needs."""

    def __init__(self, spark: SparkSession, folder: Path, shards: int) -> None:
        self.spark, self.folder, self.shards = spark, folder.absolute(), shards

    def make(self) -> None:
        """Write both tables in order of time, a file per batch, unless they are there."""
        for name, rows in (("operations", OPERATIONS), ("events", EVENTS)):
            place = self.folder / name
            if (place / "_SUCCESS").exists():
                continue
            self._table(name, rows).write.mode("overwrite").parquet(place.as_uri())
            for number, file in enumerate(sorted(place.glob("part-*"))):  # a stream reads the oldest file first
                os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def _table(self, name: str, rows: int) -> DataFrame:
        seed, span = len(name), BATCHES * _HOUR_US
        since = F.col("id") * (span // rows) + _below(span // rows, seed)
        table = self.spark.range(0, rows, 1, BATCHES).withColumns({"since": since, "number": _below(KEYS, seed + 1)})
        level = (F.col("since") / span * (EVENTS / KEYS) * 10).cast("long")
        instance = F.concat(F.lit("shop-"), F.col("number") % 4).alias("instance")
        key = F.format_string("key-%07d", F.col("number")).alias("key")
        at = F.timestamp_micros(F.col("since") + _EPOCH_US)
        if name == "events":
            return table.select(instance, key, at.alias("at"), (level + _below(20, seed + 2) - 15).alias("progress"))
        return table.select(
            instance,
            F.concat(F.lit("op-"), "id").alias("op_id"),
            F.lit("ORDER").alias("kind"),
            at.alias("start"),
            (_below(540_000, seed + 3) + 60_000).alias("timeout_ms"),
            F.array(F.struct(key, (level + _below(40, seed + 2)).alias("required"))).alias("watches"),
            F.lit("all").alias("condition"),
        )

    def stream(self, name: str) -> DataFrame:
        """Return a stream of a table, which reads one file per batch."""
        place = (self.folder / name).as_uri()
        schema = self.spark.read.parquet(place).schema
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(place)

    def answers(self) -> DataFrame:
        """Return the stream that `resolve_stream` makes of both tables."""
        return pipeline.resolve_stream(
            self.stream("operations"), self.stream("events"),
            lateness=_LATENESS, tick=None, end_of_input=self.folder / "end", shards=self.shards,
        )  # fmt: skip

    @property
    def out(self) -> Path:
        """The folder to which outcomes are written."""
        return self.folder / "out"

    def start(self, writer: Any) -> StreamingQuery:
        """Start a query that reads all existing files and then ends."""
        query: StreamingQuery = (
            writer.option("checkpointLocation", (self.folder / "checkpoint").as_uri())
            .trigger(availableNow=True)
            .start()
        )
        return query


def _below(limit: int, seed: int) -> Column:
    return F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(limit))


def _floor(bench: Bench) -> StreamingQuery:
    watch = F.col("watches")[0]
    operations = bench.stream("operations").select("instance", watch.key.alias("key"), "start", watch.required)
    both = operations.union(bench.stream("events"))
    return bench.start(both.writeStream.format("parquet").option("path", bench.out.as_uri()))


def _abeyant(bench: Bench) -> StreamingQuery:
    return bench.start(bench.answers().writeStream.foreachBatch(pipeline.ParquetSink(bench.out.as_uri())))


def _abeyant_sparks_sink(bench: Bench) -> StreamingQuery:
    outcomes = pipeline.outcomes_of(bench.answers())
    return bench.start(outcomes.writeStream.format("parquet").option("path", (bench.out / "outcomes").as_uri()))


METHODS: dict[str, tuple[str, Callable[[Bench], StreamingQuery]]] = {
    "floor": ("the floor: read and write", _floor),
    "abeyant": ("abeyant, ParquetSink", _abeyant),
    "abeyant-spark-sink": ("abeyant, Spark's Parquet sink", _abeyant_sparks_sink),
}


def main(given: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 if outcomes are wrong."""
    options = _arguments(given)
    config = {"spark.sql.shuffle.partitions": str(options.partitions), "spark.driver.memory": "4g"}
    spark = pipeline.spark_session(options.master, "abeyant stream benchmark", config=config)
    bench = Bench(spark, options.folder, options.shards)
    bench.make()
    costs: dict[str, list[Cost]] = {name: [] for name in options.methods}
    wrong = 0
    for round_ in range(options.rounds + 1):
        for name in options.methods:
            for left in (bench.out, bench.folder / "checkpoint", bench.folder / "end"):
                shutil.rmtree(left, ignore_errors=True)
            with Cost() as cost:
                query = METHODS[name][1](bench)
                query.awaitTermination()
            batches = " ".join(str(progress.durationMs["triggerExecution"]) for progress in query.recentProgress)
            told = f"{cost.wall:6.1f} s {cost.cpu:6.1f} s of a processor   ms a batch: {batches}"
            print(f"{round_ or 'warm-up':<8} {METHODS[name][0]:<32} {told}", flush=True)
            if round_:
                costs[name].append(cost)
            if round_ == options.rounds and name != "floor":
                wrong += _wrong(bench, METHODS[name][1])
    _print(costs)
    print("outcomes: as of resolve over the whole tables" if not wrong else f"outcomes: {wrong:,} WRONG")
    spark.stop()
    return 1 if wrong else 0


def _wrong(bench: Bench, again: Callable[[Bench], StreamingQuery]) -> int:
    """End the input, run the method again, and count the outcomes that differ from `resolve` over the whole tables."""
    pipeline.end_of_input(bench.folder / "end")
    again(bench).awaitTermination()
    read = bench.spark.read
    expected = pipeline.resolve(*(read.parquet((bench.folder / name).as_uri()) for name in ("operations", "events")))
    found = read.parquet((bench.out / "outcomes").as_uri()).select(*expected.columns)
    return found.exceptAll(expected).count() + expected.exceptAll(found).count()


def _print(costs: dict[str, list[Cost]]) -> None:
    rows = OPERATIONS + EVENTS
    print(f"\n{rows:,} rows in {BATCHES} batches; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'method':<32} {'median s':>9} {'rows/s':>10} {'best s':>8} {'rows/s':>10} {'processor s':>12}")
    for name, some in costs.items():
        median, best = statistics.median(cost.wall for cost in some), min(cost.wall for cost in some)
        cpu = statistics.median(cost.cpu for cost in some)
        label = METHODS[name][0]
        print(f"{label:<32} {median:9.1f} {rows / median:10,.0f} {best:8.1f} {rows / best:10,.0f} {cpu:12.1f}")


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.spark.stream",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="counted ones (default: %(default)s)")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD", help=", ".join(METHODS)
    )
    parser.add_argument("--master", default="local[2]", help="(default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=2, help="of Spark's shuffles (default: %(default)s)")
    parser.add_argument("--shards", type=int, default=16, help="(default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench-stream"), help="for the tables (default: %(default)s)"
    )
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
