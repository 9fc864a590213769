"""Convert a group with members from one protocol to the other. Kafka: `convertToConsumerGroup`.

A classic group is upgraded when the first consumer member joins: the other members keep their assignments, and keep
using JoinGroup, SyncGroup and Heartbeat (`classic_in_consumer_group`). The group is downgraded when the last consumer
member leaves. A conversion returns the new group and its records, and the caller writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic import records as classic_records
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import JoinRequest, Member
from abeyant.broker.groups.consumer import records as consumer_records
from abeyant.broker.groups.consumer.assignors import NOTHING, Assignment
from abeyant.broker.groups.consumer.group import Classic, ConsumerGroup, ConsumerMember
from abeyant.broker.groups.subscription import CONSUMER, assignment_value, read_assignment, read_subscription
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry
    from abeyant.broker.groups.consumer.targets import Targets

_NEVER = "disabled"
_UPGRADES = ("upgrade", "bidirectional")
_DOWNGRADES = ("downgrade", "bidirectional")


class Migration:
    """Converter of one shard's groups between the classic and the consumer protocol."""

    def __init__(
        self, policy: str, targets: Targets, now_ms: Callable[[], int], *, max_consumers: int, max_classic: int
    ) -> None:
        """`policy` is `group.consumer.migration.policy`; `max_consumers` and `max_classic` limit the group size."""
        self._policy = policy.lower()
        self._targets = targets
        self._now_ms = now_ms
        self._max_consumers = max_consumers
        self._max_classic = max_classic

    # -- from the classic to the consumer protocol

    def upgrade(self, group: ClassicGroup) -> tuple[ConsumerGroup, list[Entry]]:
        """Convert a classic group to a consumer group. Raises ApiError (GROUP_ID_NOT_FOUND) if that is not possible."""
        if self._policy not in _UPGRADES:
            raise _cannot_upgrade(group, "online upgrade is disabled")
        if group.protocol_type != CONSUMER:
            raise _cannot_upgrade(group, "the group does not use the consumer embedded protocol")
        if len(group.members) > self._max_consumers:
            raise _cannot_upgrade(group, "the group size exceeds the consumer group maximum size")
        consumer_group = ConsumerGroup(group.id)
        consumer_group.epoch = consumer_group.target_epoch = group.generation
        for member in group.members.values():
            try:
                upgraded = self._upgrade_member(group, member)
            except ValueError:
                raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from None
            consumer_group.put(upgraded)
            consumer_group.target[member.id] = upgraded.assigned
        consumer_group.topics = self._targets.find_topics(consumer_group.subscriptions)
        return consumer_group, [
            (classic_records.group_key(group.id), None),
            *consumer_records.all_records(consumer_group),
        ]

    def _upgrade_member(self, group: ClassicGroup, member: Member) -> ConsumerMember:
        """Convert a member. Raises ValueError for other metadata than a consumer's, ApiError for a custom assignor."""
        assigned: Assignment = NOTHING
        if member.assignment:  # empty after joining, until the SyncGroup
            partitions, user_data = read_assignment(member.assignment)
            if user_data:
                raise _cannot_upgrade(
                    group,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default"
                    " assignor before re-attempting the upgrade",
                )
            assigned = self._targets.to_ids(partitions)
        subscription = read_subscription(member.metadata(group.protocol))
        return ConsumerMember(
            member.id, instance_id=member.instance_id, rack_id=subscription.rack_id, client_id=member.client_id,
            client_host=member.client_host, topics=tuple(sorted(set(subscription.topics))),
            rebalance_timeout=member.rebalance_timeout, epoch=group.generation, previous_epoch=group.generation,
            assigned=assigned, since=dict.fromkeys(assigned, group.generation),
            classic=Classic(member.session_timeout, member.protocols),
        )  # fmt: skip

    # -- classic members in a consumer group

    def require_may_join(self, group: ConsumerGroup) -> None:
        """Raise ApiError (INCONSISTENT_GROUP_PROTOCOL) unless classic members may join the group."""
        if self._policy == _NEVER:
            raise ApiError(
                ErrorCode.inconsistent_group_protocol,
                f"Cannot join the consumer group {group.id} with the classic protocol because the group migration is"
                " disabled.",
            )

    # -- from the consumer to the classic protocol

    def downgrades(self, group: ConsumerGroup, gone: Collection[str], coming: int = 0) -> bool:
        """Return whether to downgrade the group once members `gone` have left and `coming` members have joined."""
        remaining = len(group.members) - len(gone) + coming
        return group.only_classic_without(gone) and 0 < remaining <= self._max_classic and self._policy in _DOWNGRADES

    def downgrade(
        self, group: ConsumerGroup, gone: Collection[str], joins: ConsumerMember | None = None, *, rebalance: bool
    ) -> tuple[ClassicGroup, list[Entry]]:
        """Convert to a classic group without `gone`. `joins` takes over the assignment of the member in `gone`.

        With `rebalance` the group has no leader, so that a coordinator that loads the log also starts the rebalance.
        """
        classic_group = ClassicGroup(group.id, self._now_ms())
        classic_group.generation = group.epoch
        members = [consumer for consumer in group.members.values() if consumer.id not in gone]
        for consumer in members if joins is None else [*members, joins]:
            classic_group.add(_downgrade_member(consumer))
        classic_group.protocol_type = CONSUMER
        classic_group.protocol = classic_group.choose_protocol()
        classic_group.state = classic_group.previous = State.STABLE
        for member in classic_group.members.values():
            before = group.members[next(iter(gone)) if joins is not None and member.id == joins.id else member.id]
            version = read_subscription(member.metadata(classic_group.protocol)).version
            # Kafka takes the member's target. Then, if the group were upgraded again before this member's next request,
            # its partitions would go to another member.
            member.assignment = assignment_value(version, self._targets.to_names(before.assigned | before.revoking))
        assignments = {member.id: member.assignment for member in classic_group.members.values()}
        if rebalance:
            classic_group.leader = None
        entry = (classic_records.group_key(group.id), classic_records.group_value(classic_group, assignments))
        return classic_group, [*consumer_records.tombstones(group), entry]


def _downgrade_member(member: ConsumerMember) -> Member:
    assert member.classic is not None
    request = JoinRequest(
        member.id, member.instance_id, member.client_id, member.client_host, member.classic.session_timeout,
        member.rebalance_timeout, CONSUMER, member.classic.protocols,
    )  # fmt: skip
    return Member(member.id, request)


def _cannot_upgrade(group: ClassicGroup, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.group_id_not_found, f"Cannot upgrade classic group {group.id} to consumer group because {reason}."
    )
