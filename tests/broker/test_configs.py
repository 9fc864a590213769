"""Settings of topics and brokers, told and changed by an unmodified admin client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.broker.requests.common.config_resources import BROKER, TOPIC
from broker.clients import producing, send, settle
from broker.wire import WireClient


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("orders", replicas=2, config={"retention.ms": 1000})
        yield cluster


def admin(kafka: Cluster) -> Any:
    return AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})


def described(kafka: Cluster, kind: Any, name: str) -> dict[str, Any]:
    resource = ConfigResource(kind, name)
    client = admin(kafka)
    found: dict[str, Any] = client.describe_configs([resource])[resource].result()
    return found


def altered(kafka: Cluster, kind: Any, name: str, *changes: tuple[str, str | None, Any]) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=operation) for key, value, operation in changes]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    client = admin(kafka)
    client.incremental_alter_configs([resource])[resource].result()


def refusal(kafka: Cluster, *arguments: Any) -> tuple[str, str]:
    with pytest.raises(KafkaException) as caught:
        altered(kafka, *arguments)
    return caught.value.args[0].name(), caught.value.args[0].str()


def test_topic_told(kafka: Cluster) -> None:
    found = described(kafka, ResourceType.TOPIC, "orders")

    assert len(found) == 33
    entry = found["retention.ms"]
    assert (entry.value, entry.source, entry.is_read_only, entry.is_default) == ("1000", 1, False, False)
    entry = found["min.insync.replicas"]
    assert (entry.value, entry.source, list(entry.synonyms)) == ("1", 3, ["min.insync.replicas"])
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        described(kafka, ResourceType.TOPIC, "payments")


def test_broker_told(kafka: Cluster) -> None:
    found = described(kafka, ResourceType.BROKER, "2")

    assert len(found) == 340
    assert found["num.partitions"].is_read_only
    place = "PLAINTEXT://" + kafka.bootstrap.split(",")[1]
    own = {"node.id": "2", "listeners": place, "advertised.listeners": place, "log.dirs": "/memory/broker-2"}
    assert {name: (found[name].value, found[name].source) for name in own} == {name: (own[name], 4) for name in own}
    with WireClient(kafka.bootstrap) as client:
        assert [one.name for one in told(client, 4, BROKER, "").configs] == ["min.insync.replicas"]
        assert told(client, 4, BROKER, "2").error_message == (
            "Unexpected broker id, expected 1 or empty string, but received 2"
        )
        assert told(client, 4, BROKER, "x").error_code is ErrorCode.invalid_request
        assert told(client, 4, 16, "").error_code is ErrorCode.invalid_request
        assert told(client, 4, TOPIC, "no/name").error_code is ErrorCode.invalid_topic_exception


def told(client: WireClient, version: int, kind: int, name: str, keys: list[str] | None = None, **more: bool) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return client.ask(32, version, resources=[resource], **more).results[0]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_synonyms_and_documentation_where_asked_for(kafka: Cluster, version: int) -> None:
    with WireClient(kafka.bootstrap) as client:
        (entry,) = told(client, version, TOPIC, "orders", ["retention.ms", "nonsense"]).configs
        assert (entry.name, entry.value, entry.synonyms) == ("retention.ms", "1000", ())
        (entry,) = told(
            client, version, TOPIC, "orders", ["min.insync.replicas"], include_synonyms=True, include_documentation=True
        ).configs
        assert [(place.name, place.value, place.source) for place in entry.synonyms] == [
            ("min.insync.replicas", "1", 3),
            ("min.insync.replicas", "1", 5),
        ]
        if version >= 3:
            assert entry.documentation == "How many in-sync replicas an acks=all produce needs."


def test_topic_changed(kafka: Cluster) -> None:
    set_, delete, append, subtract = (
        AlterConfigOpType.SET, AlterConfigOpType.DELETE, AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT,
    )  # fmt: skip
    altered(kafka, ResourceType.TOPIC, "orders", ("max.message.bytes", "100", set_), ("retention.ms", None, delete))
    altered(kafka, ResourceType.TOPIC, "orders", ("cleanup.policy", "compact", append))

    found = described(kafka, ResourceType.TOPIC, "orders")
    values = [found[name].value for name in ("max.message.bytes", "retention.ms", "cleanup.policy")]
    assert values == ["100", "604800000", "delete,compact"]
    with producing(kafka) as producer:
        assert settle(producer, send(producer, "orders", b"x" * 200, key=b"k")) == ["MSG_SIZE_TOO_LARGE"]
    altered(kafka, ResourceType.TOPIC, "orders", ("cleanup.policy", "delete", subtract))
    assert described(kafka, ResourceType.TOPIC, "orders")["cleanup.policy"].value == "compact"


def test_changes_that_kafka_refuses(kafka: Cluster) -> None:
    set_, append = AlterConfigOpType.SET, AlterConfigOpType.APPEND
    topic = ResourceType.TOPIC
    assert refusal(kafka, topic, "orders", ("retention.msx", "1", set_)) == (
        "INVALID_CONFIG", "Unknown topic config name: retention.msx; did you mean retention.ms?",
    )  # fmt: skip
    assert refusal(kafka, topic, "orders", ("retention.ms", "x", set_))[0] == "INVALID_CONFIG"
    assert refusal(kafka, topic, "orders", ("retention.ms", "1", append))[0] == "INVALID_CONFIG"
    assert refusal(kafka, topic, "payments", ("retention.ms", "1", set_))[0] == "UNKNOWN_TOPIC_OR_PART"
    assert refusal(kafka, ResourceType.BROKER, "1", ("num.partitions", "2", set_)) == (
        "INVALID_REQUEST", "Cannot update these configs dynamically: [num.partitions]",
    )  # fmt: skip
    with WireClient(kafka.bootstrap) as client:
        for configs, code, message in (
            ([("retention.ms", 0, None)], 42, "Null value not supported for : retention.ms"),
            ([("retention.ms", 0, "1"), ("retention.ms", 1, None)], 42, "Error due to duplicate config keys"),
            ([("retention.ms", 9, "1")], 42, "Unknown operations type 9"),
        ):
            entries = [
                {"name": name, "config_operation": operation, "value": value} for name, operation, value in configs
            ]
            resource = {"resource_type": TOPIC, "resource_name": "orders", "configs": entries}
            (result,) = client.ask(44, 1, resources=[resource]).responses
            assert (result.error_code.value, result.error_message) == (code, message)
            results = client.ask(44, 0, resources=[resource, resource]).responses
            assert {result.error_message for result in results} == {"Each resource must appear at most once."}
        resource = {"resource_type": 99, "resource_name": "x", "configs": []}
        assert client.ask(33, 2, resources=[resource]).responses[0].error_code is ErrorCode.invalid_request
        entry = {"name": "retention.ms", "value": "5"}
        resource = {"resource_type": TOPIC, "resource_name": "orders", "configs": [entry]}
        (result,) = client.ask(33, 2, resources=[resource], validate_only=True).responses
        assert result.error_code is ErrorCode.none
    assert described(kafka, topic, "orders")["retention.ms"].value == "1000"


def test_brokers_changed_and_kept(tmp_path: Path) -> None:
    with Cluster(data=tmp_path) as kafka:
        kafka.create_topic("orders")
        entry = {"name": "message.max.bytes", "config_operation": 0, "value": "100"}
        with WireClient(kafka.bootstrap) as client:
            resource = {"resource_type": BROKER, "resource_name": "", "configs": [entry]}
            (result,) = client.ask(44, 1, resources=[resource]).responses
            assert result.error_code is ErrorCode.none
        altered(kafka, ResourceType.TOPIC, "orders", ("retention.ms", "7", AlterConfigOpType.SET))
    with Cluster(data=tmp_path) as kafka:
        found = described(kafka, ResourceType.TOPIC, "orders")
        assert (found["max.message.bytes"].value, found["retention.ms"].value) == ("100", "7")
        assert found["max.message.bytes"].source == 3
        with producing(kafka) as producer:
            assert settle(producer, send(producer, "orders", b"x" * 200)) == ["MSG_SIZE_TOO_LARGE"]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_at_once(kafka: Cluster, version: int) -> None:
    resource = {"resource_type": TOPIC, "resource_name": "orders"}
    with WireClient(kafka.bootstrap) as client:
        client.ask(33, version, resources=[{**resource, "configs": [{"name": "max.message.bytes", "value": "200"}]}])

    found = described(kafka, ResourceType.TOPIC, "orders")
    assert [found[name].value for name in ("max.message.bytes", "retention.ms")] == ["200", "604800000"]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_log_dirs(kafka: Cluster, tmp_path: Path, version: int) -> None:
    with producing(kafka) as producer:
        settle(producer, send(producer, "orders", b"x" * 100))
    with WireClient(kafka.bootstrap) as client:
        (result,) = client.ask(35, version, topics=None).results
        (partition,) = result.topics[0].partitions
        assert (result.topics[0].name, partition.partition_index, partition.offset_lag) == ("orders", 0, 0)
        assert partition.partition_size > 100
        (result,) = client.ask(35, version, topics=[{"topic": "payments", "partitions": [0]}]).results
        assert not result.topics
    with Cluster(data=tmp_path) as other, WireClient(other.bootstrap) as client:
        (result,) = client.ask(35, version, topics=None).results
        assert result.log_dir == str(tmp_path / "broker-1")
        if version >= 4:
            assert 0 < result.usable_bytes <= result.total_bytes


def test_producers(kafka: Cluster) -> None:
    with producing(kafka, enable_idempotence=True, acks="all", retries=5) as producer:
        settle(producer, send(producer, "orders", b"1"), send(producer, "orders", b"2"))
    with WireClient(kafka.bootstrap) as client:
        asked = [{"name": "orders", "partition_indexes": [0, 1]}, {"name": "payments", "partition_indexes": [0]}]
        orders, payments = client.ask(61, 0, topics=asked).topics
        (state,) = orders.partitions[0].active_producers
        assert (state.producer_epoch, state.last_sequence, state.current_txn_start_offset) == (0, 1, -1)
        unknown = ErrorCode.unknown_topic_or_partition
        assert [orders.partitions[1].error_code, payments.partitions[0].error_code] == [unknown, unknown]
    with WireClient(kafka.bootstrap.split(",")[1]) as client:  # a follower knows them too
        (orders,) = client.ask(61, 0, topics=asked[:1]).topics
        assert orders.partitions[0].error_code is ErrorCode.none


@pytest.mark.parametrize("all_topics", [False, True])
def test_a_partition_without_a_leader_has_one_once_that_may_be_unclean(kafka: Cluster, all_topics: bool) -> None:
    kafka.stop(2)
    kafka.stop(1)
    kafka.start(2)
    assert (kafka.leader("orders"), kafka.in_sync("orders")) == (None, (1,))
    if all_topics:
        kafka._on_loop(kafka.controller.configure_brokers, None, {"unclean.leader.election.enable": "true"})
    else:
        altered(kafka, ResourceType.TOPIC, "orders", ("unclean.leader.election.enable", "true", AlterConfigOpType.SET))
    assert (kafka.leader("orders"), kafka.in_sync("orders")) == (2, (2,))


def test_a_broker_that_was_fenced_learns_of_changes_made_meanwhile() -> None:
    with Cluster(brokers=2, clock="held") as kafka:
        kafka.create_topic("orders", replicas=2)
        kafka.pause(2)
        kafka.clock.advance(10.0)
        assert kafka.in_sync("orders") == (1,)
        kafka._on_loop(kafka.controller.configure_brokers, 2, {"log.retention.ms": "5", "max.connections": "1"})
        altered(kafka, ResourceType.TOPIC, "orders", ("max.message.bytes", "100", AlterConfigOpType.SET))
        kafka.resume(2)
        config = kafka._settled(lambda: kafka.brokers[2].partitions["orders", 0].log.config)
        assert (config.max_message_bytes, config.retention_ms) == (100, 5)


def retentions(kafka: Cluster) -> list[int]:
    return [kafka.brokers[number].partitions["orders", 0].log.config.retention_ms for number in (1, 2)]


def test_settings_of_one_broker_outlive_it_and_the_cluster(tmp_path: Path) -> None:
    entry = ("log.retention.ms", "60000", AlterConfigOpType.SET)
    for change in (entry, (*entry[:1], None, AlterConfigOpType.DELETE)):
        with Cluster(brokers=2, data=tmp_path) as kafka:
            if "orders" not in kafka.topics():
                kafka.create_topic("orders", replicas=2)
            altered(kafka, ResourceType.BROKER, "2", change)
            for broker in (1, 2):
                kafka.stop(broker)
                kafka.start(broker)
            live = kafka._settled(retentions, kafka)
        with Cluster(brokers=2, data=tmp_path) as kafka:
            found = [described(kafka, ResourceType.BROKER, n)["log.retention.ms"].value for n in "12"]
            kept = kafka._settled(retentions, kafka)
        ms = 60_000 if change is entry else 604_800_000
        assert live == kept == [604_800_000, ms]
        assert found == [None, "60000" if change is entry else None]
