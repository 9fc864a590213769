"""`advertise`: the address that clients are told, where brokers listen at another, as in a container."""

from __future__ import annotations

import ssl
from functools import partial

import pytest
from confluent_kafka import Producer

from abeyant.broker import Cluster
from abeyant.errors import AbeyantError
from broker.wire import WireClient
from waiting import wait_until

METADATA, FIND_COORDINATOR, DESCRIBE_CONFIGS, DESCRIBE_CLUSTER = (3, 9), (10, 3), (32, 2), (60, 0)
BROKER = 4  # a kind of resource


def test_each_response_names_what_is_advertised() -> None:
    with Cluster(brokers=2, host="0.0.0.0", advertise="kafka.test:19092") as kafka:
        ports = [broker.port for broker in kafka.brokers.values()]
        with WireClient(f"127.0.0.1:{ports[1]}") as client:
            coordinator = partial(client.ask, *FIND_COORDINATOR, key="g", key_type=0)
            wait_until(lambda: coordinator().host == "kafka.test")
            assert coordinator().port == 19091 + coordinator().node_id
            for answer in (client.ask(*METADATA, topics=[]), client.ask(*DESCRIBE_CLUSTER)):
                told = [(broker.host, broker.port) for broker in answer.brokers]
                assert told == [("kafka.test", 19092), ("kafka.test", 19093)]
            names = ["advertised.listeners", "listeners"]
            asked = {"resource_type": BROKER, "resource_name": "2", "configuration_keys": names}
            (answer,) = client.ask(*DESCRIBE_CONFIGS, resources=[asked]).results
        assert {one.name: one.value for one in answer.configs} == {
            "advertised.listeners": "PLAINTEXT://kafka.test:19093",
            "listeners": f"PLAINTEXT://0.0.0.0:{ports[1]}",
        }
        assert kafka.bootstrap == "kafka.test:19092,kafka.test:19093"


def test_a_client_goes_on_at_the_advertised_host() -> None:
    with Cluster(host="0.0.0.0", advertise="127.0.0.3") as kafka:
        kafka.create_topic("orders")
        port = kafka.brokers[1].port
        assert kafka.bootstrap == f"127.0.0.3:{port}"
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "acks": "all", "linger.ms": 0})
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
        assert [broker.host for broker in producer.list_topics(timeout=30).brokers.values()] == ["127.0.0.3"]
        assert [record.value for record in kafka.records("orders")] == [b"one"]


def test_the_generated_certificate_is_for_the_advertised_host() -> None:
    with Cluster(host="0.0.0.0", advertise="kafka.test", security="SSL") as kafka:
        trust = ssl.create_default_context(cafile=str(kafka.ca_file))
        with WireClient(f"127.0.0.1:{kafka.brokers[1].port}") as client:
            client.socket = trust.wrap_socket(client.socket, server_hostname="kafka.test")
            assert client.ask(*METADATA, topics=[]).brokers[0].host == "kafka.test"


@pytest.mark.parametrize(
    ("advertise", "said"),
    [
        ("", "give a HOST or HOST:PORT"),
        ("0.0.0.0:9092", "give a HOST or HOST:PORT"),
        ("PLAINTEXT://kafka:9092", "give a HOST or HOST:PORT"),
        ("kafka:", "the port must be from 1 to 65533"),
        ("kafka:65534", "the port must be from 1 to 65533"),
        ("kafka:x", "the port must be from 1 to 65533"),
    ],
)
def test_an_address_that_no_client_can_use_is_refused(advertise: str, said: str) -> None:
    with pytest.raises(AbeyantError, match=f"advertise is '{advertise}': {said}"):
        Cluster(brokers=3, advertise=advertise)
