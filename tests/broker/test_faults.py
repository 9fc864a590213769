"""Faults that are ordered (K11): what a client sees of each, whom it strikes, and that it ends."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import typing
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kio.index import load_request_schema

from abeyant.broker import Cluster
from abeyant.broker.requests.common.named import NAME_PARTITIONS, NAME_TOPICS
from abeyant.broker.wire.apis import APIS
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle, take
from broker.conformance.bodies import fetch, part
from broker.conformance.client import ClosedError, Connection
from broker.conformance.scenario import Topic
from waiting import wait_until

TOPIC = "orders"


def test_k11_requests_fail_as_often_as_told_and_nothing_of_them_is_done() -> None:
    with Cluster() as kafka:
        kafka.create_topic(TOPIC)
        fault = kafka.fail("Produce", error="KAFKA_STORAGE_ERROR", times=2, topic=TOPIC)
        with producing(kafka) as producer:
            found = [settle(producer, send(producer, TOPIC, b"%d" % number)) for number in range(3)]
        assert found == [["KAFKA_STORAGE_ERROR"], ["KAFKA_STORAGE_ERROR"], [None]]
        assert (fault.hits, fault.active) == (2, False)
        assert [record.value for record in kafka.records(TOPIC)] == [b"2"]


def test_a_fault_ends_with_its_block() -> None:
    with Cluster() as kafka, producing(kafka) as producer:
        kafka.create_topic(TOPIC)
        with kafka.fail("Produce", error="not_enough_replicas") as fault:
            assert settle(producer, send(producer, TOPIC, b"in")) == ["NOT_ENOUGH_REPLICAS"]
            assert fault.active
        assert settle(producer, send(producer, TOPIC, b"after")) == [None]
        assert kafka._gate is None  # and requests pay nothing for it any more


def test_calls_that_block_end_at_once_when_the_cluster_closes() -> None:
    with Cluster() as kafka, ThreadPoolExecutor(3) as threads:
        fault = kafka.observe("Produce")
        calls: list[Future[Any]] = [
            threads.submit(kafka.until_waiting, "Produce", timeout=60),
            threads.submit(fault.wait, timeout=60),
        ]
        wait_until(lambda: kafka._awaited and fault._awaited, "both block")
        asking = threads.submit(_ask_for_ever, kafka)
        kafka.close()
        found = [str(call.exception(timeout=10)) for call in (*calls, asking)]
    assert found == [
        "the cluster was closed: 0 of 1 requests were pending in Produce",
        "the cluster was closed: 0 of 1 hits of <Fault: counted: Produce>",
        "the cluster is not open: it has been closed; create another",
    ]


def test_an_advance_ends_where_it_is_when_the_cluster_closes() -> None:
    with Cluster(clock="held") as kafka, ThreadPoolExecutor(1) as threads:
        reached: list[int] = []

        def close() -> None:
            threads.submit(kafka.close)
            wait_until(lambda: vars(kafka.clock)["_interrupted"], "it closes")

        timer = kafka.clock.timer
        kafka._on_loop(timer.call_later, 1.0, close)
        kafka._on_loop(timer.call_later, 2.0, reached.append, 2)
        with pytest.raises(AbeyantError, match="closed before its clock was advanced by all of 3 s"):
            kafka.clock.advance(3)
        assert reached == []
        with pytest.raises(TypeError, match="seconds must be seconds"):
            kafka.clock.advance("1")  # type: ignore[arg-type]


def test_a_call_that_the_loop_never_came_to_ends_when_the_cluster_closes() -> None:
    with Cluster() as kafka, ThreadPoolExecutor(1) as threads:
        loop, kafka._loop = kafka._loop, cast("asyncio.AbstractEventLoop", _Deaf())
        call = threads.submit(kafka.topics)
        wait_until(lambda: kafka._calls, "it blocks")
        kafka._loop = loop
        kafka.close()
        with pytest.raises(AbeyantError, match="the cluster is not open: it has been closed; create another"):
            call.result(timeout=10)


class _Deaf:
    """A loop that ends before it runs what it was given."""

    def is_closed(self) -> bool:
        return False

    def call_soon_threadsafe(self, callback: object) -> None:
        pass


def _ask_for_ever(kafka: Cluster) -> None:
    while True:
        kafka.topics()


def test_only_what_matches_is_struck() -> None:
    with Cluster(brokers=2) as kafka:
        kafka.create_topic(TOPIC, partitions=2, replicas=1)
        kafka.create_topic("others", replicas=1)
        with producing(kafka, client_id="struck") as one, producing(kafka, client_id="spared") as other:
            with kafka.fail("Produce", error="KAFKA_STORAGE_ERROR", client_id="struck"):
                assert settle(other, send(other, TOPIC, b"")) == [None]
                assert settle(one, send(one, TOPIC, b"")) == ["KAFKA_STORAGE_ERROR"]
            with kafka.fail("Produce", error="KAFKA_STORAGE_ERROR", topic=TOPIC, partition=1):
                assert settle(one, send(one, TOPIC, b"", 0), send(one, "others", b"")) == [None, None]
                assert settle(one, send(one, TOPIC, b"", 1)) == ["KAFKA_STORAGE_ERROR"]
            with kafka.fail("Produce", error="KAFKA_STORAGE_ERROR", broker=1):
                assert settle(one, send(one, TOPIC, b"", 1)) == [None]
                assert settle(one, send(one, TOPIC, b"", 0)) == ["KAFKA_STORAGE_ERROR"]


def test_a_request_is_delayed_on_the_clusters_clock() -> None:
    with Cluster(clock="held") as kafka, producing(kafka) as producer:
        kafka.create_topic(TOPIC)
        assert settle(producer, send(producer, TOPIC, b"warm")) == [None]
        fault = kafka.delay("Produce", seconds=30.0, times=1)
        late = send(producer, TOPIC, b"late")
        while fault.hits == 0:
            producer.poll(0.01)
        kafka.clock.advance(29.9)
        assert [record.value for record in kafka.records(TOPIC)] == [b"warm"]
        assert not late.done
        kafka.clock.advance(0.1)
        assert settle(producer, late) == [None]


def test_a_lost_request_is_not_done_and_a_lost_answer_is() -> None:
    with Cluster() as kafka:
        kafka.create_topic(TOPIC)
        for answer, value in ((False, b"request"), (True, b"answer")):
            with producing(kafka) as producer:
                kafka.drop("Produce", times=1, response=answer)
                assert settle(producer, send(producer, TOPIC, value)) == ["_TRANSPORT"]
        assert [record.value for record in kafka.records(TOPIC)] == [b"answer"]


def test_followers_fetches_are_struck_by_their_own_name() -> None:
    with Cluster(brokers=2, clock="held") as kafka, producing(kafka, acks="all") as producer:
        kafka.create_topic(TOPIC, replicas=2)
        with kafka.drop("ReplicaFetch", broker=1):
            late = send(producer, TOPIC, b"late")
            [waiting] = kafka.until_waiting("Produce")
            assert (waiting.broker, waiting.keys) == (1, ((TOPIC, 0),))
            kafka.clock.advance(5)
            assert not late.done
        kafka.clock.advance(5)  # the follower tries again at its own pace
        assert settle(producer, late) == [None]


def test_a_followers_fetch_is_delayed(caplog: pytest.LogCaptureFixture) -> None:
    with Cluster(brokers=2, clock="held") as kafka, producing(kafka, acks="all") as producer:
        kafka.create_topic(TOPIC, replicas=2)
        with kafka.delay("ReplicaFetch", seconds=1.0, times=2):
            late = send(producer, TOPIC, b"late")
            kafka.until_waiting("Produce")
            kafka.clock.advance(5)
            assert settle(producer, late) == [None]
    assert not caplog.records


def test_connections_are_dropped_and_clients_come_back() -> None:
    with Cluster() as kafka, producing(kafka, client_id="one", retries=5, retry_backoff_ms=1) as producer:
        kafka.create_topic(TOPIC)
        assert settle(producer, send(producer, TOPIC, b"1")) == [None]
        assert kafka.drop_connections(client_id="nobody") == 0
        assert kafka.drop_connections(client_id="one") >= 1
        assert settle(producer, send(producer, TOPIC, b"2")) == [None]
        with consuming(kafka, (TOPIC, 0)) as consumer:
            assert [message.value() for message in take(consumer, 2)] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (lambda kafka: kafka.fail("Prodcue", error="NONE"), "there is no API 'Prodcue'; did you mean Produce?"),
        (lambda kafka: kafka.fail("Produce", error="NOT_LEADER"), "there is no error 'NOT_LEADER'; did you mean"),
        (lambda kafka: kafka.fail("Produce", error="NONE", times=0), "times must be 1 or more"),
        (lambda kafka: kafka.fail("Fetch", error="NONE", partition=0), "partition=0 needs a topic"),
        (lambda kafka: kafka.fail("Produce", error="NOPE"), "there is no error 'NOPE': take one of Kafka's names"),
        (lambda kafka: kafka.fail("Produce", error="none"), "NONE is not an error: name an error"),
        (lambda kafka: kafka.fail("Produce", error=6), "there is no error 6"),
        (lambda kafka: kafka.fail(7, error="NOT_LEADER_OR_FOLLOWER"), "there is no API 7"),
        (lambda kafka: kafka.drop("Produce", times=1.5), "times must be 1 or more, or None for no limit"),
        (lambda kafka: kafka.drop("Produce", times=True), "times must be 1 or more, or None for no limit"),
        (lambda kafka: kafka.drop("Produce", topic="ordres"), "there is no topic 'ordres'; did you mean orders?"),
        (lambda kafka: kafka.drop(topic="payments"), "there is no topic 'payments'"),
        (lambda kafka: kafka.drop("Produce", topic=TOPIC, partition=1), "topic 'orders' has partitions 0 to 0"),
        (lambda kafka: kafka.drop("Produce", topic=TOPIC, partition=-1), "topic 'orders' has partitions 0 to 0"),
        (lambda kafka: kafka.drop("Produce", topic=TOPIC, partition="0"), "partition must be int, not '0'"),
        (lambda kafka: kafka.drop("Produce", client_id=5), "client_id must be str, not 5"),
        (lambda kafka: kafka.drop("Produce", broker="1"), "broker must be int, not '1'"),
        (lambda kafka: kafka.drop("Heartbeat", topic=TOPIC), "Heartbeat names no topics: select by"),
        (lambda kafka: kafka.drop("Metadata", topic=TOPIC, partition=0), "Metadata names topics, but no partitions"),
        (lambda kafka: kafka.drop("ReplicaFetch", response=True), "a follower's fetch cannot be handled without"),
        (lambda kafka: kafka.drop("SaslHandshake"), "no client sends SaslHandshake: the cluster has security='PLAIN"),
        (
            lambda kafka: kafka.delay("Fetch", seconds=-1),
            "seconds must be more than 0, and less than a century, not -1",
        ),
        (lambda kafka: kafka.delay("Fetch", seconds=0), "seconds must be more than 0, and less than a century, not 0"),
        (
            lambda kafka: kafka.delay("Fetch", seconds=float("inf")),
            "seconds must be more than 0, and less than a century, not inf",
        ),
        (
            lambda kafka: kafka.delay("Fetch", seconds="2"),
            "seconds must be more than 0, and less than a century, not '2'",
        ),
        (lambda kafka: kafka.delay("Fetch", seconds=1e300), "and less than a century, not 1e+300"),
        (lambda kafka: kafka.waiting("Fetch", client_id=3), "client_id must be str, not 3"),
        (lambda kafka: kafka.until_waiting("Fetch", client_id=3), "client_id must be str, not 3"),
        (lambda kafka: kafka.drop_connections(client_id=3), "client_id must be str, not 3"),
        (lambda kafka: kafka.start(1), "broker 1 is running: stop it first"),
        (lambda kafka: (kafka.stop(1), kafka.pause(1)), "broker 1 is stopped, so it cannot be paused: start it first"),
        (lambda kafka: kafka.until_waiting("Produce", 0), "count must be 1 or more, not 0"),
        (lambda kafka: kafka.until_waiting("Produce", timeout=-1), "must be 0 seconds or more, and finite, not -1"),
        (lambda kafka: kafka.until_waiting("Produce", timeout="1"), "must be 0 seconds or more, and finite, not '1'"),
        (
            lambda kafka: kafka.until_waiting("Produce", timeout=float("inf")),
            "timeout must be 0 seconds or more, and f",
        ),
        (lambda kafka: kafka.create_topic("other", 1.5), "partitions must be a whole number, not 1.5"),
        (lambda kafka: kafka.create_topic("other", replicas=0), "Replication factor must be larger than 0"),
        (lambda kafka: kafka.create_topic("o", config={"retention.ms": None}), "retention.ms is None: leave it out"),
        (
            lambda kafka: kafka.create_topic("o", config={"retention.ms": 1, "retention_ms": 1}),
            "retention.ms is given twice, with dots and with underscores",
        ),
        (lambda kafka: kafka.records(TOPIC, "0"), "topic 'orders' has partitions 0 to 0, and no '0'"),
        (lambda kafka: kafka.drop("Fetch", broker=2), "there is no broker 2: there are brokers 1 to 1"),
        (lambda kafka: kafka.drop("ReplicaFetch", topic=TOPIC), "a follower's fetch is for all its partitions"),
        (lambda kafka: kafka.pause(9), "there is no broker 9: there are brokers 1 to 1"),
        (lambda kafka: kafka.records("ordres"), "there is no topic 'ordres'; did you mean orders?"),
        (lambda kafka: kafka.leader(TOPIC, 3), "topic 'orders' has partitions 0 to 0, and no 3"),
        (lambda kafka: kafka.waiting("Produces"), "there is no kind 'Produces' of requests; did you mean Produce?"),
        (lambda kafka: kafka.clock.advance(1), "only a held clock can be advanced"),
    ],
)
def test_a_mistake_is_one_clear_line(order: object, said: str) -> None:
    with Cluster() as kafka:
        kafka.create_topic(TOPIC)
        with pytest.raises(AbeyantError) as raised:
            order(kafka)  # type: ignore[operator]
        assert said in str(raised.value)
        assert "\n" not in str(raised.value)


def test_a_misspelled_choice_is_named() -> None:
    with (
        Cluster() as kafka,
        pytest.raises(TypeError, match="requests cannot be selected by tpoic=; did you mean topic"),
    ):
        kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", tpoic=TOPIC)  # type: ignore[call-arg]


def test_a_fault_may_come_before_its_topic_where_requests_name_new_ones() -> None:
    with Cluster() as kafka, kafka.fail("CreateTopics", error="POLICY_VIOLATION", topic="new", times=1) as fault:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
            admin.create_topics([NewTopic("new", 1, 1)])["new"].result()
        assert fault.hits == 1
        with kafka.fail("WriteTxnMarkers", error="COORDINATOR_NOT_AVAILABLE", topic="__consumer_offsets"):
            pass  # made when the first group comes


def test_the_names_of_apis_with_topics_and_partitions_are_those_of_their_schemas() -> None:
    found: dict[str, set[str]] = {"topics": set(), "partitions": set()}
    for api in APIS:
        for version in (api.lowest, api.highest):
            text = shape_of(load_request_schema(api.key, version))
            if re.search(r"\b(topics|topic_data|topic_names|v3_and_below_topics|topic_partitions)\b", text):
                found["topics"].add(api.name)
                if re.search(r"\b(partitions|partition_indexes|partition_index|partition_data)\b", text):
                    found["partitions"].add(api.name)
    assert found["topics"] - NAME_TOPICS == {"ConsumerGroupHeartbeat"}  # with what has changed only
    assert found["topics"] >= NAME_TOPICS
    # The first asks for new ones; CreateTopics may place them; the last says from where to go on.
    extra = {"ConsumerGroupHeartbeat", "CreateTopics", "DescribeTopicPartitions"}
    assert found["partitions"] - NAME_PARTITIONS == extra
    assert found["partitions"] >= NAME_PARTITIONS


def shape_of(cls: type) -> str:
    """The names of a message's fields, and of those within."""
    hints = typing.get_type_hints(cls)
    names = []
    for field in dataclasses.fields(cls):
        names.append(field.name)
        inner = [hints[field.name], *typing.get_args(hints[field.name])]
        inner += [deeper for one in inner for deeper in typing.get_args(one)]
        names += [shape_of(one) for one in inner if isinstance(one, type) and dataclasses.is_dataclass(one)]
    return " ".join(names)


@pytest.mark.parametrize("version", [0, 7, 12])
def test_an_error_that_a_response_has_no_room_for_ends_the_connection(version: int) -> None:
    with Cluster() as kafka, kafka.fail("Metadata", error="UNKNOWN_SERVER_ERROR") as fault:
        connection = Connection("127.0.0.1", port_of(kafka), "one")
        with connection, pytest.raises(ClosedError):
            connection.ask("Metadata", version, {"topics": [] if version == 0 else None})
        assert fault.hits == 1


def test_a_fault_for_a_topic_strikes_a_fetch_that_goes_on_with_a_session() -> None:
    with Cluster() as kafka:
        kafka.create_topic(TOPIC)
        topic = Topic(TOPIC, str(kafka.controller.topics[TOPIC].id))
        with Connection("127.0.0.1", port_of(kafka), "one") as connection:
            begun = connection.ask("Fetch", 16, fetch(topic, part(), session_id=0, session_epoch=0))
            assert begun["error_code"] == "NONE"
            with kafka.fail("Fetch", error="KAFKA_STORAGE_ERROR", topic=TOPIC, partition=0):
                goes_on = fetch(session_id=begun["session_id"], session_epoch=1)
                assert connection.ask("Fetch", 16, goes_on)["error_code"] == "KAFKA_STORAGE_ERROR"


def port_of(kafka: Cluster) -> int:
    return int(kafka.bootstrap.rpartition(":")[2])
