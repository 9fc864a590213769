"""Measure a stream's state size, recovery and throughput by shards and partitions, on a standalone cluster.

python -m lab.spark.shards                                   16 and 64 shards, 2, 4 and 8 partitions
python -m lab.spark.shards --shards 16 --partitions 2 4 --events 100000

The cluster has two workers of one core. Each pair (shards, partitions) has a stream of its own, over the same rows, in
three runs of the query: two batches that warm up, some batches that are measured, and a batch in which an executor is
killed (kill -9). A batch is an hour of events, and of a tenth as many operations. The outcomes of all pairs must be the
same. Processor seconds are of the driver, the cluster and the Python workers together: on a machine with other work
they tell more than seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from abeyant import pipeline
from lab.spark.cluster import SETTINGS, Cluster, cluster
from lab.spark.long_stream import make, streams
from lab.spark.processes import Cost

WARM = 2
"""Number of batches that warm up, and are not counted."""


class Told(NamedTuple):
    """The figures of one pair of shards and partitions; times in seconds."""

    shards: int
    partitions: int
    batch: float
    """The median time of a batch."""
    rows_per_second: float
    cpu_per_million: float
    state_bytes: int
    """The size of our state, as the shards count it."""
    checkpoint_bytes: int
    checkpoint_files: int
    restart: float
    """The time from the start of a query that continues a checkpoint to the end of its first batch."""
    recovery: float
    """The time from the kill of an executor to the end of the batch that was running."""
    outcomes: int


class Stream:
    """The stream of one pair of shards and partitions; each run adds hours of rows."""

    def __init__(self, spark: SparkSession, source: Path, home: Path, shards: int) -> None:
        self.spark, self.source, self.home, self.shards = spark, source, home, shards
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        for name in ("operations", "events"):
            (home / name).mkdir()
            (home / f"hour-of-{name}").symlink_to(source / f"hour-of-{name}")

    def run(self, hours: range) -> list[Any]:
        """Add the rows of these hours and run the query on them; return the progress of their batches."""
        for name in ("operations", "events"):
            for hour in hours:
                os.link(self.source / name / f"{hour:06}.parquet", self.home / name / f"{hour:06}.parquet")
        answers = pipeline.resolve_stream(*streams(self.spark, self.home), lateness=30.0, tick=None, shards=self.shards)
        writer = answers.writeStream.foreachBatch(pipeline.ParquetSink(self.home / "out"))
        writer = writer.option("checkpointLocation", (self.home / "checkpoint").as_uri()).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        return [each for each in query.recentProgress if each.numInputRows]

    def ended(self, batch: int) -> float | None:
        """Return the time at which a batch was done, in seconds since 1970; None if it is not done."""
        commit = self.home / "checkpoint" / "commits" / str(batch)
        return commit.stat().st_mtime if commit.exists() else None


def measure(stream: Stream, there: Cluster, partitions: int, batches: int, dice: random.Random) -> Told:
    """Run the stream of one pair, and return its figures."""
    stream.spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    stream.run(range(WARM))
    began = time.time()
    with Cost() as cost:
        done = stream.run(range(WARM, WARM + batches))
    first = stream.ended(WARM)
    seconds = [each.durationMs["triggerExecution"] / 1000 for each in done]
    rows = sum(each.numInputRows for each in done)
    counts = pipeline.batch_counts(done[-1])
    assert first is not None
    assert counts is not None
    last = WARM + batches
    killed = _killed_while(stream, there, last, dice.uniform(0.2, 0.8) * statistics.median(seconds))
    files = [file for file in (stream.home / "checkpoint").rglob("*") if file.is_file()]
    outcomes = ds.dataset(stream.home / "out" / "outcomes", format="parquet").count_rows()
    return Told(
        stream.shards, partitions, statistics.median(seconds), rows / sum(seconds), cost.cpu / rows * 1e6,
        counts.state_bytes, sum(file.stat().st_size for file in files), len(files), first - began, killed, outcomes,
    )  # fmt: skip


def _killed_while(stream: Stream, there: Cluster, batch: int, after: float) -> float:
    """Run a batch, and kill an executor `after` seconds from its start. Return the seconds from the kill to its end."""
    moments: list[float] = []

    def kill() -> None:
        while not (stream.home / "checkpoint" / "offsets" / str(batch)).exists():
            time.sleep(0.01)
        time.sleep(after)
        with suppress(ProcessLookupError, IndexError):  # it has ended by itself
            os.kill(there.executors()[0], signal.SIGKILL)
            moments.append(time.time())

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    stream.run(range(batch, batch + 1))
    killer.join()
    ended = stream.ended(batch)
    assert ended is not None
    # After the batch's end, where the machine was that quick: then nothing was to recover.
    return ended - moments[0] if moments and moments[0] < ended else float("nan")


def table(found: list[Told]) -> str:
    """Return the figures as a table in Markdown."""
    heads = [
        "shards", "partitions", "s a batch", "rows a second", "cpu s a million rows", "state, MB",
        "checkpoint, MB (files)", "restart, s", "after a kill, s",
    ]  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|" + "---:|" * len(heads)]
    for each in found:
        cells = (
            str(each.shards), str(each.partitions), f"{each.batch:.1f}", f"{each.rows_per_second:,.0f}",
            f"{each.cpu_per_million:.1f}", f"{each.state_bytes / 1e6:.1f}",
            f"{each.checkpoint_bytes / 1e6:.0f} ({each.checkpoint_files})", f"{each.restart:.1f}",
            f"{each.recovery:.1f}",
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(given: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 if pairs differ in their outcomes."""
    options = _arguments(given)
    folder: Path = options.folder.absolute()
    found: list[Told] = []
    dice = random.Random(1)
    with cluster(folder / "cluster") as there:
        spark = pipeline.spark_session(there.master, "abeyant shards", config=SETTINGS | {"spark.driver.memory": "1g"})
        try:
            make(spark, folder, options.events, WARM + options.batches + 1, options.keys)
            for shards in options.shards:
                for partitions in options.partitions:
                    stream = Stream(spark, folder, folder / "run", shards)
                    found.append(measure(stream, there, partitions, options.batches, dice))
                    print(found[-1], flush=True)
        finally:
            spark.stop()
    print(table(found))
    print(f"load at the end: {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors; {options.keys:,} keys")
    return 1 if len({each.outcomes for each in found}) > 1 else 0


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.spark.shards",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--shards", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--partitions", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--events", type=int, default=200_000, help="of a batch (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=200_000, help="(default: %(default)s)")
    parser.add_argument("--batches", type=int, default=6, help="that are measured (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("build/shards"), help="(default: %(default)s)")
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
