"""A group of the consumer protocol (KIP-848): its members, and how each member reaches its target assignment.

It has no clock. Kafka: `ConsumerGroup`, `CurrentAssignmentBuilder`.

Every change of members, subscriptions or topics bumps the group epoch, and the coordinator computes the target
assignment of that epoch. A member revokes the partitions that are not in its target. Once it confirms, it moves to the
target's epoch and gets partitions that other members have revoked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.assignors import ASSIGNORS, NOTHING, Assignment, Partition
from abeyant.broker.groups.subscription import CONSUMER
from abeyant.broker.wire.schema import ErrorCode

LEAVES = -1
"""The epoch that a leaving member sends."""
LEAVES_FOR_A_WHILE = -2
"""The epoch that a static member sends when it leaves temporarily and keeps its partitions."""


class ConsumerState(Enum):
    """The states of a group, by Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target assignment is older than the group epoch."""
    RECONCILING = "Reconciling"
    """Some members do not have their target assignment yet."""
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(IntEnum):
    """The states of a member, with the numbers that Kafka's records use."""

    STABLE = 0
    UNREVOKED = 1
    """The member has to revoke partitions."""
    UNRELEASED = 2
    """The member waits for partitions that other members have to revoke."""


Subscription = tuple[tuple[str, ...], str | None]
"""Topic names, and a pattern (a regular expression) for more topic names, if any."""

_NEVER: Mapping[Partition, int] = MappingProxyType({})


class Resolved(NamedTuple):
    """The topics that matched a pattern when the pattern was last resolved."""

    topics: frozenset[str]
    version: int
    """The version of the cluster's topics at that time, a number that changes when a topic is created."""
    time: int
    """The time of the resolution, in ms since 1970."""


class Classic(NamedTuple):
    """The metadata of a member that uses the classic protocol. Times are in ms."""

    session_timeout: int
    protocols: tuple[tuple[str, bytes], ...]

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the member's protocols."""
        return frozenset(name for name, _ in self.protocols)


class ConsumerMember(NamedTuple):
    """A member, as its records in the log describe it. Times are in ms."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = None
    """A pattern (a regular expression) for more topic names."""
    rebalance_timeout: int = -1
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NOTHING
    revoking: Assignment = NOTHING
    """The partitions that the member has to revoke."""
    since: Mapping[Partition, int] = _NEVER
    """The epoch in which the member got each partition."""
    classic: Classic | None = None
    """None for a member of the consumer protocol."""

    @property
    def subscription(self) -> Subscription:
        """Return the member's subscription: topic names and a pattern."""
        return self.topics, self.regex

    def rejoin(self, member_id: str) -> ConsumerMember:
        """Return a copy of the member with this id, in epoch 0 and without partitions."""
        return self._replace(
            id=member_id, epoch=0, previous_epoch=-1, state=MemberState.STABLE, assigned=NOTHING, revoking=NOTHING
        )


class ConsumerGroup:
    """A group of the consumer protocol. Only the replay of records changes it: see `records` and `protocol`."""

    type = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        """Create an empty group."""
        self.id = group_id
        self.epoch = 1  # as in Kafka, where the first member bumps it to 2
        self.target_epoch = 0
        self.target_time = 0  # when it was computed, in ms since 1970
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}  # member ids by instance id
        self.subscriptions: Counter[Subscription] = Counter()  # number of members with each
        self.resolved: dict[str, Resolved] = {}  # by pattern
        self.target: dict[str, Assignment] = {}
        self.topics: dict[str, tuple[object, int]] = {}  # topics of the target by name: id and partition count
        self.owners: dict[Partition, str] = {}  # the member that has a partition, or still has to revoke it

    def __repr__(self) -> str:
        return f"<ConsumerGroup {self.id} {self.state.value} of {len(self.members)} in epoch {self.epoch}>"

    @property
    def state(self) -> ConsumerState:
        """Return the group's state. O(members)."""
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerState.ASSIGNING
        settled = all(
            member.state is MemberState.STABLE and member.epoch == self.target_epoch for member in self.members.values()
        )
        return ConsumerState.STABLE if settled else ConsumerState.RECONCILING

    def require(self, member_id: str) -> ConsumerMember:
        """Return a member. Raises ApiError: UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Member {member_id} is not a member of group {self.id}.")
        return member

    def require_instance(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """Return a member by its id, or a static member by its instance id.

        Raises ApiError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the instance id.
        """
        if instance_id is None:
            return self.require(member_id)
        current = self.static.get(instance_id)
        if current is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown.")
        if member_id not in ("", current):
            raise fenced_instance(instance_id)
        return self.members[current]

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether all classic members support one of the classic protocols in `names`. O(members)."""
        protocol_sets = [member.classic.names for member in self.members.values() if member.classic is not None]
        return protocol_type == CONSUMER and any(
            all(name in protocols for protocols in protocol_sets) for name in names
        )

    def only_classic_without(self, gone: Collection[str]) -> bool:
        """Return whether the group has consumer members and `gone` covers all of them. O(members)."""
        consumer_ids = [member.id for member in self.members.values() if member.classic is None]
        return bool(consumer_ids) and all(member_id in gone for member_id in consumer_ids)

    def awaits_others(self, member: ConsumerMember) -> bool:
        """Return whether the member waits for target partitions that other members own. O(target partitions)."""
        missing = self.target.get(member.id, NOTHING) - member.assigned
        return member.state is MemberState.UNRELEASED and any(partition in self.owners for partition in missing)

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic, by name or by a pattern. O(subscriptions)."""
        return any(
            topic in names or (pattern in self.resolved and topic in self.resolved[pattern].topics)
            for names, pattern in self.subscriptions
        )

    def require_may_commit(
        self, member_id: str, epoch: int, partitions: Iterable[Partition], *, transactional: bool, knows_stale: bool
    ) -> None:
        """Raise ApiError unless the client may commit. Kafka: `ConsumerGroup.validateOffsetCommit`.

        An older epoch is valid for partitions that the member has had since then. `knows_stale` is whether the client
        knows the error STALE_MEMBER_EPOCH.
        """
        if epoch < 0 and not self.members:
            return  # a non-member may commit while the group is empty
        if transactional and epoch < 0 and not member_id:
            return
        member = self.require(member_id)
        if member.classic is None and not transactional and not knows_stale:
            raise ApiError(ErrorCode.unsupported_version)
        if epoch > member.epoch or any(epoch < member.since.get(partition, member.epoch) for partition in partitions):
            self.require_epoch(member, epoch)

    def require_epoch(self, member: ConsumerMember, epoch: int) -> None:
        """Raise ApiError unless `epoch` is the member's: STALE_MEMBER_EPOCH, ILLEGAL_GENERATION if it is classic."""
        if epoch != member.epoch:
            code, name = ErrorCode.stale_member_epoch, "member epoch"
            if member.classic is not None:
                code, name = ErrorCode.illegal_generation, "generation id"
            raise ApiError(
                code, f"The received {name} {epoch} does not match the expected member epoch {member.epoch}."
            )

    # -- changes, by replay

    def put(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        self._release(member.id)
        previous = self.members.get(member.id)
        if previous is not None:
            self._remove_subscription(previous)
        self.members[member.id] = member
        self.subscriptions[member.subscription] += 1
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        self.owners.update(dict.fromkeys(member.assigned | member.revoking, member.id))

    def remove(self, member_id: str) -> None:
        """Remove a member."""
        self._release(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._remove_subscription(member)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]

    def subscribed_with(self, member: ConsumerMember, without: str) -> Collection[Subscription]:
        """Return the subscriptions after a put of `member` and a removal of `without`. O(1) if nothing changes."""
        previous = self.members.get(member.id)
        if previous is not None and previous.subscription == member.subscription and without not in self.members:
            return self.subscriptions.keys()
        subscriptions = self.subscriptions.copy()
        subscriptions.subtract(old.subscription for old in (previous, self.members.get(without)) if old is not None)
        subscriptions[member.subscription] += 1
        return (+subscriptions).keys()

    def matches_others(self, resolved: Mapping[str, Resolved]) -> bool:
        """Return whether `resolved` has other topics than the group for a pattern that both have."""
        return any(
            regex in self.resolved and resolution.topics != self.resolved[regex].topics
            for regex, resolution in resolved.items()
        )

    def _remove_subscription(self, member: ConsumerMember) -> None:
        self.subscriptions[member.subscription] -= 1
        if not self.subscriptions[member.subscription]:
            del self.subscriptions[member.subscription]

    def _release(self, member_id: str) -> None:
        member = self.members.get(member_id)
        for partition in NOTHING if member is None else member.assigned | member.revoking:
            if self.owners.get(partition) == member_id:
                del self.owners[partition]


def preferred_assignor(members: Iterable[ConsumerMember]) -> str:
    """Return the assignor that most members choose; the default if no member chooses one."""
    assignors = [member.assignor for member in members if member.assignor is not None]
    return max(sorted(set(assignors)), key=assignors.count) if assignors else next(iter(ASSIGNORS))


def fenced_instance(instance_id: str | None) -> ApiError:
    """Return the error for a member whose instance id now belongs to another member."""
    return ApiError(ErrorCode.fenced_instance_id, f"Instance id {instance_id} now belongs to another member.")


def reconcile(
    member: ConsumerMember,
    owned: Assignment | None,
    target: Assignment,
    target_epoch: int,
    owners: dict[Partition, str],
) -> ConsumerMember:
    """Return the member after its next step: it revokes partitions, or moves to the target's epoch.

    `owned` are the partitions that its heartbeat lists, if any; `owners` has the member that owns each partition.
    """
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    epoch = member.epoch
    if member.state is MemberState.UNREVOKED:
        if owned is None or owned & member.revoking:
            return member
        epoch += 1
    remaining = member.assigned & target
    revoking = member.assigned - remaining
    missing = target - remaining
    free = frozenset(partition for partition in missing if owners.get(partition, member.id) == member.id)
    since = {partition: member.since.get(partition, member.epoch) for partition in member.assigned}
    if revoking and (owned is None or owned & revoking):
        return member._replace(
            state=MemberState.UNREVOKED,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=remaining,
            revoking=revoking,
            since=since,
        )
    return member._replace(
        state=MemberState.STABLE if free == missing else MemberState.UNRELEASED,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=remaining | free,
        revoking=NOTHING,
        since={partition: since[partition] for partition in remaining} | dict.fromkeys(free, target_epoch),
    )
