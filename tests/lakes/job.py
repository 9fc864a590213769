"""A stream into tables of a lake, to be killed: `python -m lakes.job FOLDER FORMAT [BATCH AFTER]`, below `tests`.

Reads FOLDER/operations and FOLDER/events a few files a batch, as `pipeline.resolver.streams.job` does, and writes what
is in the tables at the end to FOLDER/found.json. FOLDER/session.json has the session's settings. With BATCH and AFTER
it kills itself in that batch: once the outcomes are committed and what is rejected is not (`outcomes`), or once both
are and Spark has not noted that the batch is done (`batch`). The last line it prints is `done`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from pipeline.resolver.streams.job import answers

LakeSink = pipeline.DeltaSink | pipeline.IcebergSink
SINKS: dict[str, type[LakeSink]] = {"delta": pipeline.DeltaSink, "iceberg": pipeline.IcebergSink}


def tables(folder: Path, kind: str) -> tuple[str, str]:
    """Name both tables. A session's own catalog forgets its tables as it ends, so Delta's are named by path."""
    home = "lake.shop.{}" if kind == "iceberg" else f"delta.`{folder}/delta/{{}}`"
    return home.format("outcomes"), home.format("aside")


def die() -> NoReturn:
    """End as by kill -9: this process, its JVM and its workers."""
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("still there")


def dying(sink: LakeSink, at: int, after: str) -> Callable[[DataFrame, int], None]:
    """Return a sink that kills this process in the first batch from `at` on that has outcomes."""
    append = sink._append
    appended: list[str] = []

    def append_and_die(rows: DataFrame, table: str, query: str, batch: int) -> None:
        append(rows, table, query, batch)
        appended.append(table)
        if batch >= at and after == "outcomes" and table == sink.outcomes:
            die()

    def write_and_die(rows: DataFrame, batch: int) -> None:
        sink(rows, batch)
        if batch >= at and sink.outcomes in appended:
            die()

    sink._append = append_and_die  # type: ignore[method-assign]
    return write_and_die


def write_found(spark: SparkSession, folder: Path, outcomes: str, aside: str) -> None:
    """Write down what is in both tables."""
    ends = spark.table(outcomes).select("instance", "op_id", "outcome", F.unix_micros("at")).collect()
    rows = spark.table(aside).select("table", "reason", "row").collect()
    (folder / "found.json").write_text(json.dumps({"outcomes": ends, "aside": rows}))


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    config = json.loads((folder / "session.json").read_text())
    spark = pipeline.spark_session("local[2]", "abeyant lake job", brief=True, config=config)
    print("ready", flush=True)
    sink = SINKS[kind](*tables(folder, kind))
    to = dying(sink, int(sys.argv[3]), sys.argv[4]) if len(sys.argv) > 3 else sink
    writer = answers(spark, folder).writeStream.foreachBatch(to)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    for _ in "input", "end":
        writer.trigger(availableNow=True).start().awaitTermination()
        pipeline.end_of_input(folder / "end")
    write_found(spark, folder, *tables(folder, kind))
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
