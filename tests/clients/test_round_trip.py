"""Clients of other languages, unmodified, produce to three brokers and consume: codecs, keys, nulls, headers, times."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker import Cluster
from abeyant.broker.genuine import Kafka
from clients.java import SMALL, Driver
from clients.records import CODECS, EXPECTED, LINES, RECORDS, codec_of, written
from clients.toolchains import command

_PATIENCE = 120.0  # seconds


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        yield cluster


def run(line: list[str], text: str | None = None) -> str:
    done = subprocess.run(line, input=text, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def by_partition(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


def of_topic(records: list[dict[str, Any]], topic: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "topic"} for one in records if one["topic"] == topic]


@pytest.mark.parametrize("codec", CODECS)
def test_java(kafka: Cluster, java: Driver, codec: str) -> None:
    kafka.create_topic("orders", partitions=2)
    asked = {"topic": "orders", "codec": codec, "records": RECORDS}
    answer = java.ask(do="round trip", bootstrap=kafka.bootstrap, **asked)
    assert answer["error"] is None
    assert by_partition(answer["records"]) == written(kafka, "orders") == EXPECTED
    assert codec_of(kafka, "orders") == codec


@pytest.mark.parametrize("name", ["franz-go", "sarama", "kafka-go"])
def test_go(kafka: Cluster, go: Path, tmp_path: Path, name: str) -> None:
    for codec in CODECS:
        kafka.create_topic(f"{name}-{codec}", partitions=2)
    given = tmp_path / "records"
    given.write_text(LINES)
    got = [json.loads(line) for line in run([str(go), name, kafka.bootstrap, str(given), *CODECS]).splitlines()]
    for codec in CODECS:
        topic = f"{name}-{codec}"
        read = of_topic(got, topic)
        assert written(kafka, topic) == EXPECTED
        if name == "kafka-go":  # it reads an empty value as none
            assert [one | {"value": one["value"] or None} for one in EXPECTED] == read
        else:
            assert read == EXPECTED
        assert codec_of(kafka, topic) == codec


@pytest.mark.parametrize("codec", CODECS)
def test_kcat(kafka: Cluster, codec: str) -> None:
    """It can send neither headers of bytes nor times, and gives all records of a call the same headers."""
    kcat = command("kcat")
    kafka.create_topic("orders")
    common = [kcat, "-b", kafka.bootstrap, "-t", "orders", "-p", "0"]
    settings = ["-X", "enable.idempotence=true", "-z", codec, "-H", "a=1", "-H", "b"]
    long = "1" * 1000  # or librdkafka would not compress it
    run([*common, "-P", "-K", ":", "-Z", *settings], f"one:{long}\ntwo:2\n:\n")
    said = run([*common, "-C", "-e", "-o", "beginning", "-J", "-q"])
    got = [json.loads(line) for line in said.splitlines()]
    told = [(one["key"], one["payload"], one["offset"]) for one in got]
    assert told == [("one", long, 0), ("two", "2", 1), (None, None, 2)]
    assert {tuple(one["headers"]) for one in got} == {("a", "1", "b", None)}
    sent = [(b"one", long.encode()), (b"two", b"2"), (None, None)]
    assert [(one.key, one.value) for one in kafka.records("orders")] == sent
    assert codec_of(kafka, "orders") == codec


@pytest.mark.parametrize(
    ("name", "packages", "codecs"),
    [
        ("kafkajs", "node", ("none", "gzip", "snappy")),
        ("confluent", "confluent_javascript", CODECS[:4]),
    ],  # built without zstd
)
def test_node(
    kafka: Cluster, request: pytest.FixtureRequest, tmp_path: Path, name: str, packages: str, codecs: tuple[str, ...]
) -> None:
    program = str(request.getfixturevalue(packages) / "round_trip.mjs")
    round_trip(kafka, [command("node"), program, name], name, codecs, tmp_path)


@pytest.mark.parametrize(("name", "codecs"), [("rdkafka", CODECS[:4]), ("rskafka", CODECS)])  # built without zstd
def test_rust(kafka: Cluster, rust: Path, tmp_path: Path, name: str, codecs: tuple[str, ...]) -> None:
    round_trip(kafka, [str(rust), "round-trip", name], name, codecs, tmp_path)


def round_trip(kafka: Cluster, program: list[str], name: str, codecs: tuple[str, ...], folder: Path) -> None:
    for codec in codecs:
        kafka.create_topic(f"{name}-{codec}", partitions=2)
    given = folder / "records"
    given.write_text(LINES)
    got = [json.loads(one) for one in run([*program, kafka.bootstrap, str(given), *codecs]).splitlines()]
    expected = EXPECTED if name != "confluent" else [one | {"value": one["value"] or None} for one in EXPECTED]
    for codec in codecs:
        topic = f"{name}-{codec}"
        assert written(kafka, topic) == expected  # Confluent's for Node sends an empty value as none
        assert by_partition(of_topic(got, topic)) == expected
        assert codec_of(kafka, topic) == codec


def java_tool(jars: Kafka, name: str, *arguments: str, text: str | None = None) -> str:
    return run(jars.command(f"org.apache.kafka.tools.{name}", *arguments, options=SMALL), text)


def test_javas_console_producer_and_consumer(kafka: Cluster, jars: Kafka) -> None:
    kafka.create_topic("orders")
    common = ["--bootstrap-server", kafka.bootstrap, "--topic", "orders"]
    reading = ["parse.key=true", "parse.headers=true", "null.marker=~", "headers.separator=,"]
    properties = [f"--reader-property={one}" for one in reading]
    idempotent = ["--command-property=enable.idempotence=true", "--compression-codec=zstd"]
    sent = "a:1,b:2\tone\tvalue one\na:3\ttwo\t~\n~\t~\tvalue three\n"
    java_tool(jars, "ConsoleProducer", *common, *properties, *idempotent, text=sent)
    shown = [f"--formatter-property=print.{one}=true" for one in ("key", "headers", "offset", "partition")]
    for way in (["--partition", "0", "--offset", "earliest"], ["--group", "readers", "--from-beginning"]):
        said = java_tool(jars, "consumer.ConsoleConsumer", *common, *shown, *way, "--max-messages", "3")
        assert said.splitlines() == [
            "Partition:0\tOffset:0\ta:1,b:2\tone\tvalue one",
            "Partition:0\tOffset:1\ta:3\ttwo\tnull",
            "Partition:0\tOffset:2\tNO_HEADERS\tnull\tvalue three",
        ]
    assert codec_of(kafka, "orders") == "zstd"


def test_javas_producer_perf_test(kafka: Cluster, jars: Kafka) -> None:
    kafka.create_topic("orders", partitions=3)
    counted = ["--num-records", "20000", "--record-size", "100", "--throughput", "-1"]
    settings = [f"bootstrap.servers={kafka.bootstrap}", "acks=all", "enable.idempotence=true", "compression.type=lz4"]
    said = java_tool(jars, "ProducerPerformance", "--topic", "orders", *counted, "--command-property", *settings)
    assert "20000 records sent" in said
    assert len(kafka.records("orders")) == 20_000
