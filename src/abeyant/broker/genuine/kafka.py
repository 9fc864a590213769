"""Genuine Kafka with the API of our `Cluster`, as far as possible, for `pytest --kafka=genuine`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, Self

from abeyant.broker.api.cluster_api import Record
from abeyant.broker.api.outages import Outages
from abeyant.broker.genuine.admin import Admin, Described
from abeyant.broker.genuine.cluster import HOST, Cluster, free_ports
from abeyant.broker.genuine.distribution import fetch
from abeyant.broker.settings import from_python
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.renamed import former_keywords

_SETTINGS = {
    "min.insync.replicas": "1",  # Kafka's own default, and ours
    "auto.create.topics.enable": "true",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
_ONLY_OURS = frozenset(
    {"clock", "delay", "drop", "drop_connections", "fail", "fence", "set_quotas", "until_waiting", "waiting"}
)


class GenuineKafka(Outages):
    """Three brokers of Apache Kafka on loopback. Use it as a context manager."""

    def __init__(self, folder: Path, skip: Callable[[str], NoReturn]) -> None:
        """`folder` is for logs and data; `skip(reason)` is called for what Kafka cannot do. Raises ClusterError."""
        self._nodes = Cluster(fetch(), folder, free_ports(), settings=_SETTINGS, heap_mb=400, brief=True)
        self._admin = Admin({number: (HOST, node.port) for number, node in self._nodes.nodes.items()})
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
        if name in _ONLY_OURS:
            self._skip(f"--kafka=genuine: only abeyant.broker has `{name}`")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def tidy_up(self) -> None:
        """Delete the test's topics, and restart or resume brokers that it left stopped or paused."""
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
        self._admin.create_topic(name, partitions, 3 if replicas is None else replicas, from_python(config or {}))
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
        leader = self._partitions(topic)[partition].leader
        return None if leader < 0 else leader

    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the brokers whose replicas of a partition are in sync."""
        return self._partitions(topic)[partition].in_sync

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
        if beyond_high_watermark:
            self._skip("--kafka=genuine: only abeyant.broker returns uncommitted records")
        return [
            Record(index, *record)
            for index, described in sorted(self._partitions(topic).items())
            if partition in (None, index) and described.leader >= 0
            for record in self._admin.records(topic, index, described.leader, isolation == "read_committed")
        ]

    def _partitions(self, topic: str) -> dict[int, Described]:
        topics = self._admin.topics()
        if topic not in topics:
            raise AbeyantError(f"there is no topic {topic!r}{did_you_mean(topic, topics)}")
        return topics[topic]

    # -- brokers, as in `ClusterApi`

    def pause(self, broker: int) -> None:
        """Pause a broker with SIGSTOP."""
        self._nodes.freeze(broker)

    def resume(self, broker: int) -> None:
        """Resume a paused broker with SIGCONT."""
        self._nodes.thaw(broker)

    def stop(self, broker: int) -> None:
        """Shut down a broker. Other brokers lead its partitions when this returns."""
        self._nodes.stop_one(broker)

    def is_stopped(self, broker: int) -> bool:
        """Return whether a broker is stopped."""
        return not self._nodes.nodes[broker].is_running

    def start(self, broker: int) -> None:
        """Start a stopped broker."""
        self._nodes.restart(broker)
