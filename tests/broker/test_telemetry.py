"""Metrics that unmodified clients push by themselves (KIP-714): counted, shown, refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from abeyant.broker import Cluster
from abeyant.broker.log import compression
from abeyant.broker.telemetry.clients import PushedMetrics
from abeyant.broker.telemetry.otlp import metric_names
from abeyant.broker.wire.encoding import varint
from abeyant.metrics import Collector
from broker.clients import consuming, producing, send, settle
from broker.conformance.client import Connection
from broker.conformance.messages import API_KEYS
from broker.conformance.scenarios.configs import DELETE, SET, stepwise
from broker.conformance.scenarios.telemetry import ALTER, CLIENT_METRICS, PAYLOAD, pushing
from waiting import wait_until

TOPIC = "orders"
TAGS = (b"\x0a", b"\x12", b"\x12", b"\x0a")  # of a name, and of what is around it in turn
GET, PUSH = "GetTelemetrySubscriptions", "PushTelemetry"


def connect(kafka: Cluster, client_id: str = "raw") -> Connection:
    host, _, port = kafka.bootstrap.partition(",")[0].rpartition(":")
    return Connection(host, int(port), client_id)


def subscribe(kafka: Cluster, name: str = "all", **values: str) -> None:
    steps = [(SET, key.replace("_", "."), value) for key, value in values.items()]
    with connect(kafka) as admin:
        [row] = admin.ask(ALTER, 1, stepwise(CLIENT_METRICS, name, *steps))["responses"]
    assert row["error_code"] == "NONE"


def of(kafka: Cluster, client: str) -> PushedMetrics | None:
    rows = [row for row in kafka.pushed_metrics() if row.client_id == client]
    return rows[-1] if rows else None


def test_a_producer_pushes_what_it_is_asked_for_and_says_when_it_ends() -> None:
    with Cluster() as kafka:
        kafka.create_topic(TOPIC)
        subscribe(kafka, metrics="org.apache.kafka.producer.", interval_ms="500", match="client_id=till")
        with producing(kafka, client_id="till") as producer, producing(kafka, client_id="shop") as other:
            assert settle(producer, send(producer, TOPIC, b"tea")) == [None]
            assert settle(other, send(other, TOPIC, b"tea")) == [None]
            wait_until(lambda: (row := of(kafka, "till")) is not None and row.pushes > 1)
            # A client that closes with a push in flight sends no last one. This response follows the push's.
            assert settle(producer, send(producer, TOPIC, b"tea")) == [None]
        del producer
        wait_until(lambda: (row := of(kafka, "till")) is not None and row.terminated)
        row = of(kafka, "till")
        assert row is not None
        assert row.software[0].startswith("confluent-kafka-python")
        assert row.size > 0
        assert "org.apache.kafka.producer.node.request.latency.avg" in row.metrics
        assert all(name.startswith("org.apache.kafka.producer.") for name in row.metrics)
        assert of(kafka, "shop") is None


def test_a_consumer_pushes_too_and_is_seen_by_prometheus() -> None:
    with Cluster() as kafka:
        registry = CollectorRegistry(auto_describe=True)
        Collector(kafka, registry=registry)
        kafka.create_topic(TOPIC)
        subscribe(kafka, metrics="*", interval_ms="100")
        with consuming(kafka, (TOPIC, 0), client_id="reader") as consumer:

            def pushed() -> bool:
                consumer.poll(0.05)
                row = of(kafka, "reader")
                return row is not None and any(".consumer." in name for name in row.metrics)

            wait_until(pushed)
        assert registry.get_sample_value("abeyant_broker_telemetry_pushes_total", {"broker": "1"}) >= 1


def test_a_subscription_is_kept_by_a_data_directory(tmp_path: Path) -> None:
    with Cluster(data=tmp_path) as kafka:
        subscribe(kafka, metrics="a.,b.", interval_ms="5000")
        subscribe(kafka, "gone", metrics="c.")
        with connect(kafka) as admin:
            admin.ask(ALTER, 1, stepwise(CLIENT_METRICS, "gone", (DELETE, "metrics", None)))
    with Cluster(data=tmp_path) as kafka, connect(kafka) as client:
        said = client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
        assert (said["push_interval"], said["requested_metrics"]) == (5000, ["a.", "b."])


def test_the_apis_are_listed_while_there_is_a_subscription() -> None:
    """As in a Kafka without a plugin, clients do not ask where nobody wants to know."""
    with Cluster() as kafka, connect(kafka) as client:

        def listed() -> set[str]:
            said = client.ask("ApiVersions", 4, {"client_software_name": "a", "client_software_version": "1"})
            return {name for name in (GET, PUSH) if API_KEYS[name] in {row["api_key"] for row in said["api_keys"]}}

        assert listed() == set()
        subscribe(kafka, metrics="a.")
        assert listed() == {GET, PUSH}
        client.ask(ALTER, 1, stepwise(CLIENT_METRICS, "all", (DELETE, "metrics", None)))
        assert listed() == set()


def test_a_client_that_is_silent_is_forgotten() -> None:
    """After a minute, or three intervals if that is longer; then it may ask again."""
    with Cluster(clock="held", settings={"connections.max.idle.ms": -1}) as kafka:
        subscribe(kafka, metrics="a.", interval_ms="3600000")
        with connect(kafka) as client:
            said = client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
            again = {"client_instance_id": said["client_instance_id"]}
            assert client.ask(GET, 0, again)["error_code"] == "THROTTLING_QUOTA_EXCEEDED"
            assert client.ask(PUSH, 0, pushing(said))["error_code"] == "NONE"
            assert client.ask(PUSH, 0, pushing(said))["error_code"] == "THROTTLING_QUOTA_EXCEEDED"
            kafka.clock.advance(3 * 300 + 1)  # as no interval is longer than the default of five minutes
            assert client.ask(GET, 0, again)["error_code"] == "NONE"


def test_no_client_is_asked_for_less_than_the_default() -> None:
    with Cluster() as kafka, connect(kafka) as client:
        subscribe(kafka, "rare", metrics="a.", interval_ms="3600000")
        said = client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
        assert (said["push_interval"], said["requested_metrics"]) == (300_000, ["a."])
        subscribe(kafka, "often", metrics="b.", interval_ms="500", match="client_id=other,client_id=raw")
        said = client.ask(GET, 0, {"client_instance_id": said["client_instance_id"]})
        assert (said["push_interval"], said["requested_metrics"]) == (500, ["a.", "b."])


@pytest.mark.parametrize("expression", ["a{99999999999999999999}", "(" * 3000 + "a" + ")" * 3000], ids=("many", "deep"))
def test_an_expression_that_cannot_be_compiled_is_refused(expression: str) -> None:
    with Cluster() as kafka, connect(kafka) as admin:
        step = SET, "match", f"client_id={expression}"
        [row] = admin.ask(ALTER, 1, stepwise(CLIENT_METRICS, "all", step))["responses"]
        assert row["error_code"] == "INVALID_CONFIG"
        assert row["error_message"].startswith("Illegal client matching pattern: client_id=")


def test_a_push_that_becomes_too_large_is_refused() -> None:
    """Before it is decompressed."""
    with Cluster(settings={"telemetry.max.bytes": 1000}) as kafka, connect(kafka) as client:
        for codec in (compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD):
            said = client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
            data = compression.compress(codec, bytes(1001))
            assert len(data) < 1000
            body = pushing(said, data, compression_type=codec)
            assert client.ask(PUSH, 0, body)["error_code"] == "INVALID_RECORD"


def test_what_is_kept_of_pushes_is_bounded_in_bytes() -> None:
    """The names of the least recent push are forgotten first; what was counted stays."""
    with Cluster() as kafka, connect(kafka) as client:
        for number in range(25):
            said = client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
            data = b"%03d" % number + b"x" * 900_000
            for tag in TAGS:
                data = tag + varint(len(data)) + data
            body = pushing(said, compression.compress(compression.ZSTD, data), compression_type=compression.ZSTD)
            assert client.ask(PUSH, 0, body)["error_code"] == "NONE"
        kept = [int(row.metrics[0][:3]) for row in kafka.pushed_metrics()]
        assert kept == list(range(7, 25)), "18 names of 0.9 MB are less than 16 MiB"
        assert kafka.brokers[1].telemetry.pushes == 25


def test_no_client_is_left_where_a_broker_stops() -> None:
    """Although several clients were told over one connection."""
    with Cluster(clock="held", settings={"connections.max.idle.ms": -1}) as kafka, connect(kafka) as client:
        broker = kafka.brokers[1]
        for _ in range(3):
            client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
        assert len(broker.telemetry) == 3
        kafka.stop(1)
        assert len(broker.telemetry) == 0


def test_counts_of_refusals() -> None:
    with Cluster(settings={"telemetry.max.bytes": 100}) as kafka, connect(kafka) as client:
        registry = CollectorRegistry(auto_describe=True)
        Collector(kafka, registry=registry)
        subscribe(kafka, metrics="a.", interval_ms="3600000", match="client_id=raw")
        said = client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
        for body, error in (
            (pushing(said, bytes(101), terminating=False), "TELEMETRY_TOO_LARGE"),
            (pushing(said, subscription_id=1), "THROTTLING_QUOTA_EXCEEDED"),
        ):
            assert client.ask(PUSH, 0, body)["error_code"] == error
            sample = registry.get_sample_value(
                "abeyant_broker_telemetry_refusals_total", {"broker": "1", "error": error}
            )
            assert sample == 1
        assert kafka.pushed_metrics() == []


def test_names_are_read_from_a_push() -> None:
    assert metric_names(PAYLOAD) == ("org.apache.kafka.producer.node.request.latency.max",)
    other = b"\x12\x03abc" + b"\x18\x96\x01" + b"\x21" + bytes(8) + b"\x2d" + bytes(4)  # fields that nobody reads
    assert metric_names(other + PAYLOAD + PAYLOAD) == metric_names(PAYLOAD)
    assert metric_names(b"") == ()


@pytest.mark.parametrize("data", [PAYLOAD[:-1], b"\x0a", b"\xff" * 20, b"\x0b\x00", b"\x2d\x00"])
def test_what_is_no_push_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"varint|ends|wire type"):
        metric_names(data)
