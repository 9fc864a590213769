"""What a producer, a consumer in a group and a transaction send: clients that old and new brokers understand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from abeyant.broker.genuine import ClusterError

if TYPE_CHECKING:
    from .versions import Release

_TOPIC: Final = "orders"
_SECONDS: Final = 30.0
_RECORDS: Final = 40


def play(release: Release, port: int) -> None:
    """Produce with acks=all, consume in a group, and where the broker has them, use topics' admin and transactions."""
    if release.number < (0, 10):
        return _play_old(release.number, port)
    common: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{port}", "client.id": "trader"}
    if release.number >= (0, 10, 1):
        admin = AdminClient(common)
        admin.create_topics([NewTopic(_TOPIC, 2, 1)])[_TOPIC].result(_SECONDS)
    producer = Producer(common | {"acks": "all"})
    for number in range(_RECORDS):
        producer.produce(_TOPIC, f"order {number}".encode(), str(number).encode())
        producer.poll(0.02)
    if producer.flush(_SECONDS):
        raise ClusterError("the producer's records are not all acknowledged")
    _consume(common)
    if release.number >= (0, 11):
        _transact(common)
    return None


def _play_old(version: tuple[int, ...], port: int) -> None:
    """Do the same with a client that still speaks to brokers which cannot say what versions they speak."""
    common: dict[str, Any] = {
        "bootstrap_servers": f"127.0.0.1:{port}",
        "client_id": "trader",
        "api_version": version[: 2 if version >= (0, 9) else 3],
    }
    producer = KafkaProducer(acks="all", **common)
    for number in range(_RECORDS):
        producer.send(_TOPIC, f"order {number}".encode(), str(number).encode()).get(_SECONDS)
    producer.close()
    # Until 0.9 there are no groups on the broker: then partitions are assigned by the client.
    consumer = KafkaConsumer(
        group_id="billing", auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=2000, **common
    )
    if version >= (0, 9):
        consumer.subscribe([_TOPIC])
    else:
        consumer.assign([TopicPartition(_TOPIC, number) for number in range(2)])
    until, left = time.monotonic() + _SECONDS, _RECORDS
    while left:
        if time.monotonic() > until:
            raise ClusterError(f"{left} records have not come")
        left -= sum(1 for _ in consumer)
    consumer.commit()
    consumer.close()


def _consume(common: dict[str, Any]) -> None:
    consumer = Consumer(common | {"group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([_TOPIC])
    until, left = time.monotonic() + _SECONDS, _RECORDS
    while left:
        if time.monotonic() > until:
            raise ClusterError(f"{left} records have not come")
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            left -= 1
    consumer.commit(asynchronous=False)
    consumer.poll(1.5)  # a long poll that nothing completes
    consumer.close()


def _transact(common: dict[str, Any]) -> None:
    producer = Producer(common | {"transactional.id": "ledger"})
    producer.init_transactions(_SECONDS)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(_TOPIC, b"entry")
        producer.flush(_SECONDS)
        end(_SECONDS)
