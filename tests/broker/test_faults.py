"""Faults that are ordered (K11): what a client sees of each, whom it strikes, and that it ends."""

from __future__ import annotations

import pytest

from abeyant.broker import Cluster
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle, take

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
        assert kafka.gate is None  # and requests pay nothing for it any more


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
                kafka.drop("Produce", times=1, answer=answer)
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
        (lambda kafka: kafka.fail("Prodcue", error="NONE"), "there is no API 'Prodcue': did you mean 'Produce'?"),
        (lambda kafka: kafka.fail("Produce", error="NOT_LEADER"), "there is no error 'NOT_LEADER': did you mean"),
        (lambda kafka: kafka.fail("Produce", error="NONE", times=0), "times must be 1 or more"),
        (lambda kafka: kafka.fail("Fetch", error="NONE", partition=0), "partition=0 needs the topic"),
        (lambda kafka: kafka.delay("Fetch", seconds=-1), "seconds must be 0 or more, not -1"),
        (lambda kafka: kafka.drop("Fetch", broker=2), "there is no broker 2: there are brokers 1 to 1"),
        (lambda kafka: kafka.drop("ReplicaFetch", topic=TOPIC), "a follower's fetch is for all that it follows"),
        (lambda kafka: kafka.pause(9), "there is no broker 9: there are brokers 1 to 1"),
        (lambda kafka: kafka.records("ordres"), "there is no topic 'ordres': did you mean 'orders'?"),
        (lambda kafka: kafka.leader(TOPIC, 3), "topic 'orders' has partitions 0 to 0, and no 3"),
        (lambda kafka: kafka.waiting("Produces"), "nothing waits by the name 'Produces': did you mean 'Produce'?"),
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
        pytest.raises(TypeError, match="no requests can be chosen by tpoic=: did you mean 'topic'"),
    ):
        kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", tpoic=TOPIC)  # type: ignore[call-arg]
