"""The request log as Spark tables: genuine logs of three kinds, and every way a file can be damaged."""

from __future__ import annotations

import bz2
import gzip
from collections import Counter
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline import KafkaRequestLog, read_kafka_request_log
from abeyant.pipeline.request_log import files as log_files
from abeyant.pipeline.request_log import tables as log_tables
from abeyant.pipeline.schemas import OBSERVED, REJECTED
from abeyant.pipeline.spark.columns import check_table
from pipeline.request_log.kafka_lines import fetch, line, produce

DATA = Path(__file__).parents[2] / "data"
SAMPLES = Path(__file__).parent / "samples"


def put(path: Path, *lines: bytes, packed: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join(one + b"\n" for one in lines)
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


def zstd(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return bytes(sink.getvalue())


def rows(table: DataFrame, *by: str) -> list[Row]:
    return sorted(table.collect(), key=lambda row: [row[name] for name in by])


def test_operations_of_several_brokers_and_rotated_files(spark: SparkSession, tmp_path: Path) -> None:
    names = line("METADATA", {"topics": []}, {"topics": [{"topicId": "t", "name": "orders"}]})
    put(tmp_path / "broker-1" / "kafka-request.log", produce(remote=5.0, sent="2026-11-21 10:00:01,000"), names)
    put(tmp_path / "broker-1" / "kafka-request.log.1.gz", fetch(500, remote=500.5), packed=True)
    put(
        tmp_path / "broker-2" / "kafka-request.log.2026-11-21-09",
        fetch(remote=0.0),
        line("HEARTBEAT", remote=0.125),
    )
    found = read_kafka_request_log(spark, tmp_path, timezone="Europe/Berlin")
    check_table(found, OBSERVED, "operations")
    assert found.columns == OBSERVED.fieldNames()
    one, two, three, four = rows(found, "instance", "op_id")
    assert one.asDict(recursive=True) == {
        "instance": "broker-1",
        "op_id": "kafka-request.log.1.gz:1",
        "kind": "FETCH_CONSUMER",
        "start": one["start"],
        "timeout_ms": 500,
        # The name of the topic comes from another file.
        "watches": [{"key": "orders-3", "required": 11}],
        "condition": "any",
        "outcome": "expired",
        "waited_ms": 500.5,
        "api": "FETCH",
        "error_code": 0,
        "client_id": "client",
        "local_ms": 0.25,
        "send_ms": 0.2,
        "throttle_ms": 0.0,
        "size_bytes": None,
    }
    assert (two["kind"], two["op_id"], two["waited_ms"]) == ("PRODUCE", "kafka-request.log:1", 5.0)
    assert two["size_bytes"] == 9
    assert (three["outcome"], three["waited_ms"]) == ("completed", 0.0)
    assert (four["kind"], four["outcome"], four["waited_ms"]) == ("HEARTBEAT", None, 0.125)
    # 10:00:01 in Berlin is 09:00:01 UTC; the wait began 5.3 ms before the line was written.
    start = found.where("kind = 'PRODUCE'").selectExpr("unix_micros(start) AS us").collect()[0]["us"]
    assert start == round(datetime.fromisoformat("2026-11-21T09:00:01+00:00").timestamp()) * 1_000_000 - 5300


def test_every_bad_line_is_rejected_with_its_place_and_reason(spark: SparkSession, tmp_path: Path) -> None:
    bad = [
        (line()[:150], "the line ends inside its JSON"),
        (b"\x00\x01\x02\xff garbage", "not a completed request"),
        (line().replace(b"client", b"cl\xffent"), "not valid UTF-8: byte"),
        (line(remoteTimeMs=None), "no field remoteTimeMs"),
        (line(remoteTimeMs="5"), "field remoteTimeMs is a str, not a number"),
        (line("PRODUCE", {"timeoutMs": []}, ""), "field timeoutMs is a list, not an integer"),
        (b"java.io.IOException: Broken pipe", "not a completed request"),
        (b"\tat java.base/sun.nio.ch.Foo.write(Foo.java:12)", "not a completed request"),
    ]
    lines = [produce()]
    for text, _ in bad:
        lines += [text, b"", produce()]
    file = put(tmp_path / "b" / "kafka-request.log", *lines)
    log = KafkaRequestLog(spark, file)
    check_table(log.rejected, REJECTED, "rejected")
    rejected = rows(log.rejected, "line_number")
    assert [row["line_number"] for row in rejected] == [2 + 3 * at for at in range(len(bad))]
    assert {(row["instance"], row["file"]) for row in rejected} == {("b", str(file))}
    for row, (_, reason) in zip(rejected, bad, strict=True):
        assert row["reason"].startswith(reason)
        assert row["excerpt"].isprintable()
    assert log.operations.count() == len(bad) + 1
    # Neither blank lines nor rejected ones are requests.
    assert [row.asDict() for row in log.requests_by_kind.collect()] == [
        {"instance": "b", "api": "PRODUCE", "requests": len(bad) + 1, "waited": 0}
    ]


def test_a_damaged_file_costs_only_what_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    sound = [produce() for _ in range(2000)]
    whole = gzip.compress(b"".join(one + b"\n" for one in sound))
    files = {
        "cut/kafka-request.log.gz": (whole[:-9], "the gzip file is cut off"),
        "torn/kafka-request.log.gz": (whole[: len(whole) // 2], "the gzip file is cut off"),
        "sum/kafka-request.log.gz": (whole[:-6] + b"\0" + whole[-5:], "damaged gzip: CRC check failed"),
        "bz/kafka-request.log.bz2": (
            bz2.compress(b"".join(one + b"\n" for one in sound))[:-9],
            "the bzip2 file is cut off",
        ),
        "zst/kafka-request.log.zst": (zstd(whole)[:-9], "cut off, or damaged zstd: "),
        "no/kafka-request.log.zst": (zstd(whole)[:4] + b"x" * 99, "cut off, or damaged zstd: "),
        "zip/kafka-request.log.1": (b"PK\x03\x04" + whole, "compressed with zip"),
    }
    for name, (content, _) in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "kafka-request.log").write_bytes(b"")
    put(tmp_path / "sound" / "kafka-request.log", *sound)
    parsed = KafkaRequestLog(spark, tmp_path).parsed.persist()
    cut = KafkaRequestLog.of(parsed)
    read = {row["instance"]: row["requests"] for row in cut["requests_by_kind"].collect()}
    rejected = {row["instance"]: row for row in cut["rejected"].collect()}
    parsed.unpersist()
    assert read["sound"] == read["sum"] == 2000
    assert 0 < read["torn"] < read["cut"] <= 2000
    assert len(rejected) == len(files)
    for name, (_, reason) in files.items():
        row = rejected[name.partition("/")[0]]
        assert row["reason"].startswith(reason)
        assert row["file"] == str(tmp_path / name)
        assert row["line_number"] == read.get(row["instance"], 0) + 1


def test_a_large_file_is_read_in_pieces_with_true_line_numbers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [produce(timeout_ms=number) if number % 50 else b"bad" for number in range(1, 1001)]
    file = put(tmp_path / "b" / "kafka-request.log", *lines)
    monkeypatch.setattr(log_tables, "chunks", lambda files: log_files.chunks(files, 9_973))
    # In the driver, and as a Spark job.
    for limit in (1 << 30, 0):
        monkeypatch.setattr(log_tables, "_LOCAL_SURVEY_BYTES", limit)
        log = KafkaRequestLog(spark, file)
        assert len(log.survey.chunks) > 30
        assert log.survey.any_request
        cut = KafkaRequestLog.of(log.parsed)
        numbers = {row["op_id"]: row["timeout_ms"] for row in cut["operations"].collect()}
        assert numbers == {f"kafka-request.log:{n}": n for n in range(1, 1001) if n % 50}
        assert [row["line_number"] for row in rows(cut["rejected"], "line_number")] == list(range(50, 1001, 50))


def test_survey_by_spark_finds_the_same_topics(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        topics = [{"topicId": f"id{number}", "name": f"topic{number}"}]
        put(tmp_path / f"b{number}" / "kafka-request.log", line("METADATA", "", {"topics": topics}))
    here = KafkaRequestLog(spark, tmp_path).survey
    monkeypatch.setattr(log_tables, "_LOCAL_SURVEY_BYTES", 0)
    assert KafkaRequestLog(spark, tmp_path).survey == here
    assert here.topics["id3"] == "topic3"


def test_one_machine_has_two_tasks_a_core_until_they_are_large(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tables, "_TASK_BYTES", 1)
    for number in range(9):
        put(tmp_path / f"broker-{number}" / "kafka-request.log", fetch())
    parsed = KafkaRequestLog(spark, tmp_path).parsed
    assert parsed.rdd.getNumPartitions() == 4  # of the session's two cores
    assert parsed.where("record = 'operation'").count() == 9
    half = sum(file.stat().st_size for file in tmp_path.rglob("*.log")) // 2
    monkeypatch.setattr(log_tables, "_LOCAL_TASK_BYTES", half // 4 + 1)
    assert KafkaRequestLog(spark, tmp_path).parsed.rdd.getNumPartitions() == 8  # four times two, so that none is idle
    monkeypatch.setattr(log_tables, "_LOCAL_TASK_BYTES", 1)
    assert KafkaRequestLog(spark, tmp_path).parsed.rdd.getNumPartitions() == 9


def test_a_genuine_log_at_debug(spark: SparkSession) -> None:
    file = DATA / "kafka-request-debug.log.gz"
    parsed = KafkaRequestLog(spark, file, instance="one").parsed.persist()
    cut = KafkaRequestLog.of(parsed)
    with gzip.open(file, "rt") as stream:
        lines = stream.read().splitlines()
    assert cut["rejected"].count() == 0
    assert sum(row["requests"] for row in cut["requests_by_kind"].collect()) == len(lines)
    assert {row["instance"] for row in cut["operations"].select("instance").collect()} == {"one"}
    parsed.unpersist()


def test_a_genuine_log_of_kafka_2_6(spark: SparkSession) -> None:
    found = read_kafka_request_log(spark, SAMPLES / "kafka-2.6.3.log").collect()
    assert {row["kind"] for row in found} == {
        *("PRODUCE", "FETCH_CONSUMER", "FETCH_FOLLOWER", "JOIN_GROUP", "SYNC_GROUP", "DELETE_RECORDS")
    }
    counted = Counter((row["kind"], row["outcome"]) for row in found)
    assert counted["DELETE_RECORDS", "expired"] == 1
    assert counted["PRODUCE", "expired"] == 2


def test_bodies_left_out_leave_what_the_line_still_knows(spark: SparkSession, tmp_path: Path) -> None:
    file = put(tmp_path / "b" / "kafka-request.log", line("PRODUCE", remote=7.0), line("FETCH", remote=0.0))
    one, two = rows(read_kafka_request_log(spark, file), "op_id")
    assert (one["kind"], one["timeout_ms"], one["watches"], one["outcome"], one["waited_ms"]) == (
        *("PRODUCE", None, []),
        *(None, 7.0),
    )
    assert (two["kind"], two["outcome"], two["error_code"]) == ("FETCH", "completed", None)


def test_a_time_zone_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    file = put(tmp_path / "kafka-request.log", produce())
    for zone in ("Middle/Earth", "", "../etc/passwd"):
        with pytest.raises(AbeyantError, match="no such time zone"):
            read_kafka_request_log(spark, file, timezone=zone)
