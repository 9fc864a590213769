"""Read a cluster's metrics: its purgatories, requests, replicas and connections, broker by broker.

The thread that scrapes reads everything itself, so that a busy loop cannot delay a scrape.
Each number is exact, but different numbers may be read at different moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from abeyant.metrics.readers import purgatory_readings, timer_readings
from abeyant.metrics.series import Family, Reading, renamed

if TYPE_CHECKING:
    from abeyant.broker.api.base import BaseCluster
    from abeyant.broker.broker import Broker

_MANAGER = "of kafka.server:type=ReplicaManager"
_KAFKA_MANAGER = "kafka_server_replicamanager_"

UP = Family("broker_up", "gauge", "1 for a broker that runs, 0 for one that is stopped.")
PAUSED = Family("broker_paused", "gauge", "1 while a broker is paused.")
CONNECTIONS = Family("broker_connections", "gauge", "Open connections of clients.")
RESPONSES = Family(
    "broker_requests", "counter",
    "Requests that got a response, by API; ReplicaFetch is a follower's fetch. The request log has a line for each.",
    "RequestsPerSec of kafka.network:type=RequestMetrics",
    renamed("kafka_network_requestmetrics_requests", api="request", broker="broker"),
)  # fmt: skip
PARTITIONS = Family(
    "broker_partitions", "gauge", "Replicas on a broker.", f"PartitionCount {_MANAGER}",
    renamed(f"{_KAFKA_MANAGER}partitioncount", broker="broker"),
)  # fmt: skip
LEADERS = Family(
    "broker_leaders", "gauge", "Partitions that a broker leads.", f"LeaderCount {_MANAGER}",
    renamed(f"{_KAFKA_MANAGER}leadercount", broker="broker"),
)  # fmt: skip
UNDER_REPLICATED = Family(
    "broker_under_replicated_partitions", "gauge", "Partitions that a broker leads and that lack an in-sync replica.",
    f"UnderReplicatedPartitions {_MANAGER}", renamed(f"{_KAFKA_MANAGER}underreplicatedpartitions", broker="broker"),
)  # fmt: skip
UNDER_MIN_ISR = Family(
    "broker_under_min_isr_partitions", "gauge",
    "Partitions that a broker leads and that have too few in-sync replicas for acks=all.",
    f"UnderMinIsrPartitionCount {_MANAGER}", renamed(f"{_KAFKA_MANAGER}underminisrpartitioncount", broker="broker"),
)  # fmt: skip
END_OFFSET = Family(
    "broker_log_end_offset", "gauge", "The offset after a replica's last record.",
    "LogEndOffset of kafka.log:type=Log",
    renamed("kafka_log_log_logendoffset", topic="topic", partition="partition", broker="broker"),
)  # fmt: skip
HIGH_WATERMARK = Family("broker_high_watermark", "gauge", "The high watermark that a replica knows.")
TELEMETRY_CLIENTS = Family(
    "broker_telemetry_clients", "gauge", "Clients that push their metrics to a broker, or have requested what to push.",
    "instance-count of kafka.server:type=client-metrics",
    renamed("kafka_server_client_metrics_instance_count", broker="broker"),
)  # fmt: skip
TELEMETRY_PUSHES = Family("broker_telemetry_pushes", "counter", "Pushes of clients' metrics that a broker accepted.")
TELEMETRY_REFUSALS = Family(
    "broker_telemetry_refusals", "counter", "Refused requests about clients' metrics, by error."
)
FAULTS = Family("broker_faults", "gauge", "Faults that are active.")


def cluster_readings(cluster: BaseCluster, faults: int) -> Iterator[Reading]:
    """Yield the metrics of a cluster, none before it is opened. `faults` is the number of active faults."""
    if not hasattr(cluster, "controller"):
        return
    yield from timer_readings(cluster.clock.timer, {"timer": "broker"})
    yield Reading(FAULTS, {}, faults)
    for number, broker in list(cluster.brokers.items()):
        yield from _broker_readings(broker, {"broker": str(number)})


def _broker_readings(broker: Broker, labels: dict[str, str]) -> Iterator[Reading]:
    yield Reading(UP, labels, int(not broker.stopped))
    yield Reading(PAUSED, labels, int(broker.paused))
    yield Reading(CONNECTIONS, labels, len(broker.connections))
    for api, count in sorted(broker.answered.items()):
        yield Reading(RESPONSES, {**labels, "api": api}, count)
    for purgatory in broker.purgatories:
        yield from purgatory_readings(purgatory, {**labels, "purgatory": purgatory.name})
    telemetry = broker.telemetry
    yield Reading(TELEMETRY_CLIENTS, labels, len(telemetry))
    yield Reading(TELEMETRY_PUSHES, labels, telemetry.pushes)
    for error, count in sorted(telemetry.errors.items()):
        yield Reading(TELEMETRY_REFUSALS, {**labels, "error": error}, count)
    if broker.stopped:
        return
    partitions = list(broker.partitions.values())
    led = [one for one in partitions if one.leads]
    yield Reading(PARTITIONS, labels, len(partitions))
    yield Reading(LEADERS, labels, len(led))
    yield Reading(UNDER_REPLICATED, labels, sum(len(one.state.isr) < len(one.state.replicas) for one in led))
    yield Reading(UNDER_MIN_ISR, labels, sum(len(one.state.isr) < one.min_isr for one in led))
    for one in partitions:
        of = {**labels, "topic": one.topic, "partition": str(one.index)}
        yield Reading(END_OFFSET, of, one.log.end_offset)
        yield Reading(HIGH_WATERMARK, of, one.high_watermark)
