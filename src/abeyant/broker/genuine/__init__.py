"""Genuine Apache Kafka on loopback: three brokers from Maven Central, for request logs, tests and benchmarks.

`GenuineKafka` gives these brokers the API of `abeyant.broker.Cluster`, for `pytest --kafka=genuine`, and needs the
extra `broker`.
"""

from abeyant.broker.genuine.cluster import Cluster, free_ports, terminate
from abeyant.broker.genuine.distribution import ClusterError, Kafka, die_with_parent, fetch

__all__ = ["Cluster", "ClusterError", "Kafka", "die_with_parent", "fetch", "free_ports", "terminate"]
