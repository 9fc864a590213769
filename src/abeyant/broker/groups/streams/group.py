"""A streams group (KIP-1071): its members, and how each member reaches its target assignment of tasks.

It has no clock. As in a consumer group, a member first revokes the tasks that are not in its target, and then gets
tasks that other members have revoked. A process with an active or a standby task must revoke it before it gets the same
task in the other role. Kafka: `StreamsGroup`, `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.group import MemberState
from abeyant.broker.groups.streams.internal_topics import ConfiguredTopology
from abeyant.broker.groups.streams.tasks import NO_TASKS, Task, Tasks, TaskSet
from abeyant.broker.groups.streams.topology import KeyValue, Topology
from abeyant.broker.groups.subscription import NamedPartition
from abeyant.broker.wire.schema import ErrorCode


class StreamsState(Enum):
    """The states of a group, by Kafka's names."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics of the topology are missing, or have the wrong number of partitions."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Endpoint(NamedTuple):
    """The host and port at which a member serves interactive queries."""

    host: str
    port: int


_NEVER: Mapping[Task, int] = MappingProxyType({})


class StreamsMember(NamedTuple):
    """A member, as its records in the log describe it. Times are in ms."""

    id: str
    instance_id: None = None  # there are no static members
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NO_TASKS
    revoking: Tasks = NO_TASKS
    """The tasks that the member has to revoke."""
    since: Mapping[Task, int] = _NEVER
    """The epoch in which the member got each active task."""

    def is_reconciled(self, target_epoch: int) -> bool:
        """Return whether the member has its assignment of `target_epoch`, and no task left to revoke or await."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch


class StreamsGroup:
    """A streams group. Only the replay of records changes fields that records have. Coordinators compute the rest."""

    type = "streams"
    protocol_type = "streams"

    def __init__(self, group_id: str) -> None:
        """Create an empty group."""
        self.id = group_id
        self.epoch = 1  # as in Kafka, where the first member bumps it to 2
        self.validated_epoch = 0  # epoch of the topology whose topics all exist; -1 for none
        self.configs: Mapping[str, str] = {}  # of the last assignment
        self.topology: Topology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.target_epoch = 0
        self.target_time = 0  # when it was computed, in ms since 1970
        self.target: dict[str, Tasks] = {}
        # not in records:
        self.topics: dict[str, tuple[object, int]] = {}  # topics of the topology by name: id and partition count
        self.configured: ConfiguredTopology | None = None
        self.shutdown_by: str | None = None
        """The id of the member that requested the shutdown of the application."""
        self.endpoint_epoch = 0

    def __repr__(self) -> str:
        return f"<StreamsGroup {self.id} {self.state.value} of {len(self.members)} in epoch {self.epoch}>"

    @property
    def state(self) -> StreamsState:
        """Return the group's state. O(members)."""
        if not self.members:
            return StreamsState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return StreamsState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsState.ASSIGNING
        settled = all(member.is_reconciled(self.target_epoch) for member in self.members.values())
        return StreamsState.STABLE if settled else StreamsState.RECONCILING

    def require(self, member_id: str) -> StreamsMember:
        """Return a member. Raises ApiError: UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Member {member_id} is not a member of group {self.id}.")
        return member

    def is_subscribed(self, topic: str) -> bool:
        """Return whether the topology of a group with members reads a topic."""
        return bool(self.members) and self.topology is not None and self.topology.reader_of(topic) is not None

    def require_epoch(self, member: StreamsMember, epoch: int) -> None:
        """Raise ApiError unless `epoch` is the member's: STALE_MEMBER_EPOCH."""
        if epoch != member.epoch:
            raise _stale(f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}.")

    def require_may_commit(
        self,
        member_id: str,
        epoch: int,
        partitions: Iterable[NamedPartition],
        *,
        transactional: bool,
        knows_stale: bool,
    ) -> None:
        """Raise ApiError unless the client may commit. Kafka: `StreamsGroup.validateOffsetCommit`.

        An older epoch is valid for the partitions of tasks that the member has had since then. `knows_stale` is whether
        the client knows the error STALE_MEMBER_EPOCH.
        """
        if epoch < 0 and not self.members:
            return  # a non-member may commit while the group is empty
        if transactional and epoch < 0 and not member_id:
            return
        member = self.require(member_id)
        if not transactional and not knows_stale:
            raise ApiError(ErrorCode.unsupported_version)
        if epoch > member.epoch:
            raise _stale(f"Received member epoch {epoch} is newer than current member epoch {member.epoch}.")
        if epoch == member.epoch:
            return
        for topic, index in partitions:
            reader = None if self.topology is None else self.topology.reader_of(topic)
            if reader is None:
                raise _stale(f"Topic {topic} is not in the topology.")
            since = member.since.get((reader, index))
            if since is None:
                raise _stale(f"Task {reader}-{index} is not assigned or pending revocation for member.")
            if epoch < since:
                raise _stale(
                    f"Received member epoch {epoch} is older than assignment epoch {since} for task {reader}-{index}."
                )

    def taken(self, process_id: str) -> tuple[TaskSet, TaskSet]:
        """Return all active tasks, and all tasks of one process, including tasks still to be revoked. O(tasks)."""
        active_tasks: set[Task] = set()
        own_tasks: set[Task] = set()
        for member in self.members.values():
            active_tasks |= member.assigned.active | member.revoking.active
            if member.process_id == process_id:
                own_tasks = own_tasks.union(*member.assigned, *member.revoking)
        return frozenset(active_tasks), frozenset(own_tasks)


def reconcile(
    member: StreamsMember, owned: Tasks | None, target: Tasks, target_epoch: int, group: StreamsGroup
) -> StreamsMember:
    """Return the member after its next step: it revokes tasks, or moves to the target's epoch.

    `owned` are the tasks that its heartbeat lists, if any.
    """
    if member.is_reconciled(target_epoch):
        return member
    epoch = member.epoch
    if member.state is MemberState.UNREVOKED:
        if owned is None or owned.overlaps(member.revoking):
            return member
        epoch += 1
    revoking = member.assigned.without(target)
    remaining = member.assigned.without(revoking)
    since = {task: member.since.get(task, member.epoch) for task in member.assigned.active}
    if any(revoking) and (owned is None or owned.overlaps(revoking)):
        return member._replace(
            state=MemberState.UNREVOKED,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=remaining,
            revoking=revoking,
            since=since,
        )
    missing = target.without(remaining)
    active_tasks, own_tasks = group.taken(member.process_id)
    free = Tasks(missing.active - active_tasks - own_tasks, missing.standby - own_tasks)
    return member._replace(
        state=MemberState.STABLE if free == missing else MemberState.UNRELEASED,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=Tasks(remaining.active | free.active, remaining.standby | free.standby),
        revoking=NO_TASKS,
        since={task: since[task] for task in remaining.active} | dict.fromkeys(free.active, target_epoch),
    )


def _stale(message: str) -> ApiError:
    return ApiError(ErrorCode.stale_member_epoch, message)
