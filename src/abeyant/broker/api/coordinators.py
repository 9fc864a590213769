"""Expire group members and fence producers through their coordinators. Use from the loop's thread only."""

from __future__ import annotations

from collections.abc import Mapping

from abeyant.broker.api.base import BaseCluster
from abeyant.broker.api.leading import UnknownNameError, coordinator_of
from abeyant.broker.api.target import check_text
from abeyant.broker.coordinator.topics import OFFSETS, TRANSACTIONS
from abeyant.broker.errors import ApiError
from abeyant.broker.transactions.transaction import Producer
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError, did_you_mean

_FENCED = (ErrorCode.none, ErrorCode.concurrent_transactions)  # the latter while the open transaction is aborted


def expire_member(cluster: BaseCluster, group: str, member: str) -> None:
    """Expire a member's session.

    Raises AbeyantError for an unknown group or member, or if the group's coordinator cannot act: it is paused or
    stopped, or still loads the group.
    """
    check_text("group", group)
    check_text("member", member)
    broker = coordinator_of(cluster, OFFSETS, group, f"group {group!r}")
    try:
        shard = None if broker is None else broker.group_coordinator.shard(group)
    except ApiError as error:
        raise AbeyantError(
            f"cannot expire a member of group {group!r}: its coordinator responds {error.code.name.upper()}"
        ) from None
    members = None if shard is None else shard.members(group)
    if shard is None or members is None:
        raise UnknownNameError(f"there is no group {group!r}{did_you_mean(group, known_groups(cluster))}")
    shard.expire(group, _one_member(group, member, members))
    cluster.network.settle()


def known_groups(cluster: BaseCluster) -> list[str]:
    """Return the ids of the groups that brokers coordinate now. For suggestions only: some may be missing."""
    shards = (shard for broker in cluster.brokers.values() for shard in broker.group_coordinator.loaded())
    return [group.id for shard in shards for group in shard.all_groups()]


def _one_member(group: str, name: str, members: Mapping[str, tuple[str | None, str]]) -> str:
    """Return the id of the member that has `name` as its member id, instance id or client id.

    `members` maps each member id to the member's instance id and client id. Raises AbeyantError unless one matches.
    """
    if name in members:
        return name
    matches = [member for member, names in members.items() if name in names]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise AbeyantError(
            f"{len(matches)} members of group {group!r} are called {name!r}: give one of the ids {sorted(matches)}"
        )
    aliases = {alias for member, both in members.items() for alias in (member, *both) if alias}
    hint = did_you_mean(name, aliases)
    raise AbeyantError(f"group {group!r} has no member {name!r}{hint}; its member ids are {sorted(members)}")


def fence_producer(cluster: BaseCluster, transactional_id: str) -> None:
    """Fence a producer, as InitProducerId with its transactional id does. Raises AbeyantError if that fails."""
    check_text("transactional_id", transactional_id)
    broker = coordinator_of(cluster, TRANSACTIONS, transactional_id, f"transactional id {transactional_id!r}")
    if broker is None:
        raise UnknownNameError(
            f"there is no transactional id {transactional_id!r}: no producer has used a transactional id yet"
        )
    try:
        shard = broker.transaction_coordinator.shard(transactional_id)
    except ApiError as error:
        raise AbeyantError(
            f"cannot fence {transactional_id!r}: its coordinator responds {error.code.name.upper()}"
        ) from None
    transaction = shard.transactions.get(transactional_id)
    if transaction is None:
        hint = did_you_mean(transactional_id, shard.transactions)
        raise UnknownNameError(f"there is no transactional id {transactional_id!r}{hint}")
    epoch = transaction.now.epoch
    refused: list[ErrorCode] = []

    def done(error: ErrorCode, _: Producer) -> None:
        if error not in _FENCED or transaction.now.epoch == epoch:
            refused.append(error)

    shard.initialize(transactional_id, transaction.now.timeout_ms, None, done)
    cluster.network.settle()
    if refused:
        state = transaction.now.state.shown
        raise AbeyantError(f"cannot fence {transactional_id!r}, which is in {state}: {refused[0].name.upper()}")
