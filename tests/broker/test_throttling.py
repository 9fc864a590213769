"""Quotas and throttling (KIP-219), with unmodified clients: what is muted, for how long, and what it does not touch."""

from __future__ import annotations

import math
import re
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from abeyant.broker import Cluster
from abeyant.broker.quotas.rates import Rate, TokenBucket
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle
from broker.conformance.bodies import create, fetch
from broker.conformance.client import ClosedError, Connection
from broker.conformance.scenario import Topic
from waiting import wait_until

TOPIC = "orders"


def connect(kafka: Cluster, client_id: str = "till") -> Connection:
    host, _, port = kafka.bootstrap.partition(",")[0].rpartition(":")
    return Connection(host, int(port), client_id)


def quota(kafka: Cluster, entity: dict[str, str | None], **values: float) -> None:
    names = [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()]
    ops = [{"key": key, "value": value, "remove": False} for key, value in values.items()]
    with connect(kafka, "admin") as admin:
        body = {"entries": [{"entity": names, "ops": ops}], "validate_only": False}
        said = admin.ask("AlterClientQuotas", 1, body)
    assert said["entries"][0]["error_code"] == "NONE"


def test_a_producer_goes_on_when_its_throttle_time_is_over() -> None:
    """Neither earlier, nor is another client touched."""
    with Cluster(clock="held") as kafka:
        kafka.create_topic(TOPIC)
        quota(kafka, {"client-id": "till"}, producer_byte_rate=1000)
        with producing(kafka, client_id="till") as one, producing(kafka, client_id="shop") as other:
            assert settle(one, send(one, TOPIC, bytes(20_000))) == [None]
            [waiting] = kafka.until_waiting("Throttle")
            seconds = waiting.deadline - waiting.since
            assert 10 < seconds < 11
            assert (waiting.client_id, waiting.keys, waiting.held_by) == (
                "till", (("Produce", "producer_byte_rate"),), "throttle",
            )  # fmt: skip
            late = send(one, TOPIC, b"late")
            kafka.clock.advance(seconds - 0.1)
            assert settle(other, send(other, TOPIC, b"other")) == [None]
            assert not late.done
            kafka.clock.advance(0.2)
            assert settle(one, late) == [None]


def test_a_consumer_gets_all_in_the_end() -> None:
    """Its throttled fetches are empty, and it asks again."""
    with Cluster(clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka) as producer:
            for number in range(9):  # each in a batch of its own
                settle(producer, send(producer, TOPIC, b"%04d" % number * 1000))
        quota(kafka, {"client-id": None}, consumer_byte_rate=1000)
        found: list[Message] = []
        throttled = 0
        with consuming(kafka, (TOPIC, 0)) as consumer:
            for _ in range(1000):
                if len(found) == 9:
                    break
                message = consumer.poll(0.05)
                if message is not None:
                    found.append(message)
                else:
                    throttled += len(kafka.waiting("Throttle"))
                    kafka.clock.advance(5.0)
        assert [(message.value() or b"")[:4] for message in found] == [b"%04d" % number for number in range(9)]
        assert throttled >= 3, "36 kB at 10 kB in all windows"


@pytest.mark.parametrize("api", ["Metadata", "Fetch"])
def test_a_fault_throttles(api: str) -> None:
    """A fetch gets nothing, and begins no session."""
    with Cluster(clock="held") as kafka:
        kafka.create_topic(TOPIC)
        topic = Topic(TOPIC, str(kafka.controller.topics[TOPIC].id))
        with kafka.throttle(seconds=5.0, client_id="till", times=1) as fault, connect(kafka) as client:
            if api == "Fetch":
                said = client.ask(api, 12, fetch(topic, session_id=0, session_epoch=0))
                assert (said["throttle_time"], said["responses"], said["session_id"]) == (5000, [], 0)
            else:
                assert client.ask(api, 9, {"topics": []})["throttle_time"] == 5000
            [waiting] = kafka.until_waiting("Throttle")
            assert (fault.hits, waiting.deadline - waiting.since) == (1, 5.0)
            client.send("Metadata", 9, {"topics": []})
            kafka.clock.advance(4.9)
            assert client.is_waiting(0.05)
            kafka.clock.advance(0.1)
            assert client.receive()["throttle_time"] == 0


def test_a_connection_that_ends_is_not_waited_for() -> None:
    with Cluster(clock="held") as kafka:
        with kafka.throttle("Metadata", seconds=60.0), connect(kafka) as client:
            client.ask("Metadata", 9, {"topics": []})
            [_] = kafka.until_waiting("Throttle")
        wait_until(lambda: not kafka.waiting("Throttle"))


def test_followers_are_not_throttled() -> None:
    with Cluster(brokers=2) as kafka:
        kafka.create_topic(TOPIC, replicas=2)
        with kafka.throttle(seconds=0.001) as fault, producing(kafka) as producer:
            assert settle(producer, send(producer, TOPIC, b"x")) == [None]
            assert {name for name, _ in (one.keys[0] for one in kafka.waiting("Throttle"))} <= {"Produce", "Metadata"}
            assert fault.active


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seconds": 0}, "seconds must be from 0.001 to 2,000,000, not 0"),
        ({"seconds": math.inf}, "seconds must be from 0.001 to 2,000,000, not inf"),
        ({"api": "ReplicaFetch", "seconds": 1}, "ReplicaFetch is never throttled"),
    ],
)
def test_what_cannot_throttle_is_refused(given: dict[str, Any], message: str) -> None:
    with Cluster() as kafka, pytest.raises(AbeyantError, match=message):
        kafka.throttle(**given)


def test_request_time_is_a_quota() -> None:
    with Cluster() as kafka:
        quota(kafka, {"user": "ANONYMOUS", "client-id": "till"}, request_percentage=1e-6)
        with connect(kafka) as client:
            assert client.ask("Metadata", 9, {"topics": []})["throttle_time"] == 1000


def test_an_address_that_connects_too_often_is_disconnected_later() -> None:
    with Cluster(clock="held") as kafka:
        quota(kafka, {"ip": "127.0.0.1"}, connection_creation_rate=1)
        with ExitStack() as stack:
            clients = [stack.enter_context(connect(kafka)) for _ in range(12)]
            for client in clients[:10]:
                assert client.ask("ApiVersions", 0, {})["error_code"] == "NONE"
            clients[11].send("ApiVersions", 0, {})
            assert clients[11].is_waiting(0.05), "it is neither served nor closed"
            kafka.clock.advance(1.0)
            with pytest.raises(ClosedError):
                clients[11].receive()
            assert clients[0].ask("ApiVersions", 0, {})["error_code"] == "NONE"


def test_quotas_are_there_after_a_restart(tmp_path: Path) -> None:
    with Cluster(data=tmp_path) as kafka:
        quota(kafka, {"user": "alice", "client-id": None}, controller_mutation_rate=2.5)
    with Cluster(data=tmp_path) as kafka, connect(kafka) as admin:
        said = admin.ask("DescribeClientQuotas", 1, {"components": [], "strict": False})
        assert [(row["values"], len(row["entity"])) for row in said["entries"]] == [
            ([{"key": "controller_mutation_rate", "value": 2.5}], 2)
        ]


def test_topics_can_be_created_again_once_the_debt_is_paid() -> None:
    with Cluster(clock="held") as kafka:
        quota(kafka, {"client-id": "till"}, controller_mutation_rate=1)
        errors = []
        for name, wait in (("one", 0), ("two", 8.9), ("three", 0.2)):
            kafka.clock.advance(wait)
            with connect(kafka) as client:
                [row] = client.ask("CreateTopics", 7, create(name, 20))["topics"]
                errors.append(row["error_code"])
        assert errors == ["NONE", "THROTTLING_QUOTA_EXCEEDED", "NONE"]


def test_a_rate_forgets_what_left_its_windows() -> None:
    rate = Rate(11, 1.0)
    rate.record(0.0, 1000)
    assert rate.excess(0.0, 100) == 0.0  # ten windows are always there
    rate.record(0.5, 1000)
    assert rate.excess(0.5, 100) == pytest.approx(9.5)
    assert rate.excess(9.9, 100) == pytest.approx(9.1)
    assert rate.excess(11.6, 100) == 0.0


def test_a_bucket_owes_what_was_taken_beyond_its_burst() -> None:
    bucket = TokenBucket()
    bucket.take(100.0, 2.0, 22.0, 30)
    assert bucket.debt(100.0, 2.0, 22.0) == 4.0
    assert bucket.debt(103.0, 2.0, 22.0) == 1.0
    assert bucket.debt(999.0, 2.0, 22.0) == 0.0


def test_a_clusters_own_set_quotas_sets_and_removes_what_clients_see() -> None:
    with Cluster() as kafka:
        kafka.set_quotas({"producer_byte_rate": 1000, "request_percentage": 12.5}, user="ann", client_id="till")
        kafka.set_quotas({"consumer_byte_rate": 2000})
        kafka.set_quotas({"connection_creation_rate": 3})
        kafka.set_quotas({"request_percentage": None}, user="ann", client_id="till")
        with connect(kafka, "admin") as admin:
            said = admin.ask("DescribeClientQuotas", 1, {"components": [], "strict": False})
    found = {
        tuple((one["entity_type"], one["entity_name"]) for one in entry["entity"]): entry["values"]
        for entry in said["entries"]
    }
    assert found == {
        (("client-id", "till"), ("user", "ann")): [{"key": "producer_byte_rate", "value": 1000.0}],
        (("client-id", None),): [{"key": "consumer_byte_rate", "value": 2000.0}],
        (("ip", None),): [{"key": "connection_creation_rate", "value": 3.0}],
    }


@pytest.mark.parametrize(
    ("quotas", "of", "said"),
    [
        ({"producer_byte_rat": 1}, {}, "there is no quota 'producer_byte_rat'; did you mean producer_byte_rate?"),
        ({"producer_byte_rate": "1"}, {}, "producer_byte_rate must be a number, or None to remove it, not '1'"),
        ({"producer_byte_rate": math.nan}, {}, "producer_byte_rate must be a number, or None to remove it, not nan"),
        ({"producer_byte_rate": 0}, {}, "Quota producer_byte_rate must be greater than 0"),
        ({"producer_byte_rate": 1}, {"ip": "127.0.0.1"}, "Invalid configuration key producer_byte_rate"),
        ({"producer_byte_rate": 1}, {"client_id": ""}, "Empty client-id not supported"),
        ({"producer_byte_rate": 10**400}, {}, "producer_byte_rate must be a number, or None to remove it, not 1000"),
        (["producer_byte_rate"], {}, "quotas must be a dict of names and numbers, not ['producer_byte_rate']"),
        ({"producer_byte_rate": 1}, {"user": 5}, "user must be str, not 5"),
        ({"producer_byte_rate": 1}, {"client_id": "\ud800"}, "client_id '\\ud800' has half a surrogate pair"),
        ({"producer_byte_rate": 1}, {"user": "x" * 32_768}, "user has 32768 bytes; Kafka's strings have at most 32767"),
        ({"connection_creation_rate": 1}, {"ip": "x" * 64}, "is not a valid IP or resolvable host."),
    ],
)
def test_set_quotas_refuses_what_kafka_refuses(quotas: Any, of: dict[str, Any], said: str) -> None:
    with Cluster() as kafka:
        with pytest.raises(AbeyantError, match=re.escape(said)):
            kafka.set_quotas(quotas, **of)
        assert not kafka.controller.quotas.enabled


HOSTS = ("x" * 64, "a\0b", "..", "\u3002", "1.2.3.4.5", " ")


@pytest.mark.parametrize("host", HOSTS)
def test_what_can_be_no_host_is_refused(host: str) -> None:
    """Python's resolver raises errors of several kinds for them."""
    with Cluster() as kafka, connect(kafka) as admin:
        ops = [{"key": "connection_creation_rate", "value": 1.0, "remove": False}]
        entry = {"entity": [{"entity_type": "ip", "entity_name": host}], "ops": ops}
        [row] = admin.ask("AlterClientQuotas", 1, {"entries": [entry], "validate_only": False})["entries"]
        assert (row["error_code"], row["error_message"]) == (
            "INVALID_REQUEST", f"{host} is not a valid IP or resolvable host.",
        )  # fmt: skip


def test_a_host_is_looked_up_when_its_quota_is_set_and_not_at_each_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow name server must not delay every connection to every broker."""
    asked = []

    def look_up(name: str) -> str:
        asked.append(name)
        return "127.0.0.1"

    monkeypatch.setattr(socket, "gethostbyname", look_up)
    with Cluster(clock="held") as kafka:
        kafka.set_quotas({"connection_creation_rate": 1000}, ip="some.host")
        for _ in range(5):
            with connect(kafka) as client:
                assert client.ask("ApiVersions", 0, {})["error_code"] == "NONE"
        assert kafka.controller.quotas.connection_rate("127.0.0.1") == 1000
        assert asked == ["some.host"]
        kafka.set_quotas({"connection_creation_rate": 10}, ip="some.host")
        assert asked == ["some.host"] * 2


@pytest.mark.parametrize("rate", [5e-324, 1e-7])
def test_no_quota_throttles_for_longer_than_a_response_can_say(rate: float) -> None:
    """The request was done, and its response says so."""
    with Cluster(clock="held") as kafka, connect(kafka) as client:
        quota(kafka, {"client-id": "till"}, controller_mutation_rate=rate)
        done = client.ask("CreateTopics", 5, create("one", 1))
        assert ([row["error_code"] for row in done["topics"]], done["throttle_time"]) == (["NONE"], (1 << 31) - 1)
        assert kafka.topics() == ["one"]


def test_a_quota_that_is_no_number_is_refused() -> None:
    with Cluster() as kafka, connect(kafka) as admin:
        for key in ("producer_byte_rate", "request_percentage", "controller_mutation_rate"):
            entry = {
                "entity": [{"entity_type": "user", "entity_name": None}],
                "ops": [{"key": key, "value": math.nan, "remove": False}],
            }
            [row] = admin.ask("AlterClientQuotas", 1, {"entries": [entry], "validate_only": False})["entries"]
            assert row["error_message"] == f"Quota {key} must be greater than 0"
        assert not kafka.controller.quotas.enabled
