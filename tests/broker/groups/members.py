"""Members of a group that are real clients, each in a thread of its own: confluent-kafka, kafka-python and aiokafka.

python -m broker.groups.members BOOTSTRAP GROUP TOPIC       one of confluent-kafka in a process, to be killed
"""

from __future__ import annotations

import asyncio
import sys
import threading
import warnings
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, TopicPartition

from abeyant.broker import Cluster
from broker.clients import producing, send, settle

TOPIC = "orders"
ALL = frozenset(range(6))  # its partitions
SOON = 100  # ms: between heartbeats, so that a member soon hears of a rebalance
Record = tuple[int, int]
"""A partition and an offset."""


class Member:
    """Reads a topic as a member of a group until its block ends; `partitions` is what it has now."""

    def __init__(
        self, bootstrap: str, topic: str, group: str = "group", *, session: int | None = 30_000, **config: Any
    ) -> None:
        """`session` in ms, None where the broker decides; `config` is librdkafka's, with _ in place of dots."""
        self.bootstrap, self.topic, self.group, self.session = bootstrap, topic, group, session
        self.config = {name.replace("_", "."): value for name, value in config.items()}
        self.partitions: frozenset[int] = frozenset()
        self.read: list[Record] = []
        self.error: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(30)
        assert self.error is None, self.error

    def _run(self) -> None:
        try:
            self.consume()
        except BaseException as error:  # noqa: BLE001  told where the block ends
            self.error = error
        self.partitions = frozenset()

    def consume(self) -> None:
        """Until it is over."""
        raise NotImplementedError


class Journal:
    """Who has which partition, by what clients' own callbacks say: what is given to two is seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[int, Member] = {}
        self.doubled: list[tuple[int, Member, Member]] = []

    def given(self, member: Member, partitions: frozenset[int]) -> None:
        with self._lock:
            for one in partitions:
                owner = self._owners.setdefault(one, member)
                if owner is not member:
                    self.doubled.append((one, owner, member))
                self._owners[one] = member

    def taken(self, member: Member, partitions: frozenset[int]) -> None:
        with self._lock:
            for one in partitions:
                if self._owners.get(one) is member:
                    del self._owners[one]


class Confluent(Member):
    """librdkafka."""

    journal: Journal | None = None

    def consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap, "group.id": self.group, "auto.offset.reset": "earliest",
                "log_level": 0,
                "topic.metadata.refresh.interval.ms": 60_000, **self.config,
                **({} if self.session is None else {"session.timeout.ms": self.session, "heartbeat.interval.ms": SOON}),
            }
        )  # fmt: skip
        self.assigned: list[frozenset[int]] = []
        self.revoked: list[frozenset[int]] = []

        def on_assign(_: Consumer, given: list[TopicPartition]) -> None:
            self.assigned.append(frozenset(one.partition for one in given))
            if self.journal is not None:
                self.journal.given(self, self.assigned[-1])

        def on_revoke(_: Consumer, taken: list[TopicPartition]) -> None:
            self.revoked.append(frozenset(one.partition for one in taken))
            if self.journal is not None:
                self.journal.taken(self, self.revoked[-1])

        consumer.subscribe([self.topic], on_assign=on_assign, on_revoke=on_revoke)
        while not self._over.is_set():
            message = consumer.poll(0.02)
            self.partitions = frozenset(one.partition for one in consumer.assignment())
            if message is not None and message.error() is None:
                self.read.append((message.partition() or 0, message.offset() or 0))
        consumer.close()


class KafkaPython(Member):
    """kafka-python."""

    def consume(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from kafka import KafkaConsumer
        consumer = KafkaConsumer(
            self.topic, bootstrap_servers=self.bootstrap.split(","), group_id=self.group,
            auto_offset_reset="earliest", session_timeout_ms=self.session, heartbeat_interval_ms=SOON,
            request_timeout_ms=(self.session or 0) + 305_000,
        )  # fmt: skip
        while not self._over.is_set():
            for records in consumer.poll(timeout_ms=20).values():
                self.read += [(record.partition, record.offset) for record in records]
            self.partitions = frozenset(one.partition for one in consumer.assignment())
        consumer.close()


class Aiokafka(Member):
    """aiokafka."""

    def consume(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        consumer = AIOKafkaConsumer(
            self.topic, bootstrap_servers=self.bootstrap, group_id=self.group, auto_offset_reset="earliest",
            session_timeout_ms=self.session, heartbeat_interval_ms=SOON,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )  # fmt: skip
        try:
            await consumer.start()
            while not self._over.is_set():
                for records in (await consumer.getmany(timeout_ms=20)).values():
                    self.read += [(record.partition, record.offset) for record in records]
                self.partitions = frozenset(one.partition for one in consumer.assignment())
        finally:
            await consumer.stop()


def fill(kafka: Cluster, count: int) -> set[tuple[int, int]]:
    """So many records in each partition; returns all that there are now."""
    with producing(kafka) as producer:
        found = settle(producer, *[send(producer, TOPIC, b"x", part) for part in ALL for _ in range(count)])
    assert set(found) == {None}
    return {(record.partition, record.offset) for record in kafka.records(TOPIC)}


def share(*members: Member) -> bool:
    """Whether they have all partitions between them, evenly, and none twice."""
    sizes = [len(member.partitions) for member in members]
    return sum(sizes) == len(ALL) == len(frozenset().union(*(member.partitions for member in members))) and (
        max(sizes) - min(sizes) <= 1
    )


if __name__ == "__main__":
    with Confluent(sys.argv[1], sys.argv[3], sys.argv[2], session=int(sys.argv[4])) as member:
        member._thread.join()
