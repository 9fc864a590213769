"""A Kafka-compatible cluster in one process, with real replication and time-outs, for tests and development.

    from abeyant import broker

    with broker.Cluster(brokers=3) as kafka:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})

Needs the extra `broker`: pip install '.[broker]'. Importing this package alone loads none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster

__all__ = ["Cluster"]

__getattr__, __dir__ = lazy_names(__name__, {"Cluster": "cluster"}, "broker", ("kio", "crc32c"))
