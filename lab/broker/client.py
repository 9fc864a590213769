"""Measure throughput, latency and the wake-up of long polls with an unmodified confluent-kafka client (librdkafka)."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.broker.peers import PeerError, Serving

VALUE = bytes(100)
LONGEST = 20.0  # seconds per row of latencies: the mock's long polls take half a second each
QUEUE_PAUSE = 10  # ms without fetching once 100,000 records wait in the client; its default is a second
_LEAST = 20  # latencies per row, however long they take
_numbers = count()


class Latency(NamedTuple):
    """Percentiles of a latency in ms, and the CPU that it costs."""

    p50: float
    p99: float
    cpu: float
    """Brokers' CPU per record, including background work."""

    def rows(self, name: str) -> list[tuple[str, float]]:
        """Return the figures as (row, value) pairs of the table."""
        return [(f"{name}-{figure}", value) for figure, value in self._asdict().items()]


class Consumption(NamedTuple):
    """How fast one consumer reads, and the CPU that it costs."""

    consume: float
    """Records per second."""
    cpu: float
    """Brokers' CPU seconds for a million records."""

    def rows(self) -> list[tuple[str, float]]:
        """Return the figures as (row, value) pairs of the table."""
        return [("consume", self.consume), ("consume-cpu", self.cpu)]


def make_topic(peer: Serving, partitions: int = 1, replicas: int = 3) -> str:
    """Create a topic with a new name, wait until every partition has a leader, and return the name."""
    name = f"bench-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": peer.bootstrap})
    if peer.creates_topics:
        admin.create_topics([NewTopic(name, partitions, replicas)])[name].result(30)
    else:
        _produce(peer, name, 1, "all")  # the mock creates topics on first use, with four partitions
    for _ in range(300):
        partitions_seen = admin.list_topics(name, timeout=10).topics[name].partitions
        if len(partitions_seen) >= partitions and all(part.leader >= 0 for part in partitions_seen.values()):
            return name
        time.sleep(0.1)
    raise PeerError(f"topic {name} has no leaders after 30 s")


def produce_rate(peer: Serving, records: int, acks: str, replicas: int) -> float:
    """Return the records of 100 B per second that one producer gets acknowledged."""
    topic = make_topic(peer, replicas=replicas)
    _produce(peer, topic, records // 10, acks)  # warms up both ends
    return records / _produce(peer, topic, records, acks)


def consume(peer: Serving, records: int) -> Consumption:
    """Measure how fast one consumer reads records of 100 B."""
    topic = make_topic(peer)
    _produce(peer, topic, records, "1")
    for _ in range(2):  # the first warms up
        consumer = _consumer(peer, {"fetch.max.bytes": 52_428_800, "fetch.queue.backoff.ms": QUEUE_PAUSE})
        consumer.assign([TopicPartition(topic, 0, 0)])
        before = peer.cpu()
        begun = time.perf_counter()
        left = records
        while left > 0:
            received = sum(1 for message in consumer.consume(10_000, timeout=LONGEST) if not message.error())
            if not received:
                raise PeerError(f"{left:,} of {records:,} records did not reach the consumer")
            left -= received
        seconds = time.perf_counter() - begun
        used = peer.cpu() - before
        consumer.close()
    return Consumption(records / seconds, used / records * 1e6)


def produce_latency(peer: Serving, records: int) -> Latency:
    """Measure the time from `produce` to the acknowledgement by three replicas, one record at a time."""
    topic = make_topic(peer)
    errors: list[KafkaError] = []
    producer = _producer(peer, "all", linger_ms=0)
    seconds: list[float] = []
    until = time.perf_counter() + LONGEST
    before = peer.cpu()
    while len(seconds) < records and (len(seconds) < _LEAST or time.perf_counter() < until):
        begun = time.perf_counter()
        producer.produce(topic, VALUE, partition=0, on_delivery=_collect(errors))
        producer.flush()
        seconds.append(time.perf_counter() - begun)
    used = peer.cpu() - before
    _require_none(errors)
    return latency_of(seconds, used)


def wake_latency(peer: Serving, records: int, pause: float) -> Latency:
    """Measure the time from `produce` until the record, which completes a long poll, reaches the consumer.

    The next record follows `pause` seconds later.
    """
    topic = make_topic(peer)
    consumer = _consumer(peer, {"fetch.min.bytes": 1})
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    arrived = threading.Semaphore(0)
    times: list[float] = []
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                times.append(time.perf_counter())
                arrived.release()

    listener = threading.Thread(target=listen)
    listener.start()
    producer = _producer(peer, "1", linger_ms=0)
    errors: list[KafkaError] = []
    seconds: list[float] = []
    try:
        time.sleep(2)  # until the consumer's first fetch waits
        until = time.perf_counter() + LONGEST
        before = peer.cpu()
        while len(seconds) < records and (len(seconds) < _LEAST or time.perf_counter() < until):
            begun = time.perf_counter()
            producer.produce(topic, VALUE, partition=0, on_delivery=_collect(errors))
            producer.poll(0)
            if not arrived.acquire(timeout=LONGEST):
                raise PeerError("a record did not reach the consumer")
            seconds.append(times[-1] - begun)
            producer.flush()
            time.sleep(pause)  # the next long poll has to have arrived
        used = peer.cpu() - before
    finally:
        over.set()
        listener.join()
        consumer.close()
    _require_none(errors)
    return latency_of(seconds, used)


def send_one(peer: Serving, topic: str, partition: int) -> None:
    """Produce one record and wait for its acknowledgement."""
    errors: list[KafkaError] = []
    producer = _producer(peer, "all", linger_ms=0)
    producer.produce(topic, VALUE, partition=partition, on_delivery=_collect(errors))
    producer.flush()
    _require_none(errors)


def _produce(peer: Serving, topic: str, records: int, acks: str) -> float:
    errors: list[KafkaError] = []
    collect = _collect(errors)
    producer = _producer(peer, acks, linger_ms=5)
    begun = time.perf_counter()
    for number in range(records):
        producer.produce(topic, VALUE, partition=0, on_delivery=collect)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush()
    seconds = time.perf_counter() - begun
    _require_none(errors)
    return seconds


def _producer(peer: Serving, acks: str, linger_ms: int) -> Producer:
    return Producer(
        {
            "bootstrap.servers": peer.bootstrap,
            "acks": acks,
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 2_000_000,
            "batch.num.messages": 10_000,
            "delivery.report.only.error": linger_ms > 0,  # a Python call per record would measure Python
        }
    )


def _consumer(peer: Serving, settings: dict[str, Any]) -> Consumer:
    common = {"bootstrap.servers": peer.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    return Consumer({**common, "auto.offset.reset": "latest", **settings})


def _collect(errors: list[KafkaError]) -> Callable[[KafkaError | None, Message], None]:
    def collect(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    return collect


def _require_none(errors: list[KafkaError]) -> None:
    if errors:
        raise PeerError(f"{len(errors)} records were not delivered; the first error: {errors[0]}")


def latency_of(seconds: list[float], used: float) -> Latency:
    """Return percentiles of latencies without the first tenth, a warm-up. `used`: the brokers' CPU seconds for all."""
    measured = seconds[len(seconds) // 10 :]
    cut = statistics.quantiles(measured, n=100)
    return Latency(statistics.median(measured) * 1e3, cut[98] * 1e3, used / len(seconds) * 1e3)
