"""The stream over genuine Kafka: a broker is killed on the way. Over our own: tests/pipeline/commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline import kafka_stream

if TYPE_CHECKING:
    from abeyant.broker.genuine import Cluster


class Brokers:
    """Genuine Kafka's."""

    def __init__(self, cluster: Cluster) -> None:
        self.bootstrap = cluster.bootstrap
        self._cluster = cluster

    def end_one(self) -> None:
        if self._cluster.nodes[2].is_running:
            self._cluster.kill(2)


@pytest.fixture
def brokers(cluster: Cluster) -> Brokers:
    return Brokers(cluster)


def test_from_topics_to_a_topic(brokers: Brokers, tmp_path: Path) -> None:
    kafka_stream.from_topics_to_a_topic(brokers, tmp_path)
