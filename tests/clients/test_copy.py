"""Clients of other languages as members of groups, in transactions, by TLS and SASL; unmodified.

Each reads a topic as a member of a group, aborts a transaction, copies the topic to another in one that also has the
group's offsets, and reads the copy as a member of a second group, which sees what is committed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from abeyant.broker import Cluster
from broker.clients import PATIENCE, producing, send, settle
from clients.toolchains import command

USERS = {"alice": "open sesame"}
VALUES = [b"value %d" % number for number in range(20)]
WAYS = [None, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
CLIENTS = {
    "kafkajs": ("node", "copy.mjs", "kafkajs"),
    "Confluent's for Node": ("confluent_javascript", "copy.mjs", "confluent"),
    "franz-go": ("go", "copy", "franz-go"),
    "sarama": ("go", "copy", "sarama"),
    "rdkafka for Rust": ("rust", "copy", "rdkafka"),
}


@contextmanager
def guarded(mechanism: str | None) -> Iterator[tuple[Cluster, dict[str, Any] | None]]:
    """Three brokers that want TLS and SASL, and what a client needs to know; without a mechanism, neither."""
    if mechanism is None:
        with Cluster(3) as kafka:
            yield kafka, None
        return
    with Cluster(3, security="SASL_SSL", users=USERS) as kafka:
        yield kafka, {"ca": str(kafka.ca_file), "mechanism": mechanism, "user": "alice", "password": USERS["alice"]}


def librdkafkas(security: dict[str, Any] | None) -> dict[str, Any]:
    """As confluent-kafka has it, with _ in place of dots."""
    return {} if security is None else {
        "security_protocol": "SASL_SSL", "ssl_ca_location": security["ca"], "sasl_mechanism": security["mechanism"],
        "sasl_username": security["user"], "sasl_password": security["password"],
    }  # fmt: skip


def written_in(kafka: Cluster, security: dict[str, Any] | None) -> None:
    kafka.create_topic("in", partitions=2)
    kafka.create_topic("out", partitions=2)
    with producing(kafka, **librdkafkas(security)) as producer:
        sent = [send(producer, "in", value, number % 2) for number, value in enumerate(VALUES)]
        assert set(settle(producer, *sent)) == {None}


def committed(kafka: Cluster, security: dict[str, Any] | None, group: str) -> list[int]:
    settings = {name.replace("_", "."): value for name, value in librdkafkas(security).items()}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "log_level": 0, **settings})
    places = consumer.committed([TopicPartition("in", 0), TopicPartition("in", 1)], PATIENCE)
    consumer.close()
    return [place.offset for place in places]


@pytest.mark.parametrize("mechanism", WAYS)
@pytest.mark.parametrize("name", CLIENTS)
def test_copies_in_a_transaction(request: pytest.FixtureRequest, name: str, mechanism: str | None) -> None:
    built, program, client = CLIENTS[name]
    where = request.getfixturevalue(built)
    line = [command("node"), str(where / program)] if program.endswith(".mjs") else [str(where), program]
    with guarded(mechanism) as (kafka, security):
        written_in(kafka, security)
        asked = [*line, client, kafka.bootstrap, json.dumps(security), str(len(VALUES))]
        done = subprocess.run(asked, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        assert sorted(done.stdout.splitlines()) == sorted(VALUES)
        assert committed(kafka, security, "copiers") == [10, 10]
        everything = sorted(record.value or b"" for record in kafka.records("out"))
        assert everything == sorted([b"aborted", *VALUES])
        assert len(kafka.records("out", isolation="read_committed")) == len(VALUES)


@pytest.mark.parametrize("mechanism", WAYS)
def test_kcat_goes_on_where_its_group_was(mechanism: str | None) -> None:
    kcat = command("kcat")
    with guarded(mechanism) as (kafka, security):
        written_in(kafka, security)
        given = librdkafkas(security) | {"auto_offset_reset": "earliest"}
        settings = [f"-X{name.replace('_', '.')}={value}" for name, value in given.items()]
        read: list[bytes] = []
        for count in (15, 5):
            line = [kcat, "-b", kafka.bootstrap, *settings, "-c", str(count), "-q", "-f", "%s\n", "-G", "readers", "in"]
            done = subprocess.run(line, capture_output=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr[-2000:]
            read += done.stdout.splitlines()
        assert sorted(read) == sorted(VALUES)
        assert committed(kafka, security, "readers") == [10, 10]
