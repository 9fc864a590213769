"""The protocol of streams groups (KIP-1071): members send heartbeats, and the responses list the members' tasks.

The first member sends the topology of the application. Tasks are assigned once all topics of the topology exist. The
response says which internal topics are missing, and the broker that got the request creates them.
Kafka: `GroupMetadataManager.streamsGroupHeartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from abeyant.broker.coordinator.shard import Entry, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer.deadlines import DeadlineKind, Deadlines
from abeyant.broker.groups.consumer.group import MemberState
from abeyant.broker.groups.streams import records
from abeyant.broker.groups.streams.assignor import assign
from abeyant.broker.groups.streams.group import Endpoint, StreamsGroup, StreamsMember, reconcile
from abeyant.broker.groups.streams.internal_topics import ConfiguredTopology, Status, configure
from abeyant.broker.groups.streams.tasks import NO_TASKS, Tasks
from abeyant.broker.groups.streams.topology import KeyValue, TopicInfo, Topology
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.groups.consumer.protocol import Write
    from abeyant.broker.groups.consumer.targets import Subscribed, Targets
    from abeyant.broker.groups.sessions import Sessions
    from abeyant.broker.groups.waits import Waits

JOINS, LEAVES = 0, -1  # epochs in requests
_STANDBYS = "num.standby.replicas"
DELAYED_AT_FIRST = "Assignment delayed due to the configured initial rebalance delay."
_DELAYED_BY_INTERVAL = "Assignment delayed due to the configured assignment interval."


class StreamsHeartbeat(NamedTuple):
    """A StreamsGroupHeartbeat. None means unchanged. Times are in ms."""

    member_id: str
    epoch: int
    endpoint_epoch: int = 0
    rack_id: str | None = None
    rebalance_timeout: int = -1
    topology: Topology | None = None
    owned: Tasks | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    shutdown: bool = False
    client_id: str = ""
    client_host: str = ""


class StreamsHeartbeatResponse(NamedTuple):
    """The response to a StreamsGroupHeartbeat."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    tasks: Tasks | None = None
    """The member's tasks; None if unchanged."""
    statuses: tuple[tuple[Status, str], ...] = ()
    missing: tuple[TopicInfo, ...] = ()
    """The internal topics to create."""
    endpoint_epoch: int = 0
    members: tuple[StreamsMember, ...] | None = None
    """The members that have an endpoint; None if the client knows them already."""


OnStreamsHeartbeat = Callable[[StreamsHeartbeatResponse], object]


class StreamsProtocol:
    """The protocol for the streams groups of one shard. Use from the loop's thread only."""

    def __init__(
        self,
        waits: Waits,
        sessions: Sessions,
        targets: Targets,
        groups: Mapping[str, StreamsGroup],
        write: Write,
        setting: Callable[[str, str], int],
        may_assign: Callable[[StreamsGroup], bool],
        now_ms: Callable[[], int],
        *,
        max_size: int,
    ) -> None:
        """`groups` are the shard's groups by id; `setting(group id, name)` returns a group's setting `streams.<name>`.

        `may_assign` returns whether a group may get a new target assignment now; if not, a later heartbeat computes it.
        """
        self._waits = waits
        self._sessions = sessions
        self._targets = targets
        self._groups = groups
        self._write = write
        self._setting = setting
        self._may_assign = may_assign
        self._now_ms = now_ms
        self._max_size = max_size
        self._deadlines = Deadlines(waits, self.expire)
        self._delayed: set[str] = set()  # groups that wait for more members before their first assignment

    def heartbeat(self, group: StreamsGroup, request: StreamsHeartbeat, then: OnStreamsHeartbeat) -> None:
        """Handle a heartbeat: move the member a step towards its target. Raises ApiError, and changes nothing then."""
        before = self._find_member(group, request)
        member = _update(before, request)
        is_changed = member.id not in group.members or member != before
        entries = [records.member(group.id, member)] if is_changed else []
        topology = _find_topology(group, request, entries)
        topics = self._find_topics(topology)
        configured = group.configured
        if configured is None or topology is not group.topology or topics != group.topics:
            configured = configure(topology, {name: count for name, (_, count) in topics.items()})
        if configured.status is None and request.owned is not None:
            _require_known_tasks(configured, request.owned)
        validated = topology.epoch if configured.status is None else -1
        configs = {_STANDBYS: str(self._setting(group.id, _STANDBYS))}
        epoch = group.epoch
        if is_changed or topics != group.topics or validated != group.validated_epoch or configs != group.configs:
            epoch += 1
            entries.append(records.group(group.id, epoch, validated, configs))
        statuses = _stale_status(group, member)
        if not group.members:
            self._delay(group.id, member.client_id)
        target, target_epoch = group.target.get(member.id, NO_TASKS), group.target_epoch
        if group.id in self._delayed:
            statuses.append((Status.ASSIGNMENT_DELAYED, DELAYED_AT_FIRST))
            target = NO_TASKS
        elif epoch > target_epoch and not self._may_assign(group):
            statuses.append((Status.ASSIGNMENT_DELAYED, _DELAYED_BY_INTERVAL))
        elif epoch > target_epoch:
            members = {**group.members, member.id: member}
            target, target_epoch = self._compute(group, members, configured, configs, epoch, entries)[member.id], epoch
        after = reconcile(member, request.owned, target, target_epoch, group)
        if after != member:
            entries.append(records.current(group.id, after))
        if configured.status is not None:
            statuses.append(configured.status)
        response = self._respond(group, request, before, after, statuses, configured)
        is_new = group.id not in self._groups
        self._write_all(entries, then, response)
        self._settle(group.id, after, request, topics, None if is_new else configured)  # as in Kafka

    def _find_member(self, group: StreamsGroup, request: StreamsHeartbeat) -> StreamsMember:
        """Return the member, or create it. Raises ApiError."""
        if request.epoch == JOINS:
            if len(group.members) >= self._max_size:
                raise ApiError(
                    ErrorCode.group_max_size_reached,
                    f"The streams group has reached its maximum capacity of {self._max_size} members.",
                )
            return group.members.get(request.member_id) or StreamsMember(request.member_id)
        member = group.require(request.member_id)
        is_lost = (  # the last response did not arrive
            request.epoch == member.previous_epoch
            and request.owned is not None
            and request.owned.within(member.assigned)
        )
        if request.epoch != member.epoch and not is_lost:
            size = "greater" if request.epoch > member.epoch else "smaller"
            raise ApiError(
                ErrorCode.fenced_member_epoch,
                f"The streams group member has a {size} member epoch ({request.epoch}) than the one known by the group"
                f" coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
            )
        return member

    def _find_topics(self, topology: Topology) -> Subscribed:
        return self._targets.find_topics([(topology.required_topics, None)])

    def _compute(
        self,
        group: StreamsGroup,
        members: Mapping[str, StreamsMember],
        configured: ConfiguredTopology,
        configs: Mapping[str, str],
        epoch: int,
        entries: list[Entry],
    ) -> dict[str, Tasks]:
        """Return the target assignment for an epoch. Add the records of changes to `entries`."""
        if configured.status is None:
            processes = {member.id: member.process_id for member in members.values()}
            stateful = {one.subtopology_id for one in configured.subtopologies if one.state_changelog_topics}
            target = assign(processes, configured.tasks, stateful, int(configs[_STANDBYS]), group.target)
        else:
            target = dict.fromkeys(members, NO_TASKS)
        for member_id, tasks in target.items():
            if group.target.get(member_id) != tasks:
                entries.append(records.target_of_member(group.id, member_id, tasks))
        entries.append(records.target(group.id, epoch, self._now_ms()))
        return target

    def _respond(
        self,
        group: StreamsGroup,
        request: StreamsHeartbeat,
        before: StreamsMember,
        after: StreamsMember,
        statuses: list[tuple[Status, str]],
        configured: ConfiguredTopology,
    ) -> StreamsHeartbeatResponse:
        is_new = request.epoch == JOINS or before.assigned != after.assigned
        if is_new and after.user_endpoint is not None:
            group.endpoint_epoch += 1
        if request.shutdown:
            group.shutdown_by = group.shutdown_by or after.id
        if group.shutdown_by is not None:
            detail = (
                f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown for the"
                " entire application."
            )
            statuses.append((Status.SHUTDOWN_APPLICATION, detail))
        others = [member for member in group.members.values() if member.id != after.id]
        with_endpoint = tuple(member for member in (*others, after) if member.user_endpoint is not None)
        return StreamsHeartbeatResponse(
            ErrorCode.none, None, after.id, after.epoch, after.assigned if is_new else None, tuple(statuses),
            configured.missing, group.endpoint_epoch if group.id in self._groups else 0,
            with_endpoint if group.endpoint_epoch != request.endpoint_epoch else None,
        )  # fmt: skip

    def _write_all(self, entries: list[Entry], then: OnStreamsHeartbeat, response: StreamsHeartbeatResponse) -> None:
        if entries:
            self._write(
                entries, lambda error: then(response if error is ErrorCode.none else StreamsHeartbeatResponse(error))
            )
        else:
            then(response)

    # -- members that leave or expire

    def leave(self, group: StreamsGroup, request: StreamsHeartbeat, then: OnStreamsHeartbeat) -> None:
        """Remove a member. Raises ApiError."""
        if request.shutdown:
            group.shutdown_by = group.shutdown_by or request.member_id
        member = group.require(request.member_id)
        response = StreamsHeartbeatResponse(ErrorCode.none, None, member.id, request.epoch)
        self._write_all(self._removal(group, member.id), then, response)

    def expire(self, group_id: str, member_id: str) -> None:
        """Remove a member whose session or deadline expired."""
        group = self._groups.get(group_id)
        if group is not None and member_id in group.members:
            self._write(self._removal(group, member_id), ignore)

    def _removal(self, group: StreamsGroup, member_id: str) -> list[Entry]:
        self._unwatch(group.id, member_id)
        left = records.group(group.id, group.epoch + 1, group.validated_epoch, group.configs)
        return [*records.member_tombstones(group.id, member_id), left]

    # -- time

    def resume(self, group: StreamsGroup) -> None:
        """Start the sessions of a group that was loaded from the log."""
        if group.topology is not None and group.epoch == group.target_epoch:
            group.topics = self._find_topics(group.topology)
        for member in group.members.values():
            self._watch(group, member)

    def end(self, group: StreamsGroup) -> None:
        """Stop the sessions and deadlines of a group that another broker coordinates now."""
        self._end_delay(group.id)
        for member_id in group.members:
            self._unwatch(group.id, member_id)

    def _delay(self, group_id: str, client_id: str) -> None:
        """Delay a group's first assignment by `initial.rebalance.delay.ms`, for more members to join."""
        seconds = self._setting(group_id, "initial.rebalance.delay.ms") / 1000
        if seconds > 0 and group_id not in self._delayed:
            self._delayed.add(group_id)
            self._waits.submit(
                _delay_key(group_id), seconds, client_id, lambda: ((group_id, ""),),
                lambda: group_id not in self._delayed, on_timeout=lambda: self._assign_first(group_id),
            )  # fmt: skip

    def _end_delay(self, group_id: str) -> None:
        if group_id in self._delayed:
            self._delayed.discard(group_id)
            self._waits.check(_delay_key(group_id))

    def _assign_first(self, group_id: str) -> None:
        """Compute the first assignment, which the members get with their next heartbeats."""
        self._delayed.discard(group_id)
        group = self._groups.get(group_id)
        if group is not None and group.members and group.configured is not None and group.epoch > group.target_epoch:
            entries: list[Entry] = []
            self._compute(group, group.members, group.configured, group.configs, group.epoch, entries)
            self._write(entries, ignore)

    def _settle(
        self,
        group_id: str,
        member: StreamsMember,
        request: StreamsHeartbeat,
        topics: Subscribed,
        configured: ConfiguredTopology | None,
    ) -> None:
        """Set the group's fields that records lack, and restart the member's session, unless the write failed."""
        group = self._groups.get(group_id)
        if group is None or member.id not in group.members:
            return
        group.topics, group.configured = topics, configured
        if request.shutdown:
            group.shutdown_by = group.shutdown_by or member.id
        self._watch(group, group.members[member.id])

    def _watch(self, group: StreamsGroup, member: StreamsMember) -> None:
        seconds = self._setting(group.id, "session.timeout.ms") / 1000
        self._sessions.touch(group.id, member.id, member.client_id, seconds)
        if member.state is MemberState.UNREVOKED:
            self._deadlines.start(group.id, member, DeadlineKind.REVOKE, member.epoch)
        else:
            self._deadlines.done(group.id, member.id, DeadlineKind.REVOKE)

    def _unwatch(self, group_id: str, member_id: str) -> None:
        self._deadlines.done(group_id, member_id, *DeadlineKind)
        self._sessions.end(group_id, member_id)


def _delay_key(group_id: str) -> tuple[str, str]:
    return "initial rebalance delay", group_id


def _update(member: StreamsMember, request: StreamsHeartbeat) -> StreamsMember:
    """Return the member with the fields that the heartbeat sets."""
    return member._replace(
        rack_id=request.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout=member.rebalance_timeout if request.rebalance_timeout < 0 else request.rebalance_timeout,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        user_endpoint=request.user_endpoint or member.user_endpoint,
        client_tags=member.client_tags if request.client_tags is None else request.client_tags,
    )


def _find_topology(group: StreamsGroup, request: StreamsHeartbeat, entries: list[Entry]) -> Topology:
    """Return the group's topology; or else the request's, whose record is added to `entries`.

    Raises ApiError if neither has one, or the group would need an update.
    """
    if group.topology is None:
        if request.topology is None:
            raise ApiError(ErrorCode.unknown_server_error)
        entries.append(records.topology(group.id, request.topology))
        return request.topology
    if request.topology not in (None, group.topology) and request.topology.epoch >= group.topology.epoch:
        raise ApiError(ErrorCode.invalid_request, "Topology updates are not supported yet.")
    return group.topology


def _stale_status(group: StreamsGroup, member: StreamsMember) -> list[tuple[Status, str]]:
    if group.topology is None or member.topology_epoch >= group.topology.epoch:
        return []
    detail = (
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch"
        f" {group.topology.epoch}."
    )
    return [(Status.STALE_TOPOLOGY, detail)]


def _require_known_tasks(configured: ConfiguredTopology, owned: Tasks) -> None:
    """Raise ApiError for a task that the topology does not have."""
    for name, index in sorted(owned.active | owned.standby):
        if name not in configured.tasks:
            raise ApiError(ErrorCode.invalid_request, f"Subtopology {name} does not exist in the topology.")
        if not 0 <= index < configured.tasks[name]:
            raise ApiError(
                ErrorCode.invalid_request,
                f"Task {index} for subtopology {name} is invalid. Number of tasks for this subtopology:"
                f" {configured.tasks[name]}",
            )
