"""Convert a group with members from one protocol to the other. Kafka: `convertToConsumerGroup`.

A classic group is upgraded when the first consumer member joins: the others become members with their assignments, and
keep using JoinGroup, SyncGroup and Heartbeat (`classic_in_consumer_group`). It is downgraded when the last consumer
member has left. A conversion is a function that returns the new group and its records; the caller writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic import records as classic_records
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.member import Joining, Member
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
    """Converts the groups of one shard."""

    def __init__(
        self, policy: str, targets: Targets, now_ms: Callable[[], int], *, max_consumers: int, max_classic: int
    ) -> None:
        """Take `group.consumer.migration.policy`, and the largest size of a group of each kind."""
        self._policy = policy.lower()
        self._targets = targets
        self._now_ms = now_ms
        self._max_consumers = max_consumers
        self._max_classic = max_classic

    # -- from the classic protocol to the new one

    def upgraded(self, group: ClassicGroup) -> tuple[ConsumerGroup, list[Entry]]:
        """Return the consumer group of a classic one. Raises ApiError, GROUP_ID_NOT_FOUND, unless allowed."""
        if self._policy not in _UPGRADES:
            raise _cannot_upgrade(group, "online upgrade is disabled")
        if group.protocol_type != CONSUMER:
            raise _cannot_upgrade(group, "the group does not use the consumer embedded protocol")
        if len(group.members) > self._max_consumers:
            raise _cannot_upgrade(group, "the group size exceeds the consumer group maximum size")
        made = ConsumerGroup(group.id)
        made.epoch = made.target_epoch = group.generation
        for member in group.members.values():
            try:
                moved = self._moved(group, member)
            except ValueError:
                raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from None
            made.put(moved)
            made.target[member.id] = moved.assigned
        made.topics = self._targets.subscribed(made.subscriptions)
        return made, [(classic_records.group_key(group.id), None), *consumer_records.all_records(made)]

    def _moved(self, group: ClassicGroup, member: Member) -> ConsumerMember:
        """Return the converted member. Raises ValueError for no consumer, ApiError for a custom assignor."""
        assigned: Assignment = NOTHING
        if member.assignment:  # a member that has joined and not synced yet has none
            partitions, own = read_assignment(member.assignment)
            if own:
                raise _cannot_upgrade(
                    group,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default"
                    " assignor before re-attempting the upgrade",
                )
            assigned = self._targets.identified(partitions)
        said = read_subscription(member.metadata(group.protocol))
        return ConsumerMember(
            member.id,
            instance_id=member.instance_id,
            rack_id=said.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=tuple(sorted(set(said.topics))),
            rebalance_timeout=member.rebalance_timeout,
            epoch=group.generation,
            previous_epoch=group.generation,
            assigned=assigned,
            since=dict.fromkeys(assigned, group.generation),
            classic=Classic(member.session_timeout, member.protocols),
        )

    # -- classic members in a consumer group

    def require_may_join(self, group: ConsumerGroup) -> None:
        """Raise ApiError, INCONSISTENT_GROUP_PROTOCOL, unless the classic member may join."""
        if self._policy == _NEVER:
            raise ApiError(
                ErrorCode.inconsistent_group_protocol,
                f"Cannot join the consumer group {group.id} with the classic protocol because the group migration is"
                " disabled.",
            )

    # -- and back

    def downgrades(self, group: ConsumerGroup, gone: Collection[str], coming: int = 0) -> bool:
        """Return whether the group has to be downgraded once these are removed, and `coming` others have joined."""
        left = len(group.members) - len(gone) + coming
        return (
            group.only_classic_without(gone)
            and 0 < left <= self._max_classic
            and self._policy in _DOWNGRADES
        )  # fmt: skip

    def downgraded(
        self, group: ConsumerGroup, gone: Collection[str], joins: ConsumerMember | None = None, *, rebalance: bool
    ) -> tuple[ClassicGroup, list[Entry]]:
        """Return the classic group that remains. A joining member gets the assignment of the one it replaces.

        Where a rebalance follows, the group has no leader: a coordinator that loads the log sees that, too.
        """
        made = ClassicGroup(group.id, self._now_ms())
        made.generation = group.epoch
        members = [member for member in group.members.values() if member.id not in gone]
        for member in members if joins is None else [*members, joins]:
            made.add(_classic(group.id, member))
        made.protocol_type = CONSUMER
        made.protocol = made.choose_protocol()
        made.state = made.previous = State.STABLE
        for one in made.members.values():
            heir_of = group.members[next(iter(gone)) if joins is not None and one.id == joins.id else one.id]
            version = read_subscription(one.metadata(made.protocol)).version
            # Not its target, as in Kafka: if the group were upgraded again before the next request of this member, its
            # partitions would be given to another.
            one.assignment = assignment_value(version, self._targets.named(heir_of.assigned | heir_of.revoking))
        assignments = {member.id: member.assignment for member in made.members.values()}
        if rebalance:
            made.leader = None
        said = (classic_records.group_key(group.id), classic_records.group_value(made, assignments))
        return made, [*consumer_records.tombstones(group), said]


def _classic(group_id: str, member: ConsumerMember) -> Member:
    assert member.classic is not None
    asked = Joining(
        member.id, member.instance_id, member.client_id, member.client_host, member.classic.session_timeout,
        member.rebalance_timeout, CONSUMER, member.classic.protocols,
    )  # fmt: skip
    return Member(group_id, member.id, asked)


def _cannot_upgrade(group: ClassicGroup, why: str) -> ApiError:
    return ApiError(
        ErrorCode.group_id_not_found, f"Cannot upgrade classic group {group.id} to consumer group because {why}."
    )
