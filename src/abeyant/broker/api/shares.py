"""Expire record locks of share groups before their time-out. Use from the loop's thread only."""

from __future__ import annotations

from abeyant.broker.api.base import BaseCluster
from abeyant.errors import AbeyantError


def expire_locks(cluster: BaseCluster, group: str, topic: str, partition: int | None, member: str | None) -> int:
    """Expire a group's locks on a topic; return how many. Raises AbeyantError for no locks, or an unknown topic."""
    cluster._topic_named(topic)
    if partition is not None:
        cluster._partition_state(topic, partition)
    ended = 0
    for broker in cluster.brokers.values():
        for lock in broker.share_lock_purgatory.pending():
            where, who, _ = lock.keys()
            if (
                where[0] == topic
                and partition in (None, where[1])
                and who[0] == group
                and member in (None, who[1], lock.client_id)
            ):
                lock.expire()
                ended += 1
    if not ended:
        whose = f"group {group!r}" + ("" if member is None else f", member {member!r}")
        raise AbeyantError(f"{whose} has no lock on {topic!r}: cluster.waiting('ShareLock') lists all locks")
    cluster.network.settle()
    return ended
