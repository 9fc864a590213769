"""The groups of one partition of `__consumer_offsets`, while this broker leads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from abeyant.broker.coordinator.shard import Entry, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic import records as classic_records
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.protocol import ClassicProtocol
from abeyant.broker.groups.classic.rebalancing import Rebalancing
from abeyant.broker.groups.consumer.group import ConsumerGroup, ConsumerMember
from abeyant.broker.groups.consumer.protocol import ConsumerProtocol, HeartbeatRequest, HeartbeatResponse
from abeyant.broker.groups.consumer.targets import Targets
from abeyant.broker.groups.migration.classic_in_consumer_group import ClassicInConsumerGroup
from abeyant.broker.groups.migration.conversion import Migration
from abeyant.broker.groups.retention import Retention
from abeyant.broker.groups.sessions import Sessions
from abeyant.broker.groups.share.group import ShareGroup
from abeyant.broker.groups.share.protocol import JOINS, OnHeartbeat, ShareHeartbeat, ShareProtocol
from abeyant.broker.groups.share.states import Results
from abeyant.broker.groups.state import EMPTY, GroupsState
from abeyant.broker.groups.streams.group import StreamsGroup
from abeyant.broker.groups.streams.protocol import OnStreamsHeartbeat, StreamsHeartbeat, StreamsProtocol
from abeyant.broker.groups.waits import Waits
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.replica.partition import Partition


class GroupShard(GroupsState):
    """The groups of one partition, with their protocols and sessions. Use from the loop's thread only."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        """Start empty; `load` fills it."""
        super().__init__(broker, partition)
        settings = broker.cluster.settings
        waits = Waits(broker.rebalance_purgatory, broker.now)
        sessions = self.sessions = Sessions(broker.heartbeat_purgatory, broker.now, self._expired)
        max_classic = settings["group.max.size"]
        initial_delay = settings["group.initial.rebalance.delay.ms"] / 1000
        rebalances = Rebalancing(waits, sessions, self._store, broker.now_ms, initial_delay=initial_delay)
        self.classic_protocol = ClassicProtocol(
            waits, sessions, self._store, rebalances, broker.now_ms, max_size=max_classic
        )
        controller = broker.cluster.controller
        max_consumers = settings["group.consumer.max.size"]
        targets = Targets(
            lambda: controller.topics, lambda: controller.by_id, broker.now_ms, lambda: controller.topics_version,
            settings["group.consumer.regex.refresh.interval.ms"],
        )  # fmt: skip
        self.migration = Migration(
            settings["group.consumer.migration.policy"],
            targets,
            broker.now_ms,
            max_consumers=max_consumers,
            max_classic=max_classic,
        )
        self._group_settings = controller.groups
        self._now_ms = broker.now_ms
        self.consumer_protocol = ConsumerProtocol(
            waits, sessions, targets, self.consumers, self.write_and_replay, self._downgrade_without,
            partial(self._session_timeout, "consumer"), partial(self._may_assign, "consumer"), max_size=max_consumers,
        )  # fmt: skip
        self.share_protocol = ShareProtocol(
            sessions, targets, self.shares, self.share_states, self.write_and_replay,
            partial(self._session_timeout, "share"), partial(self._may_assign, "share"), broker.now_ms,
            max_size=settings["group.share.max.size"],
        )  # fmt: skip
        self.streams_protocol = StreamsProtocol(
            waits, sessions, targets, self.streams, self.write_and_replay, partial(self._setting, "streams"),
            partial(self._may_assign, "streams"), broker.now_ms, max_size=settings["group.streams.max.size"],
        )  # fmt: skip
        self.classic_members = ClassicInConsumerGroup(self.consumer_protocol, self.migration, self._downgrade)
        self._retention = Retention(self)

    # -- as a shard

    def begin(self) -> None:
        """Start all sessions, and the timer that deletes expired offsets and groups."""
        self._retention.begin()
        for group in self.groups.values():
            self.classic_protocol.resume(group)
        for consumers in self.consumers.values():
            self.consumer_protocol.resume(consumers)
        for shares in self.shares.values():
            self.share_protocol.resume(shares)
        for streams in self.streams.values():
            self.streams_protocol.resume(streams)
        self.share_states.resume()

    def end(self) -> None:
        """Stop all sessions and answer pending requests, as another broker coordinates these groups now."""
        self._retention.end()
        for group in self.groups.values():
            self.classic_protocol.end(group)
        for consumers in self.consumers.values():
            self.consumer_protocol.end(consumers)
        for streams in self.streams.values():
            self.streams_protocol.end(streams)
        self.sessions.end_all()
        self.groups.clear()
        self.consumers.clear()
        self.shares.clear()
        self.streams.clear()
        self.share_states.clear()

    def _classic_ended(self, group: ClassicGroup) -> None:
        """Answer the group's pending requests with REBALANCE_IN_PROGRESS, so that members may join a consumer group."""
        self.classic_protocol.end(group, ErrorCode.rebalance_in_progress)

    # -- groups

    def group_or_new(self, group_id: str) -> ClassicGroup:
        """Return a classic group. Create it if no group has the id, or an empty consumer or streams group has it.

        Raises ApiError: INCONSISTENT_GROUP_PROTOCOL for a share group, or a consumer or streams group with members.
        """
        existing = self.find(group_id)
        if isinstance(existing, ConsumerGroup | StreamsGroup) and not existing.members:
            self.write_and_replay(self.tombstones(group_id, offsets=False), ignore)
            self.consumers.pop(group_id, None)
            self.streams.pop(group_id, None)
        elif existing is not None and not isinstance(existing, ClassicGroup):
            raise ApiError(ErrorCode.inconsistent_group_protocol)
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, self.broker.now_ms())
        return group

    def join(self, request: HeartbeatRequest, group_id: str, then: Callable[[HeartbeatResponse], object]) -> None:
        """Let a consumer member join. Create the group, or upgrade a classic group, if needed.

        Raises ApiError: GROUP_ID_NOT_FOUND if the classic group cannot be upgraded.
        """
        if group_id in self.shares or group_id in self.streams:
            self.consumer_group(group_id)  # raises
        group = self.consumers.get(group_id)
        first: list[Entry] = []
        classic = self.groups.get(group_id)
        if group is None and classic is not None and classic.state is not State.EMPTY:
            group, first = self.migration.upgrade(classic)
        elif group is None:
            group = ConsumerGroup(group_id)
            first = [] if classic is None else [(classic_records.group_key(group_id), None)]
        self.consumer_protocol.heartbeat(group, request, then, first)
        if first and group_id in self.consumers:
            self.consumer_protocol.resume(self.consumers[group_id])

    # -- for the consumer protocol and its classic members

    def _may_assign(self, kind: str, group: ConsumerGroup | ShareGroup | StreamsGroup) -> bool:
        """Return whether a group may get a new target assignment, `assignment.interval.ms` after the last one."""
        interval = self._setting(kind, group.id, "assignment.interval.ms")
        return group.target_time <= 0 or not 0 <= self._now_ms() - group.target_time < interval

    def _setting(self, kind: str, group_id: str, name: str) -> int:
        """Return a group's value of the setting `KIND.NAME`, for instance `consumer.session.timeout.ms`."""
        value: int = self._group_settings.value(group_id, f"{kind}.{name}")
        return value

    def _session_timeout(self, kind: str, group_id: str) -> float:
        """Return the session time-out of a group's members, in seconds."""
        return self._setting(kind, group_id, "session.timeout.ms") / 1000

    def share_heartbeat(self, group_id: str, request: ShareHeartbeat, then: OnHeartbeat) -> None:
        """Let a member join or stay in a share group. The first member creates the group. Raises ApiError."""
        is_new = self.find(group_id) is None
        if is_new and request.epoch != JOINS:
            raise ApiError(ErrorCode.group_id_not_found, f"Share group {group_id} not found.")
        group = ShareGroup(group_id) if is_new else self.share_group(group_id)
        self.share_protocol.heartbeat(group, request, then)

    def streams_heartbeat(self, group_id: str, request: StreamsHeartbeat, then: OnStreamsHeartbeat) -> None:
        """Let a member join or stay in a streams group. The first member creates the group. Raises ApiError.

        A new streams group may replace an empty classic group.
        """
        classic = self.groups.get(group_id)
        if request.epoch == JOINS and classic is not None and classic.state is State.EMPTY:
            self.write_and_replay([(classic_records.group_key(group_id), None)], ignore)
        is_new = self.find(group_id) is None
        if is_new and request.epoch != JOINS:
            raise ApiError(ErrorCode.group_id_not_found, f"Streams group {group_id} not found.")
        group = StreamsGroup(group_id) if is_new else self.streams_group(group_id)
        self.streams_protocol.heartbeat(group, request, then)

    def _downgrade_without(
        self, group: ConsumerGroup, member_ids: Collection[str], then: Callable[[ErrorCode], object]
    ) -> bool:
        """Downgrade the group if removing these members requires it. Return whether it did."""
        if not self.migration.downgrades(group, member_ids):
            return False
        self._downgrade(group, member_ids, then)
        return True

    def _downgrade(
        self,
        group: ConsumerGroup,
        member_ids: Collection[str],
        then: Callable[[ErrorCode], object],
        joins: ConsumerMember | None = None,
        *,
        rebalance: bool = True,
    ) -> None:
        """Downgrade the group without `member_ids`. The classic member `joins` replaces the last consumer member."""
        classic, entries = self.migration.downgrade(group, member_ids, joins, rebalance=rebalance)
        members = list(group.members)
        self.write_and_replay(entries, then)
        if group.id in self.consumers:
            return  # the append failed
        for member_id in members:
            self.consumer_protocol.unwatch(group.id, member_id)
        self.groups[group.id] = classic  # replay set a copy that knows only the chosen protocol
        self.classic_protocol.resume(classic)

    def expire(self, group_id: str, member_id: str) -> None:
        """Remove a member as if its session had expired."""
        if group_id in self.groups:
            self.classic_protocol.remove(self.groups[group_id], member_id)
        else:
            self._expired(group_id, member_id)

    def delete(self, group_ids: Iterable[str], then: Callable[[dict[str, ErrorCode]], object]) -> None:
        """Delete groups with their offsets and states. `then` gets NONE or an error for each group."""
        group_ids = list(group_ids)
        empty = [group for group in group_ids if group in self.shares and not self.shares[group].members]
        states = {group: partitions for group in empty if (partitions := self.share_states.of(group).all)}
        failed: dict[str, ErrorCode] = {}
        remaining = len(states)

        def deleted(group_id: str, results: Results) -> None:
            nonlocal remaining
            failed.update((group_id, error.code) for error, _ in results.values() if error is not None)
            remaining -= 1
            if not remaining:
                rest = [group for group in group_ids if group not in failed]
                self._delete(rest, lambda errors: then(errors | failed))

        if not states:
            self._delete(group_ids, then)
        for group_id, partitions in states.items():
            self.share_states.delete(group_id, partitions, partial(deleted, group_id))

    def _delete(self, group_ids: Iterable[str], then: Callable[[dict[str, ErrorCode]], object]) -> None:
        results: dict[str, ErrorCode] = {}
        entries: list[Entry] = []
        for group_id in group_ids:
            group = self.find(group_id)
            if group is None or group.state is State.DEAD:
                results[group_id] = ErrorCode.group_id_not_found
            elif group.state not in EMPTY:
                results[group_id] = ErrorCode.non_empty_group
            else:
                results[group_id] = ErrorCode.none
                entries += self.tombstones(group_id)
        if not entries:
            then(results)
            return

        def written(error: ErrorCode) -> None:
            then({group: error if result is ErrorCode.none else result for group, result in results.items()})

        self.write_and_replay(entries, written)

    def _store(
        self, group: ClassicGroup, assignments: dict[str, bytes] | None, then: Callable[[ErrorCode], object]
    ) -> None:
        if assignments is None:
            assignments = {member.id: member.assignment for member in group.members.values()}
        entry = (classic_records.group_key(group.id), classic_records.group_value(group, assignments))
        self.write([entry], then, timeout=self._timeout, replayed=False)

    def _expired(self, group_id: str, member_id: str) -> None:
        group = self.groups.get(group_id)
        if group is not None:
            self.classic_protocol.expire(group, member_id)
            return
        for protocol in (self.consumer_protocol, self.share_protocol, self.streams_protocol):
            protocol.expire(group_id, member_id)
