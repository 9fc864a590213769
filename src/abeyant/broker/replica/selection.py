"""Select the replica from which a consumer reads, by its rack (KIP-392). Kafka: `RackAwareReplicaSelector`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.partition_state import NO_LEADER

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition


def preferred_replica(partition: Partition, rack: str, offset: int) -> int:
    """Return the follower in `rack` with the greatest log end offset; `NO_LEADER` to read from the leader.

    The follower must be in sync, and its log must contain or end at `offset`. Call this on the leader's replica.
    O(replicas).
    """
    broker = partition.broker
    settings = broker.cluster.settings
    if settings.rack(broker.id) == rack:
        return NO_LEADER
    end = partition.log.end_offset
    found = [
        (remote.end, remote.last_caught_up(end), remote.broker)
        for remote in partition.remotes.values()
        if remote.broker in partition.state.isr
        and remote.start <= offset <= remote.end
        and settings.rack(remote.broker) == rack
    ]
    return max(found)[2] if found else NO_LEADER
