"""Topics of a Kafka cluster, ours or genuine, by confluent-kafka: made, written to, and read."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_PATIENCE = 120.0  # seconds


class Record(NamedTuple):
    partition: int
    offset: int
    key: bytes
    value: bytes


def create_topics(bootstrap: str, topics: Iterable[str], partitions: int, **config: str) -> None:
    """With three replicas each; `config` has _ in place of dots."""
    given = {name.replace("_", "."): value for name, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, partitions, 3, config=given) for name in topics]).values():
        made.result(_PATIENCE)


class Producer:
    """Waits for all replicas, and leaves when the block does, all sent."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._errors: list[KafkaError] = []
        self._producer = ConfluentProducer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 20, "log_level": 0}
        )

    def send(self, key: str, value: str | None) -> None:
        self._producer.produce(self._topic, value, key, on_delivery=self._told)
        self._producer.poll(0)

    def begin(self) -> None:
        """Return once some of what was sent has gone out, and maybe not all of it."""
        self._producer.poll(0.05)

    def _told(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self._errors.append(error)

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._producer.flush(_PATIENCE) == 0
        assert not self._errors


def consume(bootstrap: str, topic: str, partitions: int) -> list[Record]:
    """All that is in a topic now: no group, so nothing has to be coordinated."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "log_level": 0}
    )
    places = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
    found: list[Record] = []
    try:
        ends = [consumer.get_watermark_offsets(place, timeout=_PATIENCE)[1] for place in places]
        consumer.assign(places)
        give_up = time.monotonic() + _PATIENCE
        while len(found) < sum(ends):
            assert time.monotonic() < give_up, f"only {len(found)} of {sum(ends)} records came"
            message = consumer.poll(1.0)
            if message is None or message.error() is not None:
                continue
            found.append(
                Record(message.partition() or 0, message.offset() or 0, message.key() or b"", message.value() or b"")
            )
    finally:
        consumer.close()
    return found
