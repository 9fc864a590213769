"""Genuine Kafka with the API of our `Cluster`, as far as possible, for `pytest --kafka=genuine`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, Self

from abeyant.broker.api.cluster_api import Record, reads_committed, topic_settings
from abeyant.broker.api.contents import NewRecord, seed_batch
from abeyant.broker.api.outages import Outages
from abeyant.broker.genuine.admin import Admin, Described
from abeyant.broker.genuine.cluster import HOST, NODES, Cluster, Node, free_ports
from abeyant.broker.genuine.distribution import Kafka
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.renamed import former_keywords

_SETTINGS = {
    "min.insync.replicas": "1",  # Kafka's own default, and ours
    "auto.create.topics.enable": "true",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
_NOT_HERE = frozenset(
    {
        "brokers", "clock", "close", "commit", "compact", "controller", "delay", "directory", "drop",
        "drop_connections", "expire_lock", "expire_member", "fail", "faults", "fence", "group", "groups", "network",
        "observe", "open", "pushed_metrics", "readings", "security", "set_quotas", "settings", "throttle",
        "transactions", "until_waiting", "waiting",
    }
)  # fmt: skip
"""Public names of `Cluster` that skip the test here: Kafka lacks them, or their effect would outlast the test."""


class GenuineKafka(Outages):
    """Three brokers of Apache Kafka on loopback. Use it as a context manager."""

    host = HOST
    ca_file = None
    """The CA file is None, as the brokers use PLAINTEXT."""

    def __init__(self, kafka: Kafka, folder: Path, skip: Callable[[str], NoReturn]) -> None:
        """Prepare brokers with logs and data in `folder`. `skip(reason)` is called for what Kafka cannot do."""
        self._nodes = Cluster(kafka, folder, free_ports(), settings=_SETTINGS, heap_mb=400, brief=True)
        self._admin = Admin(self._running)
        self._skip = skip
        self._created: list[str] = []
        self.bootstrap = self._nodes.bootstrap

    def __enter__(self) -> Self:
        try:
            self._nodes.start()
        except BaseException:
            self._nodes.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._nodes.stop()

    def __getattr__(self, name: str) -> NoReturn:
        if name in _NOT_HERE:
            self._skip(f"--kafka=genuine: only abeyant.broker has `{name}`")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def tidy_up(self) -> None:
        """Delete the test's topics, and start or resume the brokers that the test left stopped or paused."""
        for number, node in self._nodes.nodes.items():
            if not node.is_running:
                self.start(number)
            elif node.frozen:
                self.resume(number)
        created, self._created = self._created, []
        if created:
            self._admin.delete_topics(created)

    # -- topics, as in `ClusterApi`

    def create_topic(
        self, name: str, partitions: int = 1, replicas: int | None = None, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic, by default with three replicas."""
        replication_factor = len(NODES) if replicas is None else replicas
        settings = topic_settings(name, partitions, replication_factor, config)
        self._admin.create_topic(name, partitions, replication_factor, settings)
        self._created.append(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        self._partitions(name)
        self._admin.delete_topics([name])

    def topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return sorted(self._admin.topics())

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the broker that leads a partition; None without a leader."""
        leader = self._partition(topic, partition).leader
        return None if leader < 0 else leader

    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the brokers whose replicas of a partition are in sync."""
        return self._partition(topic, partition).in_sync

    @former_keywords(uncommitted="beyond_high_watermark")
    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        beyond_high_watermark: bool = False,
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    ) -> list[Record]:
        """Return the records of a topic, or of one partition, as a consumer sees them."""
        committed = reads_committed(isolation, beyond_high_watermark)
        if beyond_high_watermark:
            self._skip("--kafka=genuine: only abeyant.broker returns records beyond the high watermark")
        partitions = self._partitions(topic)
        selected = sorted(partitions.items()) if partition is None else [(partition, self._partition(topic, partition))]
        for index, description in selected:
            if description.leader < 0:
                raise AbeyantError(f"cannot read {topic!r}, partition {index}: it has no leader that runs")
        return [
            Record(index, *record)
            for index, description in selected
            for record in self._admin.records(topic, index, description.leader, committed)
        ]

    def seed(self, topic: str, records: Iterable[bytes | NewRecord | None], partition: int = 0) -> list[int]:
        """Append records to a partition, with acks=all so that they can be read, and return their offsets."""
        leader = self.leader(topic, partition)
        if leader is None:
            raise AbeyantError(f"cannot seed {topic!r}, partition {partition}: it has no leader that runs")
        batch = seed_batch(records, int(time.time() * 1000))
        if batch is None:
            return []
        first = self._admin.append(topic, partition, leader, batch)
        return list(range(first, first + batch.record_count))

    def _partitions(self, topic: str) -> dict[int, Described]:
        topics = self._admin.topics()
        if topic not in topics:
            raise AbeyantError(f"there is no topic {topic!r}{did_you_mean(str(topic), topics)}")
        return topics[topic]

    def _partition(self, topic: str, partition: int) -> Described:
        partitions = self._partitions(topic)
        if type(partition) is not int or partition not in partitions:
            raise AbeyantError(f"topic {topic!r} has partitions 0 to {len(partitions) - 1}, and no {partition!r}")
        return partitions[partition]

    # -- brokers, as in `ClusterApi`

    def pause(self, broker: int) -> None:
        """Pause a broker with SIGSTOP."""
        if not self._node(broker).is_running:
            raise AbeyantError(f"broker {broker} is stopped, so it cannot be paused: start it first")
        self._nodes.freeze(broker)

    def resume(self, broker: int) -> None:
        """Resume a paused broker with SIGCONT. Do nothing if it is running, or stopped."""
        if self._node(broker).frozen:
            self._nodes.thaw(broker)

    def stop(self, broker: int) -> None:
        """Shut down a broker. Other brokers lead its partitions when this returns. A second call does nothing."""
        if self._node(broker).is_running:
            self._nodes.stop_one(broker)

    def is_stopped(self, broker: int) -> bool:
        """Return whether a broker is stopped."""
        return not self._node(broker).is_running

    def start(self, broker: int) -> None:
        """Start a stopped broker. Raises AbeyantError for one that runs."""
        if self._node(broker).is_running:
            raise AbeyantError(f"broker {broker} is running: stop it first")
        self._nodes.restart(broker)

    def _node(self, broker: int) -> Node:
        node = self._nodes.nodes.get(broker)
        if node is None:
            raise AbeyantError(f"there is no broker {broker!r}: there are brokers {min(NODES)} to {max(NODES)}")
        return node

    def _running(self) -> dict[int, tuple[str, int]]:
        nodes = self._nodes.nodes.items()
        return {number: (HOST, node.port) for number, node in nodes if node.is_running and not node.frozen}
