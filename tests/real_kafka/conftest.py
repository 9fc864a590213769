"""Genuine Apache Kafka for these tests: three brokers on loopback, or a reason why there are none here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from abeyant.broker.genuine import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    from abeyant.broker.genuine import Cluster, ClusterError, fetch, free_ports
    from abeyant.pipeline.sources.connector import ConnectorError, maven_jars

    try:
        kafka = fetch()
        maven_jars()
    except (ClusterError, ConnectorError) as error:
        pytest.skip(f"no genuine Kafka here: {' '.join(str(error).split())}")
    # A killed broker is missed after three seconds, not nine.
    settings = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    brokers = Cluster(kafka, tmp_path_factory.mktemp("kafka"), free_ports(), settings=settings, heap_mb=400, brief=True)
    with brokers.running():
        yield brokers
