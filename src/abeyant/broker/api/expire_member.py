"""Expire a group member's session, for a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from abeyant.broker.coordinator.topics import OFFSETS, partition_for
from abeyant.broker.errors import ApiError
from abeyant.errors import AbeyantError, did_you_mean

if TYPE_CHECKING:
    from abeyant.broker.api.ports import Cluster
    from abeyant.broker.groups.shard import GroupShard


def expire_member(cluster: Cluster, group: str, member: str) -> None:
    """Expire a member's session. Raises AbeyantError for an unknown group or member, or without a coordinator.

    In the loop's thread.
    """
    shard = _shard(cluster, group)
    shard.expire(group, _one_member(group, member, shard.members(group) or {}))
    cluster.network.settle()


def _shard(cluster: Cluster, group: str) -> GroupShard:
    topic = cluster.controller.topics.get(OFFSETS.name)
    if topic is not None:
        leader = topic.partitions[partition_for(group, len(topic.partitions))].leader
        broker = cluster.brokers.get(leader)
        if broker is None or broker.stopped or broker.paused:
            raise AbeyantError(f"the coordinator of group {group!r} is not there: broker {leader}")
        try:
            shard: GroupShard = broker.group_coordinator.shard(group)
        except ApiError as error:
            raise AbeyantError(f"the coordinator of group {group!r}: {error.code.name.upper()}") from None
        if shard.members(group) is not None:
            return shard
    known = [
        known.id
        for broker in cluster.brokers.values()
        for shard in broker.group_coordinator.loaded()
        for known in shard.every_group()
    ]
    raise AbeyantError(f"there is no group {group!r}{did_you_mean(group, known)}")


def _one_member(group: str, asked: str, members: Mapping[str, tuple[str | None, str]]) -> str:
    """Return the member id for an id, instance id or client id; `members` has the latter two of each member."""
    if asked in members:
        return asked
    found = [member for member, names in members.items() if asked in names]
    if len(found) == 1:
        return found[0]
    if found:
        raise AbeyantError(f"{len(found)} members of group {group!r} are called {asked!r}: name one of {sorted(found)}")
    names = {name for member, both in members.items() for name in (member, *both) if name}
    raise AbeyantError(
        f"group {group!r} has no member {asked!r}{did_you_mean(asked, names)}; there are {sorted(members)}"
    )
