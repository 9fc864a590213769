"""Translate the requests of classic members in a consumer group to the consumer protocol.

Kafka: `classicGroupJoinToConsumerGroup`. A JoinGroup is handled as a heartbeat with all fields, and answered at once:
the generation is the member epoch, and there is no leader. A SyncGroup returns the member's assignment. A Heartbeat
returns REBALANCE_IN_PROGRESS when the member has a new target, has to revoke partitions, or can get free partitions.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.member import JoinRequest, JoinResponse, OnJoin, OnSync, SyncResponse
from abeyant.broker.groups.consumer.assignors import Assignment
from abeyant.broker.groups.consumer.deadlines import DeadlineKind
from abeyant.broker.groups.consumer.group import Classic, ConsumerGroup, ConsumerMember, MemberState
from abeyant.broker.groups.subscription import CONSUMER, assignment_value, read_subscription
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.shard import Entry
    from abeyant.broker.groups.consumer.protocol import ConsumerProtocol
    from abeyant.broker.groups.migration.conversion import Migration

Identity = tuple[str, str | None]
"""A member id and an instance id."""

_JOIN_AGAIN = ErrorCode.rebalance_in_progress


class ClassicInConsumerGroup:
    """The classic protocol for classic members of one shard's consumer groups. Use from the loop's thread only."""

    def __init__(self, protocol: ConsumerProtocol, migration: Migration, downgrade: Callable[..., object]) -> None:
        """`downgrade` converts a group to a classic group: see `GroupShard._downgrade`."""
        self._protocol = protocol
        self._migration = migration
        self._downgrade = downgrade

    # -- JoinGroup

    def join(self, group: ConsumerGroup, request: JoinRequest, then: OnJoin) -> None:
        """Handle a JoinGroup of a classic member: call `then` with the response."""
        try:
            self._join(group, request, then)
        except ApiError as error:
            then(JoinResponse(error.code, ""))

    def _join(self, group: ConsumerGroup, request: JoinRequest, then: OnJoin) -> None:
        self._migration.require_may_join(group)
        member_id = request.member_id or str(uuid.uuid4())
        if len(group.members) >= self._protocol.max_size and request.member_id not in group.members:
            raise ApiError(ErrorCode.group_max_size_reached)
        if not group.supports(request.protocol_type, [name for name, _ in request.protocols]):
            raise ApiError(ErrorCode.inconsistent_group_protocol)
        if not request.member_id and request.instance_id is None and request.needs_id:
            then(JoinResponse(ErrorCode.member_id_required, member_id))
            return
        entries: list[Entry] = []
        old, before, target = self._find_member(group, request, member_id, entries)
        replaced = "" if old is None else old.id
        try:
            member, owned = self._update(before, request)
        except ValueError:
            raise ApiError(ErrorCode.unknown_server_error) from None  # as Kafka for other metadata than a consumer's
        downgrades = old is not None and self._migration.downgrades(group, [old.id], coming=1)
        after, topics = self._protocol.advance(group, before, member, target, owned, entries, replaced=replaced)
        stale = downgrades and after.epoch > group.target_epoch  # a rebalance follows, which the member has to join
        epoch = member.epoch if stale else after.epoch
        response = JoinResponse(ErrorCode.none, member_id, epoch, CONSUMER, request.protocols[0][0])

        def written(error: ErrorCode) -> None:
            then(response if error is ErrorCode.none else JoinResponse(error, ""))

        if downgrades:
            self._downgrade(group, [replaced], written, after, rebalance=stale)
            return
        if entries:
            self._protocol.write(entries, written)
        else:
            written(ErrorCode.none)
        self._protocol.settle(group.id, member_id, topics)
        if member_id in group.members:
            self._protocol.deadlines.done(group.id, member_id, DeadlineKind.JOIN)
            self._protocol.deadlines.start(group.id, group.members[member_id], DeadlineKind.SYNC, object())

    def _find_member(
        self, group: ConsumerGroup, request: JoinRequest, member_id: str, entries: list[Entry]
    ) -> tuple[ConsumerMember | None, ConsumerMember, Assignment | None]:
        """Return the replaced static member or None, the joining member, and its target. Raises ApiError."""
        if request.instance_id is not None:
            if request.member_id:
                member = group.require_instance(member_id, request.instance_id)
                return None, member, group.target.get(member.id)
            if request.instance_id in group.static:
                old = group.members[group.static[request.instance_id]]
                return old, *self._protocol.replace(group, old, member_id, entries)
        existing = group.members.get(member_id)
        return None, existing or ConsumerMember(member_id), group.target.get(member_id)

    def _update(self, member: ConsumerMember, request: JoinRequest) -> tuple[ConsumerMember, Assignment]:
        """Return the member with its new metadata, and the partitions that it reports as owned. Raises ValueError."""
        subscription = read_subscription(request.protocols[0][1])
        updated = member._replace(
            instance_id=request.instance_id or member.instance_id, rack_id=subscription.rack_id or member.rack_id,
            client_id=request.client_id, client_host=request.client_host,
            topics=tuple(sorted(set(subscription.topics))), regex=None, rebalance_timeout=request.rebalance_timeout,
            classic=Classic(request.session_timeout, request.protocols),
        )  # fmt: skip
        return updated, self._protocol.targets.to_ids(subscription.owned)

    # -- SyncGroup and Heartbeat

    def sync(
        self,
        group: ConsumerGroup,
        identity: Identity,
        generation: int,
        protocols: tuple[str | None, str | None],
        then: OnSync,
    ) -> None:
        """Handle a SyncGroup. `protocols` are the protocol's type and name, None if not sent. Raises ApiError."""
        member, classic = self._require(group, identity, generation)
        (name, metadata), *_ = classic.protocols
        if protocols[0] not in (None, CONSUMER) or protocols[1] not in (None, name):
            raise ApiError(ErrorCode.inconsistent_group_protocol)
        self._protocol.catch_up(group)
        if member.epoch < group.target_epoch and member.state is not MemberState.UNREVOKED:
            self._protocol.deadlines.start(group.id, member, DeadlineKind.JOIN, _JOIN_AGAIN)
            raise ApiError(_JOIN_AGAIN)
        self._protocol.deadlines.done(group.id, member.id, DeadlineKind.SYNC)
        self._protocol.watch(group, member)
        assignment = assignment_value(
            read_subscription(metadata).version, self._protocol.targets.to_names(member.assigned)
        )
        then(SyncResponse(ErrorCode.none, *protocols, assignment))

    def heartbeat(self, group: ConsumerGroup, identity: Identity, generation: int) -> None:
        """Restart a member's session. Raises ApiError: REBALANCE_IN_PROGRESS if it has to rejoin."""
        member, _ = self._require(group, identity, generation)
        self._protocol.watch(group, member)
        self._protocol.catch_up(group)
        if (
            member.epoch < group.target_epoch
            or member.state is MemberState.UNREVOKED
            or (member.state is MemberState.UNRELEASED and not group.awaits_others(member))
        ):
            self._protocol.deadlines.start(group.id, member, DeadlineKind.JOIN, _JOIN_AGAIN)
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
        """Remove members of either protocol in one change. Static members may be named by their instance ids."""
        errors: list[ErrorCode] = []
        member_ids: list[str] = []
        for member_id, instance_id in identities:
            try:
                member = group.require_instance(member_id, instance_id)
            except ApiError as error:
                errors.append(error.code)
                continue
            errors.append(ErrorCode.none)
            if member.id not in member_ids:
                member_ids.append(member.id)
        if not member_ids:
            then(errors)
            return

        def written(error: ErrorCode) -> None:
            then([error if code is ErrorCode.none else code for code in errors])

        self._protocol.fence(group, member_ids, written)
