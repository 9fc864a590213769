"""Unmodified confluent-kafka clients, as the broker's tests use them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from abeyant.broker import Cluster

PATIENCE = 30.0  # seconds, for what takes milliseconds unless the machine has other things to do


@contextmanager
def producing(kafka: Cluster, **config: Any) -> Iterator[Producer]:
    """A producer that sends at once and never again."""
    settings = {"bootstrap.servers": kafka.bootstrap, "linger.ms": 0, "retries": 0, "log_level": 0}
    producer = Producer({**settings, **{name.replace("_", "."): value for name, value in config.items()}})
    try:
        yield producer
    finally:
        producer.purge()
        producer.flush(PATIENCE)


class Delivery:
    """What becomes of one record."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.message: Message | None = None
        self._done = threading.Event()

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """The producer's callback."""
        self.error, self.message = error, message
        self._done.set()

    @property
    def done(self) -> bool:
        """Whether it is known."""
        return self._done.is_set()


def send(producer: Producer, topic: str, value: bytes | None, partition: int = 0, **more: Any) -> Delivery:
    """Send one record."""
    delivery = Delivery()
    producer.produce(topic, value, partition=partition, on_delivery=delivery, **more)
    producer.poll(0)
    return delivery


def settle(producer: Producer, *deliveries: Delivery) -> list[str | None]:
    """Wait for what becomes of them: the names of the errors, None for delivered."""
    producer.flush(PATIENCE)
    assert all(delivery.done for delivery in deliveries)
    return [None if delivery.error is None else delivery.error.name() for delivery in deliveries]


@contextmanager
def consuming(kafka: Cluster, *partitions: tuple[str, int], offset: int = 0, **config: Any) -> Iterator[Consumer]:
    """A consumer of the partitions, without a group to speak of."""
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "none",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    consumer = Consumer({**settings, **{name.replace("_", "."): value for name, value in config.items()}})
    try:
        consumer.assign([TopicPartition(topic, partition, offset) for topic, partition in partitions])
        yield consumer
    finally:
        consumer.close()


def take(consumer: Consumer, count: int) -> list[Message]:
    """The next `count` records."""
    messages: list[Message] = []
    while len(messages) < count:
        message = consumer.poll(PATIENCE)
        assert message is not None, f"only {len(messages)} of {count} records came"
        assert message.error() is None, message.error()
        messages.append(message)
    return messages
