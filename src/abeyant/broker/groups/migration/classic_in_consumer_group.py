"""Classic members in a consumer group: their requests are translated to the consumer protocol.

Kafka: `classicGroupJoinToConsumerGroup`. A JoinGroup is a heartbeat with all fields, and is answered at once: the
generation is the member epoch, and there is no leader. A SyncGroup returns the member's assignment. A Heartbeat is
answered with REBALANCE_IN_PROGRESS for a new target, or once the member or others have revoked partitions.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.member import Joined, Joining, Synced
from abeyant.broker.groups.consumer.assignors import Assignment
from abeyant.broker.groups.consumer.deadlines import Duty
from abeyant.broker.groups.consumer.group import Classic, ConsumerGroup, ConsumerMember, MemberState
from abeyant.broker.groups.subscription import CONSUMER, assignment_value, read_subscription
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry
    from abeyant.broker.groups.consumer.protocol import ConsumerProtocol, Then
    from abeyant.broker.groups.consumer.targets import Targets
    from abeyant.broker.groups.migration.conversion import Migration

Identity = tuple[str, str | None]
"""A member's id and its instance id."""

_JOIN_AGAIN = ErrorCode.rebalance_in_progress


class Groups(Protocol):
    """The shard that keeps groups and writes them to the log."""

    def keep(self, entries: Sequence[Entry], then: Then) -> None:
        """Write and replay records; call back with the result."""

    def replaced(
        self, group: ConsumerGroup, old_id: str, joins: ConsumerMember, then: Then, *, rebalance: bool
    ) -> None:
        """Downgrade the group, with a classic member that replaces its last consumer member."""


class ClassicInConsumerGroup:
    """Serves classic members of one shard's consumer groups. Use from the loop's thread only."""

    def __init__(
        self, groups: Groups, consuming: ConsumerProtocol, migration: Migration, targets: Targets, *, max_size: int
    ) -> None:
        self._groups = groups
        self._consuming = consuming
        self._migration = migration
        self._targets = targets
        self._max_size = max_size

    # -- JoinGroup

    def join(self, group: ConsumerGroup, joining: Joining, then: Callable[[Joined], object]) -> None:
        """Handle a JoinGroup."""
        try:
            self._join(group, joining, then)
        except ApiError as error:
            then(Joined(error.code, ""))

    def _join(self, group: ConsumerGroup, joining: Joining, then: Callable[[Joined], object]) -> None:
        self._migration.require_may_join(group)
        member_id = joining.member_id or str(uuid.uuid4())
        if len(group.members) >= self._max_size and joining.member_id not in group.members:
            raise ApiError(ErrorCode.group_max_size_reached)
        if not group.supports(joining.protocol_type, [name for name, _ in joining.protocols]):
            raise ApiError(ErrorCode.inconsistent_group_protocol)
        if not joining.member_id and joining.instance_id is None and joining.needs_id:
            then(Joined(ErrorCode.member_id_required, member_id))
            return
        entries: list[Entry] = []
        old, before, target = self._present(group, joining, member_id, entries)
        replaced = "" if old is None else old.id
        try:
            member, owned = self._updated(before, joining)
        except ValueError:
            raise ApiError(ErrorCode.unknown_server_error) from None  # Kafka's error for metadata that is no consumer's
        downgrades = old is not None and self._migration.downgrades(group, [old.id], coming=1)
        after, topics = self._consuming.advance(group, before, member, target, owned, entries, replaced=replaced)
        stale = downgrades and after.epoch > group.target_epoch  # there will be a rebalance, and this is not in it yet
        epoch = member.epoch if stale else after.epoch
        answer = Joined(ErrorCode.none, member_id, epoch, CONSUMER, joining.protocols[0][0])

        def written(error: ErrorCode) -> None:
            then(answer if error is ErrorCode.none else Joined(error, ""))

        if downgrades:
            self._groups.replaced(group, replaced, after, written, rebalance=stale)
            return
        if entries:
            self._groups.keep(entries, written)
        else:
            written(ErrorCode.none)
        self._consuming.settle(group.id, member_id, topics)
        if member_id in group.members:
            self._consuming.deadlines.done(group.id, member_id, Duty.JOIN)
            self._consuming.deadlines.start(group.id, group.members[member_id], Duty.SYNC, object())

    def _present(
        self, group: ConsumerGroup, joining: Joining, member_id: str, entries: list[Entry]
    ) -> tuple[ConsumerMember | None, ConsumerMember, Assignment | None]:
        """Return the member that is replaced, the member itself, and its target. Raises ApiError."""
        if joining.instance_id is not None:
            if joining.member_id:
                member = group.require_instance(member_id, joining.instance_id)
                return None, member, group.target.get(member.id)
            if joining.instance_id in group.static:
                old = group.members[group.static[joining.instance_id]]
                return old, *self._consuming.take_place(group, old, member_id, entries)
        known = group.members.get(member_id)
        return None, known or ConsumerMember(member_id), group.target.get(member_id)

    def _updated(self, member: ConsumerMember, joining: Joining) -> tuple[ConsumerMember, Assignment]:
        """Return the member with its new metadata, and the partitions that it lists as owned. Raises ValueError."""
        said = read_subscription(joining.protocols[0][1])
        told = member._replace(
            instance_id=joining.instance_id or member.instance_id,
            rack_id=said.rack_id or member.rack_id,
            client_id=joining.client_id,
            client_host=joining.client_host,
            topics=tuple(sorted(set(said.topics))),
            regex=None,
            rebalance_timeout=joining.rebalance_timeout,
            classic=Classic(joining.session_timeout, joining.protocols),
        )
        return told, self._targets.identified(said.owned)

    # -- SyncGroup and Heartbeat

    def sync(
        self,
        group: ConsumerGroup,
        identity: Identity,
        generation: int,
        protocols: tuple[str | None, str | None],
        then: Callable[[Synced], object],
    ) -> None:
        """Handle a SyncGroup. `protocols` are type and name, where it has them. Raises ApiError."""
        member, told = self._require(group, identity, generation)
        mine = (CONSUMER, told.protocols[0][0])
        if any(given not in (None, present) for given, present in zip(protocols, mine, strict=True)):
            raise ApiError(ErrorCode.inconsistent_group_protocol)
        self._consuming.catch_up(group)
        if member.epoch < group.target_epoch and member.state is not MemberState.UNREVOKED:
            self._consuming.deadlines.start(group.id, member, Duty.JOIN, _JOIN_AGAIN)
            raise ApiError(_JOIN_AGAIN)
        self._consuming.deadlines.done(group.id, member.id, Duty.SYNC)
        self._consuming.watch(group, member)
        version = read_subscription(told.protocols[0][1]).version
        assignment = assignment_value(version, self._targets.named(member.assigned))
        then(Synced(ErrorCode.none, *protocols, assignment))

    def heartbeat(self, group: ConsumerGroup, identity: Identity, generation: int) -> None:
        """Keep a member's session. Raises ApiError, REBALANCE_IN_PROGRESS when it has to join again."""
        member, _ = self._require(group, identity, generation)
        self._consuming.watch(group, member)
        self._consuming.catch_up(group)
        if (
            member.epoch < group.target_epoch
            or member.state is MemberState.UNREVOKED
            or (member.state is MemberState.UNRELEASED and not group.awaits_others(member))
        ):
            self._consuming.deadlines.start(group.id, member, Duty.JOIN, _JOIN_AGAIN)
            raise ApiError(_JOIN_AGAIN)

    def _require(self, group: ConsumerGroup, identity: Identity, generation: int) -> tuple[ConsumerMember, Classic]:
        """Return a classic member and its metadata. Raises ApiError."""
        member_id, instance_id = identity
        member = group.require_instance(member_id, instance_id)
        if instance_id is not None and member.id != member_id:
            raise ApiError(ErrorCode.fenced_instance_id)
        if member.classic is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Member {member.id} does not use the classic protocol.")
        group.require_epoch(member, generation)
        return member, member.classic

    # -- LeaveGroup

    def leave(
        self, group: ConsumerGroup, identities: Sequence[Identity], then: Callable[[list[ErrorCode]], object]
    ) -> None:
        """Remove members of either protocol in one step; static ones may be named by their instance ids."""
        errors: list[ErrorCode] = []
        gone: list[str] = []
        for member_id, instance_id in identities:
            try:
                member = group.require_instance(member_id, instance_id)
            except ApiError as error:
                errors.append(error.code)
                continue
            errors.append(ErrorCode.none)
            if member.id not in gone:
                gone.append(member.id)
        if not gone:
            then(errors)
            return

        def written(error: ErrorCode) -> None:
            then([error if known is ErrorCode.none else known for known in errors])

        self._consuming.fence(group, gone, written)
