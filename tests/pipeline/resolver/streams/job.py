"""A stream as a process of its own, to be killed: `python -m pipeline.resolver.streams.job FOLDER SINK`, below `tests`.

Reads FOLDER/operations and FOLDER/events a few files a batch, ends its input when all is read, and writes answers to
FOLDER/out, outcomes.db or both. Started again it goes on where it was. The last line it prints is `done`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from abeyant import pipeline
from abeyant.pipeline.commands.stream_run.run import LOCAL_CHECKPOINTS
from abeyant.pipeline.schemas import EVENTS, OPERATIONS


def answers(spark: SparkSession, folder: Path) -> DataFrame:
    def table(name: str) -> DataFrame:
        schema = OPERATIONS if name == "operations" else EVENTS
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))

    return pipeline.resolve_stream(
        table("operations"), table("events"), lateness=0.004, tick=None, end_of_input=folder / "end", shards=4
    )


def run(spark: SparkSession, folder: Path, sink: str) -> None:
    """Run until all input is there, and resolved."""
    to = pipeline.ParquetSink(folder / "out") if sink == "parquet" else pipeline.SQLiteSink(folder / "outcomes.db")
    writer = (
        answers(spark, folder).writeStream.foreachBatch(to).option("checkpointLocation", str(folder / "checkpoint"))
    )
    for _ in "input", "end":
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        pipeline.end_of_input(folder / "end")


def main() -> None:
    folder, sink = Path(sys.argv[1]), sys.argv[2]
    config = {"spark.sql.shuffle.partitions": "2"} | (LOCAL_CHECKPOINTS if sink == "table" else {})
    spark = pipeline.spark_session("local[2]", "abeyant stream job", brief=True, config=config)
    print("ready", flush=True)
    run(spark, folder, sink)
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
