"""A Kafka-compatible cluster in one process, with real replication and time-outs, for tests and development.

    >>> from abeyant import broker
    >>> from confluent_kafka import Producer
    >>> with broker.Cluster(brokers=3) as kafka:
    ...     producer = Producer({"bootstrap.servers": kafka.bootstrap})

Needs the extra `broker`: pip install '.[broker]'. Importing this package alone loads none of the extra's packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.broker.api.cluster_api import ClusterApi, Record, Written
    from abeyant.broker.api.contents import GroupMember, GroupOffset, GroupState, NewRecord, Seed, TransactionState
    from abeyant.broker.api.faults import Fault
    from abeyant.broker.api.target import NearMiss, Where
    from abeyant.broker.clock import Clock
    from abeyant.broker.cluster import Cluster
    from abeyant.broker.delayed.operation import Waiting
    from abeyant.broker.telemetry.clients import PushedMetrics
    from abeyant.metrics.series import Reading

__all__ = [
    "Clock",
    "Cluster",
    "ClusterApi",
    "Fault",
    "GroupMember",
    "GroupOffset",
    "GroupState",
    "NearMiss",
    "NewRecord",
    "PushedMetrics",
    "Reading",
    "Record",
    "Seed",
    "TransactionState",
    "Waiting",
    "Where",
    "Written",
]

_HOMES: Final = {
    "Clock": "clock",
    "Cluster": "cluster",
    "ClusterApi": "api.cluster_api",
    "Fault": "api.faults",
    "GroupMember": "api.contents",
    "GroupOffset": "api.contents",
    "GroupState": "api.contents",
    "NearMiss": "api.target",
    "NewRecord": "api.contents",
    "PushedMetrics": "telemetry.clients",
    "Reading": "api.cluster_api",
    "Record": "api.cluster_api",
    "Seed": "api.contents",
    "TransactionState": "api.contents",
    "Waiting": "delayed.operation",
    "Where": "api.target",
    "Written": "api.cluster_api",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, "broker", ("kio", "crc32c"))
