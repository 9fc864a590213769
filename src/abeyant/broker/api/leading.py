"""Find leaders and coordinators. If none runs, raise an error: an empty result would look like an empty cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from abeyant.broker.api.base import BaseCluster
from abeyant.broker.coordinator.shard import Shard
from abeyant.broker.coordinator.topics import InternalTopic, partition_for
from abeyant.errors import AbeyantError

if TYPE_CHECKING:
    from abeyant.broker.broker import Broker
    from abeyant.broker.coordinator.coordinator import Coordinator
    from abeyant.broker.replica.partition import Partition

ShardT = TypeVar("ShardT", bound=Shard)


class UnknownNameError(AbeyantError):
    """Raised for a group or transactional id that does not exist; its coordinator has been checked."""


def leader_of(cluster: BaseCluster, topic: str, partition: int) -> Partition | None:
    """Return the replica that leads a partition; None if no leader runs."""
    broker = cluster.brokers.get(cluster._partition_state(topic, partition).leader)
    replica = None if broker is None or broker.stopped else broker.partitions.get((topic, partition))
    return replica if replica is not None and replica.leads else None


def leading(cluster: BaseCluster, topic: str, partition: int, doing: str) -> Partition:
    """Return the replica that leads a partition. Raises AbeyantError, "cannot {doing} ...", if no leader runs."""
    replica = leader_of(cluster, topic, partition)
    if replica is None:
        why = _mend_without_leader(cluster, topic, partition)
        raise AbeyantError(f"cannot {doing} {topic!r}, partition {partition}: it has no leader that runs{why}")
    return replica


def coordinator_of(cluster: BaseCluster, kind: InternalTopic, key: str, what: str) -> Broker | None:
    """Return the coordinator of `key`; None if its internal topic, `kind`, does not exist yet.

    Raises AbeyantError, whose message names the key as `what`, if the coordinator is stopped or paused.
    """
    topic = cluster.controller.topics.get(kind.name)
    if topic is None:
        return None
    index = partition_for(key, len(topic.partitions))
    leader = topic.partitions[index].leader
    broker = cluster.brokers.get(leader)
    if broker is None or broker.stopped:
        raise AbeyantError(f"{what} has no coordinator that runs{_mend_without_leader(cluster, kind.name, index)}")
    if broker.paused:
        raise AbeyantError(f"the coordinator of {what}, broker {leader}, is paused: resume it")
    return broker


def shards_of(
    cluster: BaseCluster,
    kind: InternalTopic,
    coordinator: Callable[[Broker], Coordinator[ShardT]],
    what: str,
    key: str | None = None,
) -> Iterator[tuple[int, ShardT]]:
    """Yield the broker id and the shard of each coordinator, or only of the coordinator of `key`.

    Yields nothing if the internal topic `kind` does not exist yet. Raises AbeyantError if a partition of this topic has
    no running leader, because `what`, which the message names, could be in that partition.
    """
    topic = cluster.controller.topics.get(kind.name)
    count = 0 if topic is None else len(topic.partitions)
    for index in range(count) if key is None or not count else [partition_for(key, count)]:
        replica = leader_of(cluster, kind.name, index)
        shard = None if replica is None else coordinator(cluster.brokers[replica.broker.id]).shards.get(index)
        if replica is None or shard is None or shard.loading:
            why = _mend_without_leader(cluster, kind.name, index)
            raise AbeyantError(f"cannot read {what}: partition {index} of {kind.name} has no leader that runs{why}")
        yield replica.broker.id, shard


def _mend_without_leader(cluster: BaseCluster, topic: str, partition: int) -> str:
    """Return the end of an error message: which broker to resume or start for a partition to have a leader, or ""."""
    state = cluster._partition_state(topic, partition)
    broker = cluster.brokers.get(state.leader)
    if broker is not None and broker.paused:
        return f"; its leader, broker {state.leader}, is paused: resume it"
    stopped = [number for number in state.isr if number in cluster.brokers and cluster.brokers[number].stopped]
    return f"; start broker {' or '.join(map(str, stopped))}" if stopped else ""
