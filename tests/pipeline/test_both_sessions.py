"""What the pipeline promises holds in a session with a JVM of its own and in one of Spark Connect."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from abeyant import pipeline
from abeyant.errors import AbeyantError
from abeyant.pipeline.request_log.tables import KafkaRequestLog
from abeyant.pipeline.resolver.streams import ASIDE
from abeyant.pipeline.schemas import EVENTS, OPERATIONS, REJECT_REASON
from abeyant.pipeline.sources.records import read_events
from abeyant.pipeline.sources.tables import operations_from
from abeyant.pipeline.spark.file_system import file_system
from pipeline.both_sessions import connected, of_kind
from pipeline.request_log.kafka_lines import fetch, line, produce
from pipeline.resolve_traces import Outcomes, Trace, by_brute_force, some_traces
from pipeline.trace_tables import ARROW_EVENTS, ARROW_OPERATIONS, EPOCH_US, event_row, operation_row, tables

TRACES = some_traces(8, seed=17)


@pytest.fixture(params=["classic", "connect"])
def both(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """What a quick test tries in both; `either` leaves Spark Connect to the slow ones."""
    yield from of_kind(request)


def put_log(folder: Path) -> Path:
    for broker, lines in {"broker-1": [produce(remote=5.0), b"no request"], "broker-2": [fetch(remote=500.5)]}.items():
        (folder / broker).mkdir()
        names = line("METADATA", {"topics": []}, {"topics": [{"topicId": "t", "name": "orders"}]})
        (folder / broker / "kafka-request.log").write_bytes(b"\n".join([*lines, names, b""]))
    return folder


def by_hand(traces: list[Trace]) -> dict[tuple[str, str], tuple[str, int]]:
    ends: list[Outcomes] = [by_brute_force(trace, "inclusive") for trace in traces]
    return {(f"t{n}", op): (how, EPOCH_US + at) for n, found in enumerate(ends) for op, (how, at) in found.items()}


def test_a_request_log_becomes_operations(either: SparkSession, tmp_path: Path) -> None:
    put_log(tmp_path)
    found = pipeline.read_kafka_request_log(either, tmp_path).orderBy("instance")
    assert [(row.instance, row.kind, row.waited_ms, row.watches) for row in found.collect()] == [
        ("broker-1", "PRODUCE", 5.0, [("orders-0", 42)]),
        ("broker-2", "FETCH_CONSUMER", 500.5, [("orders-3", 11)]),
    ]
    [rejected] = KafkaRequestLog(either, tmp_path).rejected.collect()
    assert (rejected.instance, rejected.line_number) == ("broker-1", 2)


@pytest.mark.slow  # once more on Connect
def test_tables_are_resolved_and_replayed(both: SparkSession) -> None:
    operations, events = tables(both, TRACES)
    wanted = by_hand(TRACES)
    outcomes = pipeline.resolve(operations, events).selectExpr("instance", "op_id", "outcome", "unix_micros(at)")
    assert {(i, op): (how, at) for i, op, how, at in outcomes.collect()} == wanted
    replayed = pipeline.replay(operations, events).select("instance", "completed", "expired").collect()
    ends = [(instance, how) for (instance, _), (how, _) in wanted.items()]
    assert {tuple(row) for row in replayed} == {
        (instance, ends.count((instance, "completed")), ends.count((instance, "expired"))) for instance, _ in ends
    }


@pytest.mark.slow  # starts a server
def test_a_log_is_analyzed_on_connect(connect_url: str, tmp_path: Path) -> None:
    with connected(connect_url) as spark:
        found = pipeline.analyze(spark, put_log(tmp_path), tmp_path / "out", quiet=False)
    assert (found.requests, found.operations, found.rejected) == (4, 2, 1)
    assert (found.folder / "report.html").is_file()


def test_an_expression_that_fails_is_null_and_its_row_goes_on(both: SparkSession) -> None:
    mapping = {
        "op_id": "if(n = 2, raise_error('text'), concat('op ', n))",
        "start": "make_timestamp(2026, 1, n, 2, 30, 0.000001, 'Europe/Berlin')",
        "timeout_ms": "100 div (n - 3)",
        "watches": "array(named_struct('key', 'k', 'required', bigint(9223372036854775807 - 3 + n)))",
        "kind": "n",
    }
    table = both.sql("SELECT * FROM VALUES (1), (2), (3), (4), (40) AS (n)")
    found = operations_from(table, mapping, survive=True).selectExpr(
        "kind", "op_id", "unix_micros(start) % 1000000 AS us", "timeout_ms", "watches"
    )
    top = 2**63 - 1
    assert [tuple(row) for row in found.orderBy(found.kind.cast("int")).collect()] == [
        ("1", "op 1", 1, -50, [("k", top - 2)]),
        ("2", None, 1, -100, [("k", top - 1)]),
        ("3", "op 3", 1, None, [("k", top)]),
        ("4", "op 4", 1, 100, None),
        ("40", "op 40", None, 2, None),
    ]
    with pytest.raises(AbeyantError, match="nobody"):
        operations_from(table, {"op_id": "nobody"})


@pytest.mark.slow  # many expressions
def test_fields_that_an_expression_names_are_read(either: SparkSession) -> None:
    values = [('{"id": "k", "when": "2026-01-01T00:00:00Z"}', ("t",)), ('{"id": "k", "when": "soon"}', ("t",))]
    records = either.createDataFrame(values, "value string, record struct<topic string>")
    events = read_events(records, {"key": "upper(id)", "at": "to_timestamp(when)"})
    assert {(row.key, row.at is None, row[REJECT_REASON]) for row in events.collect()} == {
        ("K", False, None),
        ("K", True, "no at: to_timestamp(when) is null"),
    }
    with pytest.raises(AbeyantError, match=r"key=upper\(: .*PARSE"):
        read_events(records, {"key": "upper("})


def started(writer: DataStreamWriter) -> StreamingQuery:
    """Start a query. Connect gives the Python worker of a sink ten seconds to start: too few on a very busy machine."""
    for _ in range(9):
        try:
            return writer.start()
        except PySparkException as error:
            if "worker failed to connect back" not in str(error):
                raise
    return writer.start()


class Streamed:
    """The traces as files of two streams; one run reads all that is there."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.end = spark, folder, folder / "end"
        self.end.mkdir()
        operations = [operation_row(op, f"t{n}") for n, trace in enumerate(TRACES) for op in trace.operations]
        events = [event_row(event, f"t{n}") for n, trace in enumerate(TRACES) for event in trace.events]
        broken = operation_row(TRACES[0].operations[0], "t0") | {"op_id": None}
        for name, rows, schema in (
            ("operations", [*operations, broken], ARROW_OPERATIONS),
            ("events", events, ARROW_EVENTS),
        ):
            (folder / name).mkdir()
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / name / "0.parquet")

    def run(self, sink: Callable[[DataFrame, int], None], checkpoint: str) -> None:
        def table(name: str, schema: StructType) -> DataFrame:
            return self.spark.readStream.schema(schema).parquet(str(self.folder / name))

        how: dict[str, Any] = {"tick": None, "end_of_input": self.end, "shards": 4, "lateness": 0.002}
        answers = pipeline.resolve_stream(table("operations", OPERATIONS), table("events", EVENTS), **how)
        writer = answers.writeStream.foreachBatch(sink).trigger(availableNow=True)
        started(writer.option("checkpointLocation", str(self.folder / checkpoint))).awaitTermination()


@pytest.mark.slow  # runs streams
def test_a_stream_fills_both_sinks(either: SparkSession, tmp_path: Path) -> None:
    stream = Streamed(either, tmp_path)
    out, file = tmp_path / "out", tmp_path / "outcomes.db"
    stream.run(pipeline.ParquetSink(out, checkpoint=tmp_path / "one"), "one")
    rows = pq.read_table(out / "outcomes", columns=["instance", "op_id", "outcome", "at"]).to_pylist()
    first = {(row["instance"], row["op_id"]): (row["outcome"], round(row["at"].timestamp() * 1e6)) for row in rows}
    assert pq.read_table(out / "aside", columns=ASIDE.fieldNames())["reason"].to_pylist() == ["no op_id"]

    pipeline.end_of_input(stream.end)
    stream.run(pipeline.SQLiteSink(file, checkpoint=tmp_path / "one"), "one")
    with closing(sqlite3.connect(file)) as database:
        found = database.execute("SELECT instance, op_id, outcome, at_us FROM outcomes").fetchall()
    then = {(instance, op): (how, at) for instance, op, how, at in found}
    assert first
    assert then
    assert len(first) + len(then) == len(first | then)
    assert first | then == by_hand(TRACES)
    # What is of one query is of no other.
    with pytest.raises(StreamingQueryException, match="holds the outcomes of another query"):
        stream.run(pipeline.ParquetSink(out, checkpoint=tmp_path / "two"), "two")


@pytest.mark.slow
def test_on_connect_a_sink_has_to_know_the_checkpoint(connect_url: str, tmp_path: Path) -> None:
    with connected(connect_url) as spark:
        for sink in pipeline.ParquetSink, pipeline.SQLiteSink:
            with pytest.raises(AbeyantError, match=rf'{sink.__name__}\(\.\.\., checkpoint="/the/checkpointLocation"\)'):
                sink(tmp_path / "out")
        for lake in pipeline.DeltaSink, pipeline.IcebergSink:
            with pytest.raises(AbeyantError, match=rf"give {lake.__name__} the checkpoint"):
                lake("outcomes", "aside")
            with pytest.raises(AbeyantError, match=r"^this Spark session has no tables of .*_2\.13:"):
                lake("outcomes", "aside", checkpoint=tmp_path)
        wrong = pipeline.ParquetSink(tmp_path / "out", checkpoint=tmp_path / "nowhere")
        with pytest.raises(AbeyantError, match=re.escape(f"{tmp_path}/nowhere is the checkpoint of no query")):
            wrong(spark.range(0), 0)
        with pytest.raises(AbeyantError, match=r"s3://bucket/out: on Spark Connect .* local path or HDFS only"):
            file_system(spark, "s3://bucket/out")
