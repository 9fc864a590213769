"""What waits, asked for by an unmodified client: one face for confluent-kafka and for Java's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from abeyant.broker import Cluster
from broker.clients import consuming, producing, send, settle, take
from clients.java import Driver

FETCHER = "fetcher"


class Outcome(NamedTuple):
    """How it ended."""

    error: str | None
    seconds: float
    """As the client's thread measured it, in real time."""
    number: int = 0
    """How many records came, or the low watermark."""


class Client(Protocol):
    """Kafka's errors have Kafka's names. Times are in seconds, sizes in bytes, and the partition is 0."""

    def produce(self, kafka: Cluster, topic: str, timeout: float, size: int = 1) -> Future[Outcome]:
        """One record for all replicas, sent once."""

    def fetch(self, kafka: Cluster, topic: str, min_bytes: int, max_wait: float) -> Future[Outcome]:
        """What the first fetch from offset 0 brings; its client id is `FETCHER`."""

    def delete_records(self, kafka: Cluster, topic: str, before: int, timeout: float) -> Future[Outcome]:
        """Delete the records before an offset."""


class Java:
    """Java's, in its JVM."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def produce(self, kafka: Cluster, topic: str, timeout: float, size: int = 1) -> Future[Outcome]:
        return self._begin(kafka, "produce", topic=topic, timeout=timeout, size=size)

    def fetch(self, kafka: Cluster, topic: str, min_bytes: int, max_wait: float) -> Future[Outcome]:
        asked = {"offset": 0, "min_bytes": min_bytes, "max_wait": max_wait, "client": FETCHER}
        return self._begin(kafka, "fetch", topic=topic, **asked)

    def delete_records(self, kafka: Cluster, topic: str, before: int, timeout: float) -> Future[Outcome]:
        return self._begin(kafka, "delete", topic=topic, before=before, timeout=timeout)

    def _begin(self, kafka: Cluster, do: str, **asked: Any) -> Future[Outcome]:
        begun = self._driver.begin(do=do, bootstrap=kafka.bootstrap, **asked)
        outcome: Future[Outcome] = Future()

        def ended(future: Future[dict[str, Any]]) -> None:
            answer = future.result()
            outcome.set_result(
                Outcome(answer["error"], answer.get("seconds", 0.0), answer.get("count", answer.get("low", 0)))
            )

        begun.add_done_callback(ended)
        return outcome


class Confluent:
    """confluent-kafka's, each call in a thread."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def produce(self, kafka: Cluster, topic: str, timeout: float, size: int = 1) -> Future[Outcome]:
        def work() -> Outcome:
            settings = {"acks": "all", "request_timeout_ms": round(1000 * timeout), "message_timeout_ms": 90_000}
            with producing(kafka, **settings) as producer:
                know(producer, topic)
                began = time.monotonic()
                [error] = settle(producer, send(producer, topic, bytes(size)))
                return Outcome(error, time.monotonic() - began)

        return self._pool.submit(work)

    def fetch(self, kafka: Cluster, topic: str, min_bytes: int, max_wait: float) -> Future[Outcome]:
        def work() -> Outcome:
            settings = {"fetch_min_bytes": min_bytes, "fetch_wait_max_ms": round(1000 * max_wait)}
            with consuming(kafka, (topic, 0), client_id=FETCHER, **settings) as consumer:
                began = time.monotonic()
                take(consumer, 1)
                seconds = time.monotonic() - began
                return Outcome(None, seconds, 1 + len(consumer.consume(100, timeout=0.2)))

        return self._pool.submit(work)

    def delete_records(self, kafka: Cluster, topic: str, before: int, timeout: float) -> Future[Outcome]:
        def work() -> Outcome:
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
            know(admin, topic)
            began = time.monotonic()
            asked = [TopicPartition(topic, 0, before)]
            [deleted] = admin.delete_records(asked, operation_timeout=timeout, request_timeout=60).values()
            try:
                low = deleted.result().low_watermark
            except KafkaException as error:
                return Outcome(error.args[0].name(), time.monotonic() - began)
            return Outcome(None, time.monotonic() - began, low)

        return self._pool.submit(work)


def know(client: Producer | AdminClient, topic: str) -> None:
    """Have the client know who leads the topic, so that what is timed is one request."""
    client.list_topics(topic, timeout=30)


@contextmanager
def confluent() -> Iterator[Confluent]:
    """With threads of its own."""
    with ThreadPoolExecutor(2) as pool:
        yield Confluent(pool)


class Times:
    """Lets time pass: real time is waited for, held time is advanced."""

    def __init__(self, kafka: Cluster, *, held: bool) -> None:
        self._kafka = kafka
        self.held = held

    def arrived(self, kind: str, client: str | None = None) -> None:
        """Until the client's request waits in that purgatory."""
        self._kafka.until_waiting(kind, client_id=client, timeout=30)

    def spend(self, seconds: float) -> None:
        """Let them pass."""
        if self.held:
            self._kafka.clock.advance(seconds)
        else:
            time.sleep(seconds)

    def never_before(self, outcome: Future[Outcome], seconds: float) -> Outcome:
        """The outcome that comes once so much time has passed since it was asked for, and not before."""
        if self.held:
            self._kafka.clock.advance(seconds - 0.01)
            time.sleep(0.02)  # what was wrongly answered would be here now
            assert not outcome.done()
            self._kafka.clock.advance(0.01)
            return outcome.result(60)
        ended = outcome.result(60)
        assert ended.seconds >= seconds
        return ended
