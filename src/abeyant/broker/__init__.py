"""A Kafka-compatible cluster in one process, with real replication and time-outs, for tests and development.

    >>> from abeyant import broker
    >>> from confluent_kafka import Producer
    >>> with broker.Cluster(brokers=3) as kafka:
    ...     producer = Producer({"bootstrap.servers": kafka.bootstrap})

Needs the extra `broker`: pip install '.[broker]'. Importing this package alone loads none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.broker.api.cluster_api import ClusterApi, Written
    from abeyant.broker.api.contents import GroupState, Seed, TransactionState
    from abeyant.broker.api.faults import Fault
    from abeyant.broker.api.target import NearMiss, Where
    from abeyant.broker.cluster import Cluster
    from abeyant.broker.delayed.operation import Waiting

__all__ = [
    "Cluster",
    "ClusterApi",
    "Fault",
    "GroupState",
    "NearMiss",
    "Seed",
    "TransactionState",
    "Waiting",
    "Where",
    "Written",
]

_HOMES: Final = {
    "Cluster": "cluster",
    "ClusterApi": "api.cluster_api",
    "Fault": "api.faults",
    "GroupState": "api.contents",
    "NearMiss": "api.target",
    "Seed": "api.contents",
    "TransactionState": "api.contents",
    "Waiting": "delayed.operation",
    "Where": "api.target",
    "Written": "api.cluster_api",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, "broker", ("kio", "crc32c"))
