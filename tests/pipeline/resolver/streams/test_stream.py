"""The fourth engine: Structured Streaming. Real queries, over files, with real checkpoints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from abeyant import pipeline
from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.streams import ANSWERS, ASIDE, PENDING_WATCHES, plan
from abeyant.pipeline.resolver.streams.stages import shards_turn
from abeyant.pipeline.resolver.streams.state import VERSION
from abeyant.pipeline.results.leases.local import result_lease, stream_lease
from abeyant.pipeline.schemas import EVENTS, OPERATIONS, OUTCOMES
from pipeline.another_process import another_holds
from pipeline.resolve_traces import Deadline, Event, Op, Watch, by_brute_force, some_traces
from pipeline.resolver.streams.cuts import Batch
from pipeline.resolver.streams.kill import DISORDER_US, compare, found, write_batches, write_file, write_input
from pipeline.trace_tables import ARROW_EVENTS, ARROW_OPERATIONS, event_row, operation_row
from seeds import share, with_slow
from waiting import wait_until

MS = 1000
OP = Op("op", 10 * MS, 5, (Watch("k", 1),), "all")


class Stream:
    """A stream over files below a folder, with a checkpoint there, run until all that is there has been read."""

    def __init__(self, spark: SparkSession, folder: Path, **how: Any) -> None:
        self.spark, self.folder = spark, folder
        self.left_out: tuple[str, ...] = ()
        self.how: dict[str, Any] = {"lateness": 0.0, "tick": None, "end_of_input": folder / "end", "shards": 4} | how
        for table in "operations", "events":
            (folder / table).mkdir(exist_ok=True)

    def table(self, name: str) -> DataFrame:
        schema = OPERATIONS if name == "operations" else EVENTS
        source = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return source.parquet(str(self.folder / name)).drop(*self.left_out)

    def answers(self) -> DataFrame:
        return pipeline.resolve_stream(self.table("operations"), self.table("events"), **self.how)

    def start(
        self, sink: Callable[[DataFrame, int], None], checkpoint: str = "checkpoint", **trigger: Any
    ) -> StreamingQuery:
        writer = self.answers().writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(self.folder / checkpoint))
        return writer.trigger(**trigger or {"availableNow": True}).start()

    def run(self, checkpoint: str = "checkpoint") -> list[pipeline.BatchCounts]:
        query = self.start(pipeline.ParquetSink(self.folder / "out"), checkpoint)
        query.awaitTermination()
        counts = [pipeline.batch_counts(progress) for progress in query.recentProgress]
        return [count for count in counts if count is not None]

    def end(self) -> list[pipeline.BatchCounts]:
        pipeline.end_of_input(self.folder / "end")
        return self.run()

    def put(self, *batches: Batch) -> None:
        """Files beside those that are there, a pair a batch."""
        before = len(list((self.folder / "operations").glob("*")))
        write_batches(self.folder, batches, first=before)

    def outcomes(self) -> dict[str, Any]:
        return found(self.folder, "parquet")

    def aside(self) -> list[tuple[str, str, dict[str, Any]]]:
        rows = self.spark.read.parquet(str(self.folder / "out" / "aside")).collect()
        return sorted(((row.table, row.reason, json.loads(row.row)) for row in rows), key=str)


@pytest.mark.parametrize("deadline", with_slow(["inclusive", "exclusive"], ["exclusive"]))
def test_o1_to_o4_a_stream_equals_brute_force(spark: SparkSession, tmp_path: Path, deadline: Deadline) -> None:
    """Many traces, shuffled within the lateness and cut at random; both tables apart from one another."""
    traces = some_traces(share(3000), seed=20261121)
    write_input(tmp_path, traces, files=5, seed=len(deadline))
    stream = Stream(spark, tmp_path, lateness=DISORDER_US / 1e6, deadline=deadline)
    counts = [*stream.run(), *stream.end()]
    assert [count.batch for count in counts] == list(range(6))
    operations = sum(len(trace.operations) for trace in traces)
    assert sum(count.completed + count.expired for count in counts) == operations
    assert sum(count.completed + count.expired for count in counts[:-1]) > operations / 3, "most wait for no end"
    assert counts[-1].pending == 0
    assert sum(count.late + count.invalid + count.duplicates for count in counts) == 0
    assert stream.outcomes() == {f"t{n}": by_brute_force(trace, deadline) for n, trace in enumerate(traces)}


@pytest.mark.slow  # runs a stream again and again
def test_o4_what_is_late_or_cannot_be_resolved_is_rejected_whole_and_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path)
    good = Batch([("i", OP), ("i", OP)], [("i", Event("k", 12 * MS, 1)), ("i", Event("z", 12 * MS, 1))])
    stream.put(good)
    nulls = operation_row(OP) | {"op_id": None, "start": None, "watches": None}
    negative = operation_row(OP) | {"op_id": "negative", "timeout_ms": -1}
    write_file(tmp_path / "operations" / "1.parquet", pa.Table.from_pylist([nulls, negative], ARROW_OPERATIONS), 1)
    late = [event_row(Event("k", 9 * MS, 7)), event_row(Event("k", 10 * MS, 0)) | {"progress": None}]
    write_file(tmp_path / "events" / "1.parquet", pa.Table.from_pylist(late, ARROW_EVENTS), 1)
    first, second = stream.run()
    assert (first.duplicates, first.late, first.invalid, first.pending) == (1, 0, 0, 1)
    assert (second.duplicates, second.late, second.invalid, second.rows) == (0, 1, 3, 4)
    assert second.watermark == datetime(2026, 1, 1, 0, 0, 0, 10_000, UTC)
    (ended,) = stream.end()
    assert (ended.completed, ended.expired, ended.pending) == (1, 0, 0)
    assert stream.outcomes() == {"i": {"op": ("completed", 12 * MS)}}
    start = "2026-01-01T00:00:00.010000Z"
    operation = {"instance": "i", "op_id": "op", "kind": "TEST", "start": start, "timeout_ms": 5}
    operation |= {"watches": [{"key": "k", "required": 1}], "condition": "all"}
    event = {"instance": "i", "key": "k", "at": start, "progress": None}
    assert stream.aside() == [
        ("events", f"late: at 2026-01-01T00:00:00.009000Z is before the watermark {start}",
         event | {"at": "2026-01-01T00:00:00.009000Z", "progress": 7}),
        ("events", "no progress", event),
        ("operations", "duplicate op_id", operation),
        ("operations", "no op_id", operation | {"op_id": None, "start": None, "watches": None}),
        ("operations", "timeout_ms is negative", operation | {"op_id": "negative", "timeout_ms": -1}),
    ]  # fmt: skip


@pytest.mark.slow
def test_what_waits_can_be_read_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    of_all = OP._replace(op_id="all", timeout_ms=50, watches=(Watch("k", 1), Watch("never", 1)))
    of_any = of_all._replace(op_id="any", condition="any")
    waits = OP._replace(op_id="waits", timeout_ms=50, watches=(Watch("never", 7),))
    clock = [("clock", OP._replace(start=20 * MS, timeout_ms=0))]
    stream.put(Batch([("i", OP), ("i", of_all), ("i", of_any), ("i", waits)], [("i", Event("k", 12 * MS, 1))]))
    stream.put(Batch(clock, [("clock", Event("z", 20 * MS, 1))]))
    query = stream.start(pipeline.ParquetSink(tmp_path / "out"), processingTime="0 seconds")
    try:
        query.processAllAvailable()
        pending = pipeline.read_pending(spark, tmp_path / "checkpoint")
        assert query.isActive
        assert pending.schema.simpleString() == PENDING_WATCHES.simpleString()
        rows = pending.where("instance = 'i'").orderBy("op_id").collect()
    finally:
        query.stop()
    assert [(row.op_id, row.key, row.required) for row in rows] == [("all", "never", 1), ("waits", "never", 7)]
    assert {(row.kind, str(row.start), str(row.deadline)) for row in rows} == {
        ("TEST", "2026-01-01 00:00:00.010000", "2026-01-01 00:00:00.060000")
    }
    assert stream.outcomes() == {"i": {"op": ("completed", 12 * MS), "any": ("completed", 12 * MS)}}
    with pytest.raises(AbeyantError, match=r"no state can be read from the checkpoint .*nowhere"):
        pipeline.read_pending(spark, tmp_path / "nowhere")
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "a checkpoint")
    with pytest.raises(AbeyantError, match="checkpoint: Spark cannot read state below a path with a space"):
        pipeline.read_pending(spark, tmp_path / "a checkpoint")


def _is_gone(path: Path) -> bool:
    return not path.exists()


def until(holds: Callable[[], bool], query: StreamingQuery) -> None:
    def holds_or_failed() -> bool:
        if (failure := query.exception()) is not None:
            raise failure
        return holds()

    wait_until(holds_or_failed, lambda: query.lastProgress)


def test_one_warning_names_the_setting_where_most_partitions_hold_no_shard(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes the number from the session and from nowhere else."""
    operations = spark.readStream.schema(OPERATIONS).parquet(str(tmp_path))
    events = spark.readStream.schema(EVENTS).parquet(str(tmp_path))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    try:
        with pytest.warns(UserWarning, match="184 tasks start Python .* set") as warned:
            pipeline.resolve_stream(operations, events)
        pipeline.resolve_stream(operations, events, shards=200)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))
    said = [str(one.message) for one in warned if one.category is UserWarning]
    assert [text.endswith("spark.conf.set('spark.sql.shuffle.partitions', '4')") for text in said] == [True]


@pytest.fixture
def running() -> Iterator[list[StreamingQuery]]:
    """Queries that are stopped in the end."""
    queries: list[StreamingQuery] = []
    yield queries
    for query in queries:
        query.stop()


@pytest.mark.slow  # runs a stream
def test_time_outs_fire_when_nothing_arrives(
    spark: SparkSession, tmp_path: Path, running: list[StreamingQuery]
) -> None:
    """Two operations, no event ever, nothing after them: the clock goes on by the wall."""
    stream = Stream(spark, tmp_path, tick=1.0, end_of_input=None)
    stream.put(Batch([("i", OP._replace(timeout_ms=0)), ("i", OP._replace(op_id="later", timeout_ms=1500))]))
    query = stream.start(pipeline.ParquetSink(tmp_path / "out"), processingTime="0 seconds")
    running.append(query)
    until(lambda: len(stream.outcomes().get("i", ())) == 2, query)
    assert stream.outcomes() == {"i": {"op": ("expired", 10 * MS), "later": ("expired", 1510 * MS)}}
    until(lambda: sum(progress.numInputRows for progress in query.recentProgress) > 2, query)
    counted = [pipeline.batch_counts(progress) for progress in query.recentProgress]
    assert sum(counts.rows for counts in counted if counts is not None) == 2, "ticks are no rows of anybody's"


@pytest.mark.slow
def test_processing_time_needs_no_times_in_the_tables(
    spark: SparkSession, tmp_path: Path, running: list[StreamingQuery]
) -> None:
    stream = Stream(spark, tmp_path, time="processing", tick=1.0, end_of_input=None)
    stream.left_out = ("start", "at")
    reached = OP._replace(op_id="reached", watches=(Watch("h", 1),))
    stream.put(Batch([("i", OP._replace(timeout_ms=1000)), ("i", reached)], [("i", Event("h", 0, 1))]))
    query = stream.start(pipeline.ParquetSink(tmp_path / "out"), processingTime="0 seconds")
    running.append(query)
    until(lambda: len(stream.outcomes().get("i", ())) == 2, query)
    ends = stream.outcomes()["i"]
    assert {op: end[0] for op, end in ends.items()} == {"op": "expired", "reached": "completed"}
    assert ends["op"][1] - ends["reached"][1] == 1_000_000, "they arrived in one batch, and one waited a second"


@pytest.mark.slow
def test_a_batch_that_is_done_again_changes_neither_sink(spark: SparkSession, tmp_path: Path) -> None:
    """The note that it was done is what a kill loses: taken away here, it is done again, from the state before."""
    traces = some_traces(200, seed=7)
    write_input(tmp_path, traces, files=3, seed=7)
    stream = Stream(spark, tmp_path, lateness=0.001)
    both = pipeline.ParquetSink(tmp_path / "out"), pipeline.SQLiteSink(tmp_path / "outcomes.db")

    def sink(batch: DataFrame, number: int) -> None:
        for one in both:
            one(batch, number)

    stream.start(sink).awaitTermination()
    before = stream.outcomes(), found(tmp_path, "table"), stream.aside()
    assert before[0] == before[1] != {}
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    for note in (commits[-1], *commits[-1].parent.glob(f".{commits[-1].name}*")):
        note.unlink()
    query = stream.start(sink)
    query.awaitTermination()
    assert query.recentProgress[-1].batchId == len(commits) - 1
    assert (stream.outcomes(), found(tmp_path, "table"), stream.aside()) == before
    pipeline.end_of_input(tmp_path / "end")
    stream.start(sink).awaitTermination()
    assert found(tmp_path, "table") == stream.outcomes()


@pytest.mark.slow
def test_sparks_own_parquet_sink_takes_the_outcomes_of_resolve(spark: SparkSession, tmp_path: Path) -> None:
    traces = some_traces(200, seed=8)
    write_input(tmp_path, traces, files=2, seed=8)
    stream = Stream(spark, tmp_path, lateness=DISORDER_US / 1e6)
    outcomes = pipeline.resolve(stream.table("operations"), stream.table("events"), **stream.how)
    assert outcomes.isStreaming
    assert outcomes.schema.simpleString() == OUTCOMES.simpleString()
    assert pipeline.aside_of(stream.answers()).schema.simpleString() == ASIDE.simpleString()
    assert stream.answers().schema.simpleString() == ANSWERS.simpleString()
    out = tmp_path / "out" / "outcomes"
    writer = outcomes.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    for _ in "input", "end":
        writer.trigger(availableNow=True).start(str(out)).awaitTermination()
        pipeline.end_of_input(tmp_path / "end")
    assert spark.read.parquet(str(out)).count() == sum(len(trace.operations) for trace in traces)
    assert compare(tmp_path, "parquet", traces)[1:] == (0, 0)


@pytest.mark.slow
def test_a_state_that_is_not_known_is_refused_by_what_was_found_and_what_expected(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(spark, tmp_path)
    stream.put(Batch([("i", OP)]))

    def of_tomorrow(key: Any, packed: Any, state: Any, options: Any) -> Iterator[Any]:
        yield from shards_turn(key, packed, state, options)
        state.update((state.get[0] + 1, state.get[1]))

    with monkeypatch.context() as patch:
        patch.setattr(plan, "shards_turn", of_tomorrow)
        stream.run()
    stream.put(Batch([("i", OP._replace(op_id="second"))]))
    refused = f"StateError: .* has layout version {VERSION + 1}, expected {VERSION}: continue with the release"
    with pytest.raises(StreamingQueryException, match=refused):
        stream.run()
    with pytest.raises(Exception, match=refused):
        pipeline.read_pending(spark, tmp_path / "checkpoint").collect()


@pytest.mark.slow  # several runs of a stream
def test_another_number_of_shards_and_another_checkpoint_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    stream.put(Batch([("i", OP)]))
    stream.run()
    stream.put(Batch([("i", OP._replace(op_id="second"))]))
    with pytest.raises(StreamingQueryException, match="StateError: the checkpoint was begun with shards=4, not 5"):
        Stream(spark, tmp_path, shards=5).run()
    with pytest.raises(StreamingQueryException, match="/out holds the outcomes of another query"):
        stream.run(checkpoint="another")


@pytest.mark.slow  # several runs of a stream
def test_a_sink_refuses_what_another_process_writes_and_lets_go_when_its_query_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Not for as long as the process lives: a notebook lives long."""
    stream = Stream(spark, tmp_path)
    stream.put(Batch([("i", OP)]))
    out, table = tmp_path / "out", tmp_path / "outcomes.db"
    sinks: list[tuple[Path, Path, Callable[[DataFrame, int], None]]] = [
        (stream_lease(out), out, pipeline.ParquetSink(out)),
        (result_lease(table), table, pipeline.SQLiteSink(table)),
    ]
    for claim, place, sink in sinks:
        with another_holds(claim, place) as pid:
            query = stream.start(sink)
            with pytest.raises(StreamingQueryException, match=f"{place.name} is being written by process {pid} on "):
                query.awaitTermination()
        stream.start(sink, checkpoint=place.name + "-checkpoint").awaitTermination()
        wait_until(partial(_is_gone, claim), f"{claim} is still there")


def test_streams_and_tables_do_not_mix(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path)
    events = stream.table("events")
    empty = spark.createDataFrame([], OPERATIONS)
    with pytest.raises(
        AbeyantError, match=r"events is a stream and operations is not: read both with spark\.readStream"
    ):
        pipeline.resolve(empty, events)
    with pytest.raises(AbeyantError, match="operations is not a stream"):
        pipeline.resolve_stream(empty, events)
    with pytest.raises(AbeyantError, match=r"cannot mark the end of input in .*nowhere"):
        pipeline.end_of_input(tmp_path / "nowhere")
    with pytest.raises(AbeyantError, match=r"this sink works only in writeStream\.foreachBatch"):
        pipeline.ParquetSink(tmp_path / "out")(spark.createDataFrame([], ANSWERS), 0)
