"""Send hundreds of millions of events through one stream, on a standalone cluster, and see whether its memory grows.

python -m lab.spark.long_stream                      200 million events and 20 million operations, half an hour
python -m lab.spark.long_stream --events 20000000 --minutes 5

One hour of events is written once, and linked under many names (hard links); the number in a file's name is the hour of
its rows. So all files have the same modification time, and the stream reads them by name. All hours but the first are
alike, so each of them must have as many outcomes of each kind as the second. FOLDER/memory.csv gets a line per batch:
resident memory and, for every tenth batch, what the JVMs still reach after a full collection, if there is a JDK's jcmd.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from abeyant import pipeline
from abeyant.pipeline.sources.files import Parquet
from abeyant.pipeline.sources.source import Input
from lab.spark.cluster import SETTINGS, Cluster, cluster
from lab.spark.processes import live_heap, resident

KEYS = 20_000
_HOUR_US = 3_600_000_000
_EPOCH_US = 1_767_225_600_000_000  # 2026-01-01
_PROCESSES = ("driver's Python", "driver's JVM", "executors", "Python workers")
_LIVE = ("driver's live heap", "executors' live heaps")
_LIVE_EVERY = 10  # batches: a full collection takes a while


def make(spark: SparkSession, folder: Path, events: int, hours: int, keys: int = KEYS) -> None:
    """Write one hour of `events` events, and of a tenth as many operations; link its files once for each hour."""
    for name, rows in (("operations", events // 10), ("events", events)):
        template = folder / f"hour-of-{name}"
        _hour(spark, name, rows, keys).coalesce(1).write.mode("overwrite").parquet(template.as_uri())
        [file] = template.glob("part-*.parquet")
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
        for hour in range(hours):
            os.link(file, folder / name / f"{hour:06}.parquet")


def _hour(spark: SparkSession, name: str, rows: int, keys: int) -> DataFrame:
    def below(limit: int, seed: int) -> Any:
        return F.pmod(F.xxhash64("id", F.lit(len(name) + seed)), F.lit(limit))

    table = spark.range(rows).withColumns({"key": F.format_string("key-%05d", below(keys, 1))})
    since = F.col("id") * (_HOUR_US // rows) + below(_HOUR_US // rows, 2)
    if name == "events":
        return table.select("key", since.alias("since"))
    return table.select("key", since.alias("since"), "id", (below(240_000, 3) + 1000).alias("timeout_ms"))


def streams(spark: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    """Return streams of operations and events. An operation completes at its key's first event after its start."""
    hour = F.substring("_metadata.file_name", 1, 6).cast("long")
    at = F.timestamp_micros(F.col("since") + hour * _HOUR_US + _EPOCH_US)

    def read(name: str) -> DataFrame:
        fields = spark.read.parquet((folder / f"hour-of-{name}").as_uri()).schema.fields
        schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
        files = Parquet(Input("events", str(folder / name), schema=schema, files_a_batch=1))
        return files.rows(spark).withColumns({"hour": hour, "at": at})

    # Progress is the time, so what an operation waits for is the first event after its start.
    level = F.col("since") + F.col("hour") * _HOUR_US
    events = read("events").select(F.lit("i").alias("instance"), "key", "at", level.alias("progress"))
    operations = read("operations").select(
        F.lit("i").alias("instance"),
        F.concat("hour", F.lit("-"), "id").alias("op_id"),
        F.lit("K").alias("kind"),
        F.col("at").alias("start"),
        "timeout_ms",
        F.array(F.struct("key", level.alias("required"))).alias("watches"),
        F.lit("all").alias("condition"),
    )
    return operations, events


def memory(spark: SparkSession, there: Cluster) -> list[int]:
    """Return the resident bytes of `_PROCESSES`."""
    gateway: Any = spark.sparkContext._gateway
    groups: Sequence[Sequence[int]] = ([os.getpid()], [gateway.proc.pid], there.executors(), there.python_workers())
    return [sum(map(resident, pids)) for pids in groups]


def live(spark: SparkSession, there: Cluster) -> list[int | None]:
    """Return the bytes of `_LIVE`; None for a heap that cannot be measured."""
    gateway: Any = spark.sparkContext._gateway
    executors = [live_heap(pid) for pid in there.executors()]
    return [live_heap(gateway.proc.pid), sum(filter(None, executors)) if executors and all(executors) else None]


def watch(query: StreamingQuery, spark: SparkSession, there: Cluster, file: Path, minutes: float) -> int:
    """Write a line per batch until the query ends or the minutes have passed; return how many batches were done."""
    end, last, began = time.monotonic() + minutes * 60, -1, time.monotonic()
    with file.open("w", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(["batch", "seconds", "rows", "pending", "state bytes", *_PROCESSES, *_LIVE])
        while not query.awaitTermination(1) and time.monotonic() < end:
            counts = pipeline.batch_counts(query.lastProgress)
            if counts is not None and counts.batch > last:
                last = counts.batch
                row = [last, round(time.monotonic() - began), counts.rows, counts.pending, counts.state_bytes]
                reached = live(spark, there) if last % _LIVE_EVERY == 0 else [None, None]
                lines.writerow([*row, *memory(spark, there), *reached])
                out.flush()
    while query.isActive and query.status["isTriggerActive"] and _done(query) == last + 1:
        time.sleep(0.1)
    done = _done(query)
    query.stop()
    return done


def _done(query: StreamingQuery) -> int:
    latest = query.lastProgress
    return 0 if latest is None else int(latest.batchId) + 1


def wrong_hours(out: Path, hours: int) -> list[int]:
    """Return the complete hours whose outcomes differ from the second hour's; check that none ended twice (O4)."""
    table = ds.dataset(out / "outcomes", format="parquet").to_table(["op_id", "outcome"])
    of_hour = pc.cast(pc.list_element(pc.split_pattern(table["op_id"], "-"), 0), "int64")
    if len(pc.unique(table["op_id"])) != len(table):
        raise AssertionError("an operation has two outcomes")
    counts: dict[int, Counter[str]] = {}
    grouped = table.append_column("hour", of_hour).group_by(["hour", "outcome"]).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        counts.setdefault(row["hour"], Counter())[row["outcome"]] = row["count_all"]
    return [each for each in range(1, hours) if counts.get(each) != counts.get(1)]


def main(given: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 if outcomes are wrong."""
    options = _arguments(given)
    folder: Path = options.folder.absolute()
    hours = options.events // options.hour
    for left in ("out", "checkpoint", "cluster"):
        shutil.rmtree(folder / left, ignore_errors=True)
    with cluster(folder / "cluster") as there:
        config = SETTINGS | {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "1g"}
        spark = pipeline.spark_session(there.master, "abeyant long stream", config=config)
        try:
            make(spark, folder, options.hour, hours)
            answers = pipeline.resolve_stream(*streams(spark, folder), lateness=30.0, tick=None)
            writer = answers.writeStream.foreachBatch(pipeline.ParquetSink(folder / "out"))
            writer = writer.option("checkpointLocation", (folder / "checkpoint").as_uri()).trigger(availableNow=True)
            batches = watch(writer.start(), spark, there, folder / "memory.csv", options.minutes)
        finally:
            spark.stop()
    _print(folder / "memory.csv", batches)
    # The last hour still waits for what is to come.
    wrong = wrong_hours(folder / "out", batches - 1)
    told = f"hours with wrong outcomes: {wrong}" if wrong else "each hour has the outcomes that it must have, once"
    events = batches * options.hour
    print(f"{events:,} events, {events // 10:,} operations in {batches} batches: {told}")
    return 1 if wrong else 0


def _print(file: Path, batches: int) -> None:
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    parts = [rows[len(rows) * part // 4 : len(rows) * (part + 1) // 4] for part in range(4)]
    print(f"medians of each quarter, MB{'':<8}" + "".join(f"{part + 1:>9}" for part in range(4)))
    for name in (*_PROCESSES, *_LIVE, "state bytes"):
        known = [[int(row[name]) for row in part if row[name]] for part in parts]
        medians = [f"{statistics.median(part) / 1e6:9.1f}" if part else f"{'':>9}" for part in known]
        print(f"{name:<34}" + "".join(medians))
    seconds = [int(part[-1]["seconds"]) - int(part[0]["seconds"]) for part in parts if part]
    read = [sum(int(row["rows"]) for row in part[1:]) for part in parts if part]
    rates = [rows / max(took, 1) for rows, took in zip(read, seconds, strict=True)]
    print(f"{'rows a second':<34}" + "".join(f"{rate:9,.0f}" for rate in rates))


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.spark.long_stream",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--events", type=int, default=200_000_000, help="(default: %(default)s)")
    parser.add_argument("--hour", type=int, default=500_000, help="events of an hour, a batch (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so many (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/long-stream"), help="for all files (default: %(default)s)"
    )
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
