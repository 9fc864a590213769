"""The new protocol (KIP-848): a heartbeat says all, and brings all. Kafka: `GroupMetadataManager`.

A heartbeat is answered with what follows from it: the member joins, changes what it subscribes to, says what it has
given back. What changes is a list of records; they are written, and the group is changed by their replay.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from abeyance.broker.errors import ApiError
from abeyance.broker.groups import consumer_records as records
from abeyance.broker.groups.assignors import ASSIGNORS, NOTHING, Assignment
from abeyance.broker.groups.consumer import LEAVES_FOR_A_WHILE, ConsumerGroup, ConsumerMember, MemberState, reconciled
from abeyance.broker.groups.member import Session
from abeyance.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyance.broker.coordinator.shard import Entry
    from abeyance.broker.groups.waits import Waits
    from abeyance.broker.partition_state import Topic

_JOINS = 0  # the epoch with which a member joins


class Beat(NamedTuple):
    """A ConsumerGroupHeartbeat, as the protocol sees it. What is None has not changed. Times in ms."""

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

    @property
    def whole(self) -> bool:
        """Whether it tells everything: then it is told everything."""
        told = self.topics is not None or self.regex is not None
        return self.epoch == _JOINS or (self.rebalance_timeout >= 0 and told and self.owned is not None)


class Beaten(NamedTuple):
    """The answer to one."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    assignment: Assignment | None = None
    """What the member has now, where that is news."""


class Consuming:
    """The protocol, for the groups of one shard. Use from the loop's thread only."""

    def __init__(
        self,
        waits: Waits,
        write: Callable[[list[Entry], Callable[[ErrorCode], object]], object],
        topics: Callable[[], Mapping[str, Topic]],
        *,
        session: float,
        max_size: int,
    ) -> None:
        """`topics`: those that there are now, by name; `session` in seconds."""
        self._waits = waits
        self._write = write
        self._topics = topics
        self._session = session
        self._max_size = max_size
        self._sessions: dict[tuple[str, str], Session] = {}

    # -- a member that is there, or joins

    def heartbeat(self, group: ConsumerGroup, beat: Beat, then: Callable[[Beaten], object]) -> None:
        """Take a member one step on, and tell it where it is. Raises ApiError: then nothing has changed."""
        entries: list[Entry] = []
        before, target = self._present(group, beat, entries)
        member = _updated(before, beat)
        news = member.id not in group.members or _differs(member, before)
        if news:
            entries.append((records.key(records.MEMBER, group.id, member.id), records.member_value(member)))
        members = {**group.members, member.id: member}
        members.pop(_replaced(group, beat), None)
        topics = self._subscribed(members)
        epoch, target_epoch = group.epoch, group.target_epoch
        changed = _differs(member, before) or (member.id not in group.members and target is None)
        if changed or topics != group.topics:
            epoch += 1
            entries.append((records.key(records.GROUP, group.id), records.epoch_value(epoch)))
        if epoch > target_epoch:
            target = self._aim(group, members, topics, epoch, entries)[member.id]
            target_epoch = epoch
        owners = {part: owner for part, owner in group.owners.items() if owner != _replaced(group, beat)}
        owned = NOTHING if beat.epoch == _JOINS else beat.owned
        after = reconciled(member, owned, target or NOTHING, target_epoch, owners)
        if after != before:
            entries.append((records.key(records.CURRENT, group.id, member.id), records.current_value(after)))
        tell = beat.whole or after.assigned != before.assigned
        answer = Beaten(ErrorCode.none, None, member.id, after.epoch, after.assigned if tell else None)
        if not entries:
            then(answer)
        else:
            self._write(entries, lambda error: then(answer if error is ErrorCode.none else Beaten(error)))
        self.check(group, member.id)
        if member.id in group.members:
            group.topics = topics
            self._watch(group, group.members[member.id])

    def _present(
        self, group: ConsumerGroup, beat: Beat, entries: list[Entry]
    ) -> tuple[ConsumerMember, Assignment | None]:
        """The member as it is, and its target. Raises ApiError."""
        member = group.members.get(beat.member_id)
        if beat.instance_id is not None:
            present = group.static.get(beat.instance_id)
            if present is not None and present != beat.member_id:
                return self._in_place(group, group.members[present], beat, entries)
            if beat.epoch != _JOINS and present is None:
                raise ApiError(ErrorCode.unknown_member_id, f"Instance id {beat.instance_id} is unknown.")
        if beat.epoch == _JOINS:
            if member is None:
                if len(group.members) >= self._max_size:
                    raise ApiError(
                        ErrorCode.group_max_size_reached,
                        f"The consumer group has reached its maximum capacity of {self._max_size} members.",
                    )
                return ConsumerMember(beat.member_id), None
            rejoined = member._replace(
                epoch=0, previous_epoch=-1, state=MemberState.STABLE, assigned=NOTHING, revoking=NOTHING
            )
            return rejoined, group.target.get(member.id)
        member = group.require(beat.member_id)
        lost = beat.epoch == member.previous_epoch and beat.owned is not None and beat.owned <= member.assigned
        if beat.epoch != member.epoch and not lost:  # an answer to it may have been lost
            size = "larger" if beat.epoch > member.epoch else "smaller"
            raise ApiError(
                ErrorCode.fenced_member_epoch,
                f"The consumer group member has a {size} member epoch ({beat.epoch}) than the one known by the group"
                f" coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
            )
        return member, group.target.get(member.id)

    def _in_place(
        self, group: ConsumerGroup, old: ConsumerMember, beat: Beat, entries: list[Entry]
    ) -> tuple[ConsumerMember, Assignment | None]:
        """A static member's process has started anew: it goes on with what waits for it."""
        if beat.epoch != _JOINS:
            raise ApiError(ErrorCode.fenced_instance_id, f"Instance id {beat.instance_id} is another member's now.")
        if old.epoch != LEAVES_FOR_A_WHILE:
            raise ApiError(
                ErrorCode.unreleased_instance_id,
                f"Static member {beat.member_id} with instance id {beat.instance_id} cannot join the group because the"
                f" instance id is owned by member {old.id} that is still active.",
            )
        entries += _tombstones(group, old.id)
        target = group.target.get(old.id, NOTHING)
        entries.append((records.key(records.TARGET_OF_MEMBER, group.id, beat.member_id), records.target_value(target)))
        self._unwatch(group, old.id)
        fresh = old._replace(
            id=beat.member_id, epoch=0, previous_epoch=-1, state=MemberState.STABLE, assigned=NOTHING, revoking=NOTHING
        )
        return fresh, target

    # -- the target

    def _subscribed(self, members: Mapping[str, ConsumerMember]) -> dict[str, tuple[object, int]]:
        """The topics that are subscribed to and there, with their ids and how many partitions they have."""
        present = self._topics()
        names = {name for member in members.values() for name in self._names(member)}
        return {name: (present[name].id, len(present[name].partitions)) for name in sorted(names) if name in present}

    def _names(self, member: ConsumerMember) -> set[str]:
        """What a member subscribes to, by name and by what names look like."""
        names = set(member.topics)
        if member.regex:
            pattern = re.compile(member.regex)
            names.update(
                name for name, topic in self._topics().items() if not topic.internal and pattern.fullmatch(name)
            )
        return names

    def _aim(
        self,
        group: ConsumerGroup,
        members: dict[str, ConsumerMember],
        topics: dict[str, tuple[object, int]],
        epoch: int,
        entries: list[Entry],
    ) -> dict[str, Assignment]:
        """Make a target for an epoch."""
        ids: dict[str, uuid.UUID] = {name: self._topics()[name].id for name in topics}
        subscribed = {
            member.id: frozenset(ids[name] for name in self._names(member) if name in ids)
            for member in members.values()
        }
        chosen = [member.assignor for member in members.values() if member.assignor is not None]
        name = max(sorted(set(chosen)), key=chosen.count) if chosen else next(iter(ASSIGNORS))
        counts = {ids[topic]: count for topic, (_, count) in topics.items()}
        target = ASSIGNORS[name](subscribed, counts, group.target)
        for member_id, assignment in target.items():
            if group.target.get(member_id) != assignment:
                key = records.key(records.TARGET_OF_MEMBER, group.id, member_id)
                entries.append((key, records.target_value(assignment)))
        entries.append((records.key(records.TARGET, group.id), records.epoch_value(epoch)))
        return target

    # -- a member that leaves, or is silent

    def leave(self, group: ConsumerGroup, beat: Beat, then: Callable[[Beaten], object]) -> None:
        """A member leaves; a static one may do so for a while. Raises ApiError."""
        if beat.instance_id is not None and group.static.get(beat.instance_id, beat.member_id) != beat.member_id:
            raise ApiError(ErrorCode.fenced_instance_id, f"Instance id {beat.instance_id} is another member's now.")
        member = group.require(beat.member_id)
        if beat.epoch == LEAVES_FOR_A_WHILE:
            away = member._replace(epoch=LEAVES_FOR_A_WHILE, revoking=NOTHING)
            entries: list[Entry] = [(records.key(records.CURRENT, group.id, member.id), records.current_value(away))]
        else:
            entries = self._removal(group, member.id)
        answer = Beaten(ErrorCode.none, None, member.id, beat.epoch)
        self._write(entries, lambda error: then(answer if error is ErrorCode.none else Beaten(error)))
        self.check(group, member.id)

    def remove(self, group: ConsumerGroup, member_id: str) -> None:
        """Put a member out: its session is over, or it has not given back what it had to."""
        if member_id in group.members:
            self._write(self._removal(group, member_id), _nothing)
            self.check(group, member_id)

    def _removal(self, group: ConsumerGroup, member_id: str) -> list[Entry]:
        self._unwatch(group, member_id)
        epoch = (records.key(records.GROUP, group.id), records.epoch_value(group.epoch + 1))
        return [*_tombstones(group, member_id), epoch]

    # -- time

    def resume(self, group: ConsumerGroup) -> None:
        """A group has been read from the log: its members' sessions begin."""
        if group.epoch == group.target_epoch:
            group.topics = self._subscribed(group.members)
        for member in group.members.values():
            self._watch(group, member)

    def end(self, group: ConsumerGroup) -> None:
        """This broker does not coordinate it any more."""
        for member_id in list(group.members):
            self._unwatch(group, member_id)
            group.remove(member_id)
            self.check(group, member_id)

    def check(self, group: ConsumerGroup, member_id: str) -> None:
        """Look whether a member has given back what it had to."""
        self._waits.check_member((group.id, member_id))

    def _watch(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        key = (group.id, member.id)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = Session(group.id, member.id, member.client_id)
        self._waits.watch(session, self._session)
        if member.state is not MemberState.UNREVOKED:
            return
        epoch = member.epoch

        def revokes() -> bool:
            known = group.members.get(member.id)
            return known is not None and known.state is MemberState.UNREVOKED and known.epoch == epoch

        self._waits.for_revocation(
            key, member.rebalance_timeout / 1000, member.client_id, revokes, lambda: self.remove(group, member.id)
        )

    def _unwatch(self, group: ConsumerGroup, member_id: str) -> None:
        session = self._sessions.pop((group.id, member_id), None)
        if session is not None:
            self._waits.unwatch(session)


def _updated(member: ConsumerMember, beat: Beat) -> ConsumerMember:
    """With what a heartbeat tells anew."""
    regex = member.regex if beat.regex is None else beat.regex
    if regex:
        try:
            re.compile(regex)
        except re.error as error:
            raise ApiError(
                ErrorCode.invalid_regular_expression,
                f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
            ) from None
    return member._replace(
        instance_id=beat.instance_id or member.instance_id,
        rack_id=beat.rack_id or member.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        topics=member.topics if beat.topics is None else tuple(sorted(set(beat.topics))),
        regex=regex,
        rebalance_timeout=member.rebalance_timeout if beat.rebalance_timeout < 0 else beat.rebalance_timeout,
        assignor=beat.assignor or member.assignor,
    )


def _differs(member: ConsumerMember, before: ConsumerMember) -> bool:
    """Whether it has told something that others have to do with, or has to be written down."""
    return (member.topics, member.regex, member.assignor, member.rack_id, member.rebalance_timeout) != (
        before.topics, before.regex, before.assignor, before.rack_id, before.rebalance_timeout
    )  # fmt: skip


def _replaced(group: ConsumerGroup, beat: Beat) -> str:
    """The id of the member whose place the heartbeat's takes; none, mostly."""
    present = "" if beat.instance_id is None else group.static.get(beat.instance_id, "")
    return "" if present == beat.member_id else present


def _tombstones(group: ConsumerGroup, member_id: str) -> list[Entry]:
    return [
        (records.key(kind, group.id, member_id), None)
        for kind in (records.CURRENT, records.TARGET_OF_MEMBER, records.MEMBER)
    ]


def _nothing(_: ErrorCode) -> None:
    """It could not be written down: the session of the member will end again at the next coordinator."""
