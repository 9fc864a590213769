"""Genuine Apache Kafka on loopback: three brokers from Maven, for the capture of request logs and for tests."""

from .cluster import Cluster, free_ports, terminate
from .distribution import ClusterError, Kafka, die_with_parent, fetch

__all__ = ["Cluster", "ClusterError", "Kafka", "die_with_parent", "fetch", "free_ports", "terminate"]
