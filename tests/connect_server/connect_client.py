"""What a user does in a session of Spark Connect: a program of its own, for test_connect_server.py.

Takes the code that makes the session, and a folder with request logs; prints what came out as JSON.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from abeyant import pipeline

OPERATIONS = """
SELECT 'i' AS instance, 'o' || n AS op_id, 'k' AS kind, timestamp '2026-01-01 00:00:00' AS start,
    5000L * n AS timeout_ms, array(named_struct('key', 'a', 'required', n)) AS watches, 'all' AS condition
FROM VALUES (1L), (2L) AS (n)
"""
EVENTS = "SELECT 'i' AS instance, 'a' AS key, timestamp '2026-01-01 00:00:03' AS at, 1L AS progress"


def rows(table: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.select(*columns).collect())


def streamed(spark: SparkSession, operations: DataFrame, events: DataFrame, folder: Path) -> dict[str, str]:
    """Resolve both tables as streams, into files and into a sink of ours; return what became of each."""
    streams = []
    for name, table in {"operations": operations, "events": events}.items():
        table.write.parquet(str(folder / name))
        streams.append(spark.readStream.schema(table.schema).parquet(str(folder / name)))
    answers = pipeline.resolve_stream(*streams, lateness=0, tick=None, shards=1)
    files = pipeline.outcomes_of(answers).writeStream.format("parquet").option("path", str(folder / "files"))
    sink = pipeline.ParquetSink(folder / "sink", checkpoint=folder / "sink-checkpoint")
    return {
        "stream": ended(files, folder / "files-checkpoint"),
        "sink": ended(answers.writeStream.foreachBatch(sink), folder / "sink-checkpoint"),
    }


def ended(writer: DataStreamWriter, checkpoint: Path) -> str:
    """Run a stream to its end; return the last line of what Spark says to that."""
    try:
        writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        lines: list[str] = re.findall(r"^\w*Error: .*$", str(error), re.MULTILINE)
        return lines[-1] if lines else str(error).splitlines()[0]
    return "resolved"


def compiled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell whether the worker's engine is compiled."""
    from abeyant.engine import is_compiled

    yield pa.record_batch({"compiled": [is_compiled()]})


def main(shown: str, folder: Path) -> None:
    names: dict[str, Any] = {}
    exec(shown, names)
    spark: SparkSession = names["spark"]
    operations, events = spark.sql(OPERATIONS), spark.sql(EVENTS)
    told = {
        "operations": rows(pipeline.read_kafka_request_log(spark, folder / "logs"), "kind", "outcome"),
        "outcomes": rows(pipeline.resolve(operations, events), "op_id", "outcome"),
        **streamed(spark, operations, events, folder),
        "compiled": all(row.compiled for row in spark.range(1).mapInArrow(compiled, "compiled boolean").collect()),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
