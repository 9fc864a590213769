"""Kafka's replication from its request log: facts of a line, a partition's high watermark, and genuine Kafka itself."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.pipeline.replication.explanations import CLOCK, HANDLING, IN_SYNC, OUTCOME, UNEXPLAINED
from abeyant.pipeline.replication.partition import Moved, Partition
from abeyant.pipeline.request_log.line import BadLineError, LineParser
from abeyant.pipeline.request_log.replication import Fact, facts
from abeyant.pipeline.schemas import HIGH_WATERMARKS, PREDICTIONS, PRODUCES, REPLICATION, SchemaError
from abeyant.pipeline.spark.columns import check_table
from pipeline.request_log.kafka_lines import fetch, line, produce

OLD = Path(__file__).parents[1] / "request_log" / "samples" / "kafka-2.6.3.log"
SENT_US = 1_795_255_201_000_000  # of the made lines: 2026-11-21 10:00:01


def told(text: bytes, topics: dict[str, str] | None = None) -> list[Fact]:
    return list(facts(LineParser().parse(text), topics or {"t": "orders"}))


# -- what a line tells


def test_a_produce_tells_where_its_batch_began() -> None:
    (fact,) = told(produce(base_offset=41, remote=5.0))
    start_us = SENT_US - 300 - 5000
    assert fact == Fact("orders-0", "appended", start_us, 41, None, None, 0.25, 30_000, "completed", 5.0)
    (expired,) = told(produce(error_code=7, base_offset=41, remote=30_000.0))
    assert (expired.what, expired.outcome, expired.waited_ms) == ("appended", "expired", 30_000.0)


def test_a_produce_that_does_not_wait_for_replicas_has_no_wait() -> None:
    body = {"acks": 1, "timeoutMs": 5, "topicData": [{"name": "a", "partitionData": [{"index": 1}]}]}
    answer = {"responses": [{"name": "a", "partitionResponses": [{"index": 1, "errorCode": 0, "baseOffset": 7}]}]}
    (fact,) = told(line("PRODUCE", body, answer))
    assert fact[:4] == ("a-1", "appended", SENT_US - 300, 7)
    assert fact[7:] == (None, None, None)
    assert told(line("PRODUCE", body | {"acks": 0}, "")) == []


def test_a_produce_may_be_refused_before_or_after_its_append() -> None:
    assert [fact.what for fact in told(produce(19, base_offset=-1))] == ["refused"]
    assert [fact.what for fact in told(produce(20, base_offset=9))] == ["refused", "appended"]
    assert told(produce(error_code=3, base_offset=-1)) == []


def test_a_followers_fetch_tells_what_it_has_and_the_answer_a_high_watermark() -> None:
    asked = {
        "replicaState": {"replicaId": 3},
        "maxWaitMs": 500,
        "topics": [{"topicId": "t", "partitions": [{"partition": 2, "fetchOffset": 12}]}],
    }
    answer = {
        "errorCode": 0,
        "responses": [{"topicId": "t", "partitions": [{"partitionIndex": 4, "errorCode": 0, "highWatermark": 8}]}],
    }
    fetched, watermark = told(line("FETCH", asked, answer, remote=2.0))
    assert fetched == Fact("orders-2", "fetched", SENT_US - 300 - 2000, 12, 3, None, 0.25)
    assert watermark == Fact("orders-4", "watermark", SENT_US - 300, 8)
    assert told(line("FETCH", asked | {"replicaState": {"replicaId": -1}}, answer)) == [
        watermark._replace(at_us=SENT_US - 300)
    ]
    assert told(line("FETCH", asked, answer, listener="CONTROLLER")) == []
    assert told(fetch()) == []


def test_a_controller_tells_who_is_in_sync_and_when_it_was_asked() -> None:
    partition = {"partitionIndex": 1, "errorCode": 0, "leaderId": 2, "isr": [2, 3]}
    answer = {"errorCode": 0, "topics": [{"topicId": "t", "partitions": [partition]}]}
    asking, changed = told(line("ALTER_PARTITION", {"brokerId": 2}, answer, remote=30.0))
    assert asking == Fact("orders-1", "asking", SENT_US - 300 - 30_000 - 250, None, 2, [2, 3])
    assert changed == Fact("orders-1", "isr", SENT_US, None, 2, [2, 3])
    refused = {"topics": [{"topicId": "t", "partitions": [partition | {"errorCode": 95, "isr": []}]}]}
    assert told(line("ALTER_PARTITION", {}, refused)) == []


def test_metadata_tell_who_is_in_sync() -> None:
    partition = {"partitionIndex": 0, "errorCode": 0, "leaderId": 1, "isrNodes": [1, 2]}
    answer = {"topics": [{"name": "orders", "topicId": "t", "partitions": [partition]}]}
    assert told(line("METADATA", {"topics": []}, answer)) == [Fact("orders-0", "metadata", SENT_US, None, 1, [1, 2])]


def test_a_body_that_kafka_does_not_write_is_named() -> None:
    assert told(line("HEARTBEAT", {}, {})) == []
    for api, answer in (
        ("PRODUCE", {"responses": [{"name": "a", "partitionResponses": [{"index": 1}]}]}),
        ("METADATA", {"topics": [{"name": "a", "partitions": [{"partitionIndex": 0, "leaderId": 1}]}]}),
        ("ALTER_PARTITION", {"topics": 7}),
    ):
        with pytest.raises(BadLineError):
            told(line(api, {"acks": -1, "timeoutMs": 1}, answer))


def test_genuine_lines_of_the_old_form_tell_as_much() -> None:
    """Apache Kafka 2.6.3: brackets in place of JSON."""
    parser = LineParser()
    told = [fact for one in OLD.read_bytes().splitlines() for fact in facts(parser.parse(one), {})]
    assert {fact.what for fact in told} == {"appended", "fetched", "watermark"}
    assert {(fact.key, fact.replica) for fact in told if fact.what == "fetched"} >= {("orders-0", 2), ("orders-1", 2)}


# -- one partition's high watermark


def test_the_high_watermark_is_what_all_in_sync_have() -> None:
    partition = Partition((), 1)
    assert list(partition.changed(1, [1, 2, 3], by_controller=True)) == []
    assert list(partition.fetched("b", 2, 5)) == []
    assert list(partition.fetched("b", 3, 4)) == [Moved("b", 4, "fetch")]
    assert list(partition.fetched("b", 3, 3)) == []  # out of order by the log's clock: nothing is taken back
    assert list(partition.fetched("b", 3, 9)) == [Moved("b", 5, "fetch")]


def test_a_frozen_follower_holds_it_up_until_it_leaves() -> None:
    partition = Partition((), 1)
    list(partition.changed(1, [1, 2, 3], by_controller=True))
    list(partition.fetched("b", 3, 1))
    assert list(partition.fetched("b", 2, 8)) == [Moved("b", 1, "fetch")]
    partition.asking([1, 2])  # one that leaves counts until the controller has answered
    assert list(partition.fetched("b", 2, 9)) == []
    assert list(partition.changed(1, [1, 2], by_controller=True)) == [Moved("b", 9, "isr")]
    partition.asking([1, 2, 3])  # one that comes counts at once
    assert list(partition.fetched("b", 2, 12)) == []
    assert list(partition.fetched("b", 3, 10)) == [Moved("b", 10, "fetch")]


def test_below_min_insync_replicas_it_stays_and_a_lone_leader_has_its_own_log() -> None:
    for least, moves in ((2, []), (1, [Moved("b", 7, "isr")])):
        partition = Partition((), least)
        list(partition.changed(1, [1, 2], by_controller=True))
        assert list(partition.appended("b", 7)) == []
        assert list(partition.changed(1, [1], by_controller=True)) == moves
    assert list(partition.appended("b", 9)) == [Moved("b", 9, "append")]


def test_metadata_count_until_a_controller_tells_better() -> None:
    partition = Partition([2, 3], 1)
    list(partition.fetched("b", 2, 5))
    assert list(partition.changed(1, [1, 2], by_controller=False)) == [Moved("b", 5, "isr")]
    assert list(partition.changed(1, [1, 2, 3], by_controller=True)) == []
    assert list(partition.changed(1, [1, 2], by_controller=False)) == []
    assert list(partition.fetched("b", 2, 8)) == []


def test_each_leader_has_its_own_view() -> None:
    partition = Partition([2], 1)
    assert list(partition.fetched("old", 2, 5)) == [Moved("old", 5, "fetch")]
    assert list(partition.fetched("new", 2, 4)) == [Moved("new", 4, "fetch")]


REPLICAS = st.sampled_from([2, 3, 4])


@given(st.lists(st.tuples(REPLICAS, st.integers(0, 20)), max_size=30), st.sets(REPLICAS))
def test_it_is_the_least_of_the_running_maxima(fetches: list[tuple[int, int]], in_sync: set[int]) -> None:
    partition = Partition((), 1)
    list(partition.changed(1, {1} | in_sync, by_controller=True))
    moved = [step.progress for replica, offset in fetches for step in partition.fetched("b", replica, offset)]
    has = {replica: [offset for r, offset in fetches if r == replica] for replica in in_sync}
    final = min((max(offsets, default=-1) for offsets in has.values()), default=-1)
    assert moved == sorted(set(moved))
    assert max(moved, default=-1) == final


# -- tables


def replication(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    full = [{"instance": "b", "key": "a-0"} | row for row in rows]
    others = [name for name in REPLICATION.fieldNames() if name != "at"]
    shown = [tuple(row.get(name) for name in (*others, "at_ms")) for row in full]
    schema = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in REPLICATION.fields if f.name != "at")
    random.Random(3).shuffle(shown)
    found = spark.createDataFrame(shown, f"{schema}, at_ms bigint")
    return found.withColumn("at", F.timestamp_millis("at_ms")).select(*REPLICATION.fieldNames())


def appended(op_id: str, at_ms: int, offset: int, waited_ms: float, **more: Any) -> dict[str, Any]:
    ended = {"timeout_ms": 1000, "outcome": "completed", "waited_ms": waited_ms, "handling_ms": 0.1}
    return {"op_id": op_id, "what": "appended", "at_ms": at_ms, "offset": offset} | ended | more


def fetched(replica: int, at_ms: int, offset: int) -> dict[str, Any]:
    return {"what": "fetched", "at_ms": at_ms, "offset": offset, "replica": replica, "handling_ms": 30.0}


def in_sync(at_ms: int, *replicas: int, what: str = "isr") -> dict[str, Any]:
    return {"what": what, "at_ms": at_ms, "replica": 1, "in_sync": list(replicas)}


STORY = [
    in_sync(0, 1, 2, 3, what="metadata"),
    appended("p0", 1000, 0, 50.0),  # records 0 to 4: the next batch begins at 5
    fetched(2, 1010, 5),
    fetched(3, 1050, 5),
    appended("p1", 2000, 5, 480.0),  # a follower is frozen: it leaves
    fetched(2, 2010, 8),
    in_sync(2400, 1, 2, what="asking"),
    in_sync(2500, 1, 2),
    appended("p2", 3000, 8, 0.0),  # answered within the handling of the fetch, 30 ms
    fetched(2, 3020, 9),
    appended("p3", 4000, 9, 1000.0, outcome="expired"),  # nobody fetches; and there is no next batch: one record
    appended("p4", 4500, 9, 2.0, key="c-1"),  # nobody follows c-1: its lone leader has it at once
    {"what": "refused", "key": "d-0", "at_ms": 10},
    in_sync(5, 1) | {"key": "d-0"},
    appended("p5", 20, 0, 3.0, key="d-0"),  # so two have to be in sync there
]


@pytest.mark.slow  # many small jobs
def test_a_story_of_one_partition(spark: SparkSession) -> None:
    told = replication(spark, STORY).persist()
    produces = pipeline.acks_all_produces(told)
    check_table(produces, PRODUCES, "produces")
    required = {row.op_id: [tuple(watch) for watch in row.watches] for row in produces.collect()}
    assert required == {
        "p0": [("a-0", 5)],
        "p1": [("a-0", 8)],
        "p2": [("a-0", 9)],
        "p3": [("a-0", 10)],
        "p4": [("c-1", 10)],
        "p5": [("d-0", 1)],
    }
    watermarks = pipeline.high_watermarks(told).persist()
    check_table(watermarks, HIGH_WATERMARKS, "high_watermarks")
    moved = watermarks.select("key", F.unix_millis("at"), "progress", "cause", "replica").orderBy("key", "at")
    assert [tuple(row) for row in moved.collect()] == [
        ("a-0", 1050, 5, "fetch", 3),
        ("a-0", 2500, 8, "isr", None),
        ("a-0", 3020, 9, "fetch", 2),
        ("c-1", 4500, 10, "append", None),
    ]
    predictions = pipeline.compare_with_kafka(told, watermarks)
    check_table(predictions, PREDICTIONS, "predictions")
    assert predictions.columns == PREDICTIONS.fieldNames()
    found = {row.op_id: (row.predicted, row.predicted_ms, row.explanation) for row in predictions.collect()}
    assert found == {
        "p0": ("completed", 50.0, CLOCK),
        "p1": ("completed", 500.0, IN_SYNC),
        "p2": ("completed", 20.0, HANDLING),
        "p3": ("expired", 1000.0, CLOCK),
        "p4": ("completed", 0.0, UNEXPLAINED),
        "p5": ("expired", 1000.0, OUTCOME),
    }


def test_a_wrong_table_or_setting_is_refused(spark: SparkSession) -> None:
    told = replication(spark, STORY)
    with pytest.raises(SchemaError, match="replication: no column 'in_sync'"):
        pipeline.high_watermarks(told.drop("in_sync"))
    with pytest.raises(SchemaError, match="replication: no column 'offset'"):
        pipeline.acks_all_produces(told.drop("offset"))
    with pytest.raises(ValueError, match="min_insync_replicas must be at least 1, not 0"):
        pipeline.high_watermarks(told, min_insync_replicas=0)
