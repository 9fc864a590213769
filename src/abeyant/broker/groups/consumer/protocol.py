"""The consumer protocol (KIP-848): members send heartbeats only. Kafka: `GroupMetadataManager`.

With heartbeats a member joins, changes its subscription, reports the partitions that it owns, and leaves; the response
has its assignment. Each change is a list of records, whose replay after the write changes the group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from abeyant.broker.coordinator.shard import Entry, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer import patterns, records
from abeyant.broker.groups.consumer.assignors import NOTHING, Assignment
from abeyant.broker.groups.consumer.deadlines import DeadlineKind, Deadlines
from abeyant.broker.groups.consumer.group import (
    LEAVES_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Resolved,
    fenced_instance,
    reconcile,
)
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.consumer.targets import MayDescribe, Subscribed, Targets
    from abeyant.broker.groups.sessions import Sessions
    from abeyant.broker.groups.waits import Waits

Then = Callable[[ErrorCode], object]
_JOINS = 0  # the epoch that a joining member sends


def _any_topic(_: str) -> bool:
    return True


class HeartbeatRequest(NamedTuple):
    """A ConsumerGroupHeartbeat, independent of its version. None means unchanged. Times are in ms."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None
    client_id: str = ""
    client_host: str = ""
    may_describe: MayDescribe = _any_topic
    """Returns whether the member may describe a topic, so that its pattern may match the topic."""

    @property
    def is_full(self) -> bool:
        """Return whether all fields are set, so that the response always has the assignment."""
        subscribes = self.topics is not None or self.regex is not None
        return self.epoch == _JOINS or (self.rebalance_timeout >= 0 and subscribes and self.owned is not None)


class HeartbeatResponse(NamedTuple):
    """The response to a ConsumerGroupHeartbeat."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    assignment: Assignment | None = None
    """The member's partitions; None if unchanged."""


OnHeartbeat = Callable[[HeartbeatResponse], object]


Write = Callable[[Sequence[Entry], Then], None]
"""Writes and replays records, then calls back with the result."""


class ConsumerProtocol:
    """The consumer protocol, for the groups of one shard. Use from the loop's thread only."""

    def __init__(
        self,
        waits: Waits,
        sessions: Sessions,
        targets: Targets,
        groups: Mapping[str, ConsumerGroup],
        write: Write,
        downgrade: Callable[[ConsumerGroup, Collection[str], Then], bool],
        session_timeout: Callable[[str], float],
        may_assign: Callable[[ConsumerGroup], bool],
        *,
        max_size: int,
    ) -> None:
        """`groups` are the shard's groups by id; `session_timeout` returns a group's session time-out in seconds.

        `may_assign` returns whether a group may get a new target assignment now; if not, a later heartbeat computes the
        target. `downgrade` downgrades a group if removing these members requires it, and returns whether it did.
        """
        self._sessions = sessions
        self.targets = targets
        self._groups = groups
        self.write = write
        self._downgrade = downgrade
        self._session_timeout = session_timeout
        self._may_assign = may_assign
        self.max_size = max_size
        self.deadlines = Deadlines(waits, self.expire)

    # -- members that join or stay

    def heartbeat(
        self,
        group: ConsumerGroup,
        request: HeartbeatRequest,
        then: OnHeartbeat,
        first: Sequence[Entry] = (),
    ) -> None:
        """Handle a heartbeat: move the member a step towards its target. Raises ApiError, and changes nothing then.

        `first` are records that convert a classic group; they are written before the records of the heartbeat.
        """
        entries = list(first)
        before, target = self._find_member(group, request, entries)
        member = _update(before, request)
        owned = NOTHING if request.epoch == _JOINS else request.owned
        after, topics = self.advance(
            group, before, member, target, owned, entries, replaced=_replaced(group, request),
            may_describe=request.may_describe,
        )  # fmt: skip
        assignment = after.assigned if request.is_full or after.assigned != before.assigned else None
        response = HeartbeatResponse(ErrorCode.none, None, member.id, after.epoch, assignment)
        if not entries:
            then(response)
        else:
            self.write(entries, _when_written(then, response))
        self.settle(group.id, member.id, topics)

    def advance(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        target: Assignment | None,
        owned: Assignment | None,
        entries: list[Entry],
        *,
        replaced: str = "",
        may_describe: MayDescribe | None = None,
    ) -> tuple[ConsumerMember, Subscribed]:
        """Return the member after its next step, and the group's topics. Add the records of changes to `entries`.

        `before` and `member` are the member without and with the fields of its heartbeat. `target` is None if the
        member has no target, `owned` is None if the heartbeat does not list partitions. `replaced` is the id of the
        static member that this member replaces. Without `may_describe`, patterns keep the topics that they have.
        """
        if member.id not in group.members or member != before:
            entries.append(records.member(group.id, member))
        subscriptions = group.subscribed_with(member, replaced)
        resolved: Mapping[str, Resolved] = group.resolved
        if may_describe is not None:
            resolved = self.targets.resolve(group, subscriptions, may_describe)
            entries += records.resolved_changes(group, resolved)
        topics = self.targets.find_topics(subscriptions, resolved)
        epoch, target_epoch = group.epoch, group.target_epoch
        resubscribed = member.subscription != before.subscription
        joins = member.id not in group.members and target is None
        if resubscribed or joins or topics != group.topics or group.matches_others(resolved):
            epoch += 1
            entries.append(records.group(group.id, epoch))
        if epoch > target_epoch and self._may_assign(group):
            members = {**group.members, member.id: member}
            members.pop(replaced, None)
            target = self.targets.compute(group, members, topics, epoch, entries, resolved)[member.id]
            target_epoch = epoch
        owners = group.owners
        if replaced:
            owners = {partition: owner for partition, owner in owners.items() if owner != replaced}
        after = reconcile(member, owned, target or NOTHING, target_epoch, owners)
        if after != member:
            entries.append(records.current(group.id, after))
        return after, topics

    def settle(self, group_id: str, member_id: str, topics: Subscribed) -> None:
        """Set the group's topics and restart the member's session; for a non-member, only stop its deadlines."""
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            self.deadlines.done(group_id, member_id, *DeadlineKind)
            return
        group.topics = topics
        self.watch(group, member)

    def catch_up(self, group: ConsumerGroup) -> None:
        """Compute the target of the group's epoch, if no heartbeat of a consumer member has computed it."""
        if group.epoch > group.target_epoch:
            topics = self.targets.find_topics(group.subscriptions, group.resolved)
            entries: list[Entry] = []
            self.targets.compute(group, group.members, topics, group.epoch, entries, group.resolved)
            self.write(entries, ignore)
            group.topics = topics

    def _find_member(
        self, group: ConsumerGroup, request: HeartbeatRequest, entries: list[Entry]
    ) -> tuple[ConsumerMember, Assignment | None]:
        """Return the member and its target, or create the member. Raises ApiError."""
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            current = group.static.get(request.instance_id)
            if current is not None and current != request.member_id:
                return self._replace_static(group, group.members[current], request, entries)
            if request.epoch != _JOINS and current is None:
                raise ApiError(ErrorCode.unknown_member_id, f"Instance id {request.instance_id} is unknown.")
        if request.epoch == _JOINS:
            if member is None:
                if len(group.members) >= self.max_size:
                    raise ApiError(
                        ErrorCode.group_max_size_reached,
                        f"The consumer group has reached its maximum capacity of {self.max_size} members.",
                    )
                return ConsumerMember(request.member_id), None
            return member.rejoin(member.id), group.target.get(member.id)
        member = group.require(request.member_id)
        lost = request.epoch == member.previous_epoch and request.owned is not None and request.owned <= member.assigned
        if request.epoch != member.epoch and not lost:  # lost: the last response did not arrive
            size = "larger" if request.epoch > member.epoch else "smaller"
            raise ApiError(
                ErrorCode.fenced_member_epoch,
                f"The consumer group member has a {size} member epoch ({request.epoch}) than the one known by the group"
                f" coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
            )
        return member, group.target.get(member.id)

    def _replace_static(
        self, group: ConsumerGroup, old: ConsumerMember, request: HeartbeatRequest, entries: list[Entry]
    ) -> tuple[ConsumerMember, Assignment | None]:
        """Replace a restarted static member, which keeps its assignment."""
        if request.epoch != _JOINS:
            raise fenced_instance(request.instance_id)
        if old.epoch != LEAVES_FOR_A_WHILE and old.classic is None:
            raise ApiError(
                ErrorCode.unreleased_instance_id,
                f"Static member {request.member_id} with instance id {request.instance_id} cannot join the group"
                f" because the instance id is owned by member {old.id} that is still active.",
            )
        return self.replace(group, old, request.member_id, entries)

    def replace(
        self, group: ConsumerGroup, old: ConsumerMember, new_id: str, entries: list[Entry]
    ) -> tuple[ConsumerMember, Assignment]:
        """Return a new member that takes over the target of `old`, and this target. Add the records to `entries`."""
        entries += records.member_tombstones(group.id, old.id)
        target = group.target.get(old.id, NOTHING)
        entries.append(records.target_of_member(group.id, new_id, target))
        self.unwatch(group.id, old.id)
        return old.rejoin(new_id), target

    # -- members that leave or expire

    def leave(self, group: ConsumerGroup, request: HeartbeatRequest, then: OnHeartbeat) -> None:
        """Remove a member. A static member may leave temporarily. Raises ApiError."""
        if _replaced(group, request):
            raise fenced_instance(request.instance_id)
        member = group.require(request.member_id)
        callback = _when_written(then, HeartbeatResponse(ErrorCode.none, None, member.id, request.epoch))
        if request.epoch == LEAVES_FOR_A_WHILE:
            absent = member._replace(epoch=LEAVES_FOR_A_WHILE, revoking=NOTHING)
            self.write([records.current(group.id, absent)], callback)
            self.deadlines.done(group.id, member.id, *DeadlineKind)
        else:
            self.fence(group, [member.id], callback)

    def expire(self, group_id: str, member_id: str) -> None:
        """Remove a member whose session or deadline expired."""
        group = self._groups.get(group_id)
        if group is not None and member_id in group.members:
            self.fence(group, [member_id], ignore)

    def fence(self, group: ConsumerGroup, gone: Collection[str], then: Then) -> None:
        """Remove the members `gone`. Their partitions go to the other members."""
        if self._downgrade(group, gone, then):
            return
        entries: list[Entry] = []
        for member_id in gone:
            self.unwatch(group.id, member_id)
            entries += records.member_tombstones(group.id, member_id)
        regexes = {member.regex for member in group.members.values() if member.id not in gone}
        entries += [records.regex_tombstone(group.id, regex) for regex in group.resolved if regex not in regexes]
        entries.append(records.group(group.id, group.epoch + 1))
        self.write(entries, then)

    # -- time

    def resume(self, group: ConsumerGroup) -> None:
        """Start the sessions of a group that was loaded from the log or upgraded."""
        # Topics may have been created meanwhile: the next heartbeat resolves the patterns anew.
        group.resolved = {regex: resolution._replace(version=-1) for regex, resolution in group.resolved.items()}
        if group.epoch == group.target_epoch:
            group.topics = self.targets.find_topics(group.subscriptions, group.resolved)
        for member in group.members.values():
            self.watch(group, member)

    def end(self, group: ConsumerGroup) -> None:
        """Stop the sessions and deadlines of a group that another broker coordinates now, and remove its members."""
        for member_id in list(group.members):
            self.unwatch(group.id, member_id)
            group.remove(member_id)

    def watch(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Restart a member's session, and start or stop its deadline to revoke partitions."""
        classic = member.classic
        seconds = classic.session_timeout / 1000 if classic else self._session_timeout(group.id)
        self._sessions.touch(group.id, member.id, member.client_id, seconds)
        if member.state is MemberState.UNREVOKED and classic is None:
            self.deadlines.start(group.id, member, DeadlineKind.REVOKE, member.epoch)
        else:
            self.deadlines.done(group.id, member.id, DeadlineKind.REVOKE)

    def unwatch(self, group_id: str, member_id: str) -> None:
        """Stop a member's session and deadlines."""
        self.deadlines.done(group_id, member_id, *DeadlineKind)
        self._sessions.end(group_id, member_id)


def _when_written(then: OnHeartbeat, response: HeartbeatResponse) -> Then:
    """Return a callback that passes on the response, or the error of the write."""
    return lambda error: then(response if error is ErrorCode.none else HeartbeatResponse(error))


def _update(member: ConsumerMember, request: HeartbeatRequest) -> ConsumerMember:
    """Return the member with the fields that the heartbeat sets. Raises ApiError for an invalid pattern."""
    regex = member.regex if request.regex is None else request.regex
    if regex:
        try:
            patterns.check(regex)
        except patterns.PatternError as error:
            raise ApiError(
                ErrorCode.invalid_regular_expression,
                f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
            ) from None
    return member._replace(
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=member.topics if request.topics is None else tuple(sorted(set(request.topics))),
        regex=regex,
        rebalance_timeout=member.rebalance_timeout if request.rebalance_timeout < 0 else request.rebalance_timeout,
        assignor=request.assignor or member.assignor,
        classic=None,
    )


def _replaced(group: ConsumerGroup, request: HeartbeatRequest) -> str:
    """Return the id of the static member that the heartbeat's sender replaces; "" for none."""
    current = "" if request.instance_id is None else group.static.get(request.instance_id, "")
    return "" if current == request.member_id else current
