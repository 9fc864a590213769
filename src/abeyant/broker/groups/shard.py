"""The groups of one partition of `__consumer_offsets`, while this broker leads it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from abeyant.broker.coordinator.schema import version_of
from abeyant.broker.coordinator.shard import Entry, Shard, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic import records as classic_records
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.classic.protocol import ClassicProtocol
from abeyant.broker.groups.classic.rebalancing import Rebalancing
from abeyant.broker.groups.consumer import records as consumer_records
from abeyant.broker.groups.consumer.group import ConsumerGroup, ConsumerMember, ConsumerState
from abeyant.broker.groups.consumer.protocol import ConsumerProtocol, HeartbeatRequest, HeartbeatResponse
from abeyant.broker.groups.consumer.targets import Targets
from abeyant.broker.groups.migration.classic_in_consumer_group import ClassicInConsumerGroup
from abeyant.broker.groups.migration.conversion import Migration
from abeyant.broker.groups.offsets import records as offset_records
from abeyant.broker.groups.offsets.committed import Offsets
from abeyant.broker.groups.offsets.records import Offset, OffsetKey
from abeyant.broker.groups.retention import WithOffsets, is_old
from abeyant.broker.groups.sessions import Sessions
from abeyant.broker.groups.share import records as share_records
from abeyant.broker.groups.share.group import ShareGroup, ShareState
from abeyant.broker.groups.share.protocol import JOINS, OnHeartbeat, ShareHeartbeat, ShareProtocol
from abeyant.broker.groups.share.states import Results, ShareStates
from abeyant.broker.groups.streams import records as streams_records
from abeyant.broker.groups.streams.group import StreamsGroup, StreamsState
from abeyant.broker.groups.streams.protocol import OnStreamsHeartbeat, StreamsHeartbeat, StreamsProtocol
from abeyant.broker.groups.waits import Waits
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.log import Batch
    from abeyant.broker.log.records import Record
    from abeyant.broker.replica.partition import Partition
    from abeyant.purgatory.ports import Stoppable

GroupT = TypeVar("GroupT", ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup)
AnyGroup = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup

_MINUTE = 60_000  # ms
_EMPTY = (State.EMPTY, ConsumerState.EMPTY, ShareState.EMPTY, StreamsState.EMPTY)


class GroupShard(Shard):
    """The group coordinator's state in one partition. Use from the loop's thread only."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        """Start empty; `load` fills it."""
        super().__init__(broker, partition)
        settings = broker.cluster.settings
        self.groups: dict[str, ClassicGroup] = {}
        self.consumers: dict[str, ConsumerGroup] = {}
        self.shares: dict[str, ShareGroup] = {}
        self.streams: dict[str, StreamsGroup] = {}  # an id is in only one of the four
        self.offsets = Offsets()
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
        self.share_states = ShareStates(broker, self.write_and_replay)
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
        self._timeout: float = settings["offsets.commit.timeout.ms"] / 1000
        self._retention: int = settings["offsets.retention.minutes"] * _MINUTE
        self._retention_interval: float = settings["offsets.retention.check.interval.ms"] / 1000
        self._retention_task: Stoppable | None = None
        self._longest_metadata: int = settings["offset.metadata.max.bytes"]

    # -- as a shard

    def replay(self, record: Record, batch: Batch) -> None:
        """Apply a record of `__consumer_offsets`."""
        assert record.key is not None
        kind = version_of(record.key)
        if kind <= offset_records.OFFSET:
            self._replay_offset(offset_records.read_offset_key(record.key), record, batch)
        elif kind == classic_records.GROUP:
            group_id = classic_records.read_group_key(record.key)
            if record.value is None:
                gone = self.groups.pop(group_id, None)
                if gone is not None:  # if it became a consumer group, its members join again
                    self.classic_protocol.end(gone, ErrorCode.rebalance_in_progress)
            else:
                self.consumers.pop(group_id, None)
                self.groups[group_id] = classic_records.read_group_value(group_id, record.value)
        elif kind in consumer_records.KINDS:
            self._replay_consumers(kind, *consumer_records.read_key(kind, record.key), record.value)
        elif kind in share_records.KINDS:
            self._replay_shares(kind, *share_records.read_key(kind, record.key), record.value)
        elif kind in streams_records.KINDS:
            self._replay_streams(kind, *streams_records.read_key(kind, record.key), record.value)

    def _replay_consumers(self, kind: int, group_id: str, member_id: str, value: bytes | None) -> None:
        if kind == consumer_records.GROUP and value is None:
            self._forget(self.consumers, group_id)
        elif value is not None or group_id in self.consumers:
            self.groups.pop(group_id, None)  # it had only offsets
            group = self.consumers.setdefault(group_id, ConsumerGroup(group_id))
            consumer_records.replay(group, kind, member_id, value)

    def _replay_shares(self, kind: int, group_id: str, member_id: str, value: bytes | None) -> None:
        if kind == share_records.STATES:
            self.share_states.replay(group_id, None if value is None else share_records.read_states(value))
            if value is not None and self.find(group_id) is None:  # its offsets were altered before it had members
                self.shares[group_id] = ShareGroup(group_id)
        elif kind == share_records.GROUP and value is None:
            self.shares.pop(group_id, None)
        elif value is not None or group_id in self.shares:
            self.groups.pop(group_id, None)  # it was empty
            self.consumers.pop(group_id, None)
            share_records.replay(self.shares.setdefault(group_id, ShareGroup(group_id)), kind, member_id, value)

    def _replay_streams(self, kind: int, group_id: str, member_id: str, value: bytes | None) -> None:
        if kind == streams_records.GROUP and value is None:
            self._forget(self.streams, group_id)
        elif value is not None or group_id in self.streams:
            self.groups.pop(group_id, None)  # it was empty
            streams_records.replay(self.streams.setdefault(group_id, StreamsGroup(group_id)), kind, member_id, value)

    def _forget(self, groups: dict[str, GroupT], group_id: str) -> None:
        """Remove a group. If it has offsets, it is a classic one from now on."""
        if groups.pop(group_id, None) is not None and self.offsets.keys(group_id):
            self.groups[group_id] = ClassicGroup(group_id, None)

    def _replay_offset(self, key: OffsetKey, record: Record, batch: Batch) -> None:
        if record.value is None:
            self.offsets.forget(key)
            return
        offset = offset_records.read_offset_value(record.value)
        if self.find(key.group) is None:
            self.groups[key.group] = ClassicGroup(key.group, None)
        if batch.is_transactional:
            self.offsets.put_pending(batch.producer_id, key, offset, record.offset)
        else:
            self.offsets.put(key, offset, record.offset, self.replicated)

    def end_transaction(self, producer_id: int, offset: int, *, commits: bool) -> None:
        """Apply the end of a transaction with offsets, whose marker is at `offset`."""
        self.offsets.end_transaction(producer_id, offset, self.replicated, commits=commits)

    def begin(self) -> None:
        """Start all sessions, and the timer that deletes expired offsets and groups."""
        self._delete_old_later()
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
        if self._retention_task is not None:
            self._retention_task.cancel()
            self._retention_task = None
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

    @property
    def replicated(self) -> int:
        """Return the offset up to which every in-sync replica has the log."""
        return self.partition.high_watermark

    # -- groups

    def group(self, group_id: str) -> ClassicGroup:
        """Return a classic group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._require(self.groups, group_id, "a classic group")

    def group_of_member(self, group_id: str) -> ClassicGroup:
        """Return a classic group for a member's request. Raises ApiError: UNKNOWN_MEMBER_ID."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.unknown_member_id)
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._require(self.consumers, group_id, "a consumer group")

    def share_group(self, group_id: str) -> ShareGroup:
        """Return a share group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._require(self.shares, group_id, "a share group")

    def streams_group(self, group_id: str) -> StreamsGroup:
        """Return a streams group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self._require(self.streams, group_id, "a streams group")

    def find(self, group_id: str) -> AnyGroup | None:
        """Return a group of any protocol, if it exists."""
        kinds: tuple[dict[str, Any], ...] = (self.groups, self.consumers, self.shares, self.streams)
        return next((groups[group_id] for groups in kinds if group_id in groups), None)

    def _require(self, groups: dict[str, GroupT], group_id: str, what: str) -> GroupT:
        if group_id not in groups:
            is_another = self.find(group_id) is not None
            problem = f"is not {what}" if is_another else "not found"
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} {problem}.")
        return groups[group_id]

    def all_groups(self) -> list[AnyGroup]:
        """Return all groups, of all protocols."""
        return [*self.groups.values(), *self.consumers.values(), *self.shares.values(), *self.streams.values()]

    def group_or_new(self, group_id: str) -> ClassicGroup:
        """Return a classic group. Create it if it does not exist, and in place of an empty consumer or streams group.

        Raises ApiError: INCONSISTENT_GROUP_PROTOCOL for a share group, and if another has members.
        """
        other = self.find(group_id)
        if isinstance(other, ConsumerGroup | StreamsGroup) and not other.members:
            self.write_and_replay(self._tombstones(group_id, offsets=False), ignore)
            self.consumers.pop(group_id, None)
            self.streams.pop(group_id, None)
        elif other is not None and not isinstance(other, ClassicGroup):
            raise ApiError(ErrorCode.inconsistent_group_protocol)
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, self.broker.now_ms())
        return group

    def join(self, request: HeartbeatRequest, group_id: str, then: Callable[[HeartbeatResponse], object]) -> None:
        """Let a consumer member join. Create its group, or upgrade a classic one, as needed.

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

    def write_and_replay(self, entries: Sequence[Entry], then: Callable[[ErrorCode], object]) -> None:
        """Write and replay records. Call `then` with the result."""
        self.write(entries, then, timeout=self._timeout)

    def _may_assign(self, kind: str, group: ConsumerGroup | ShareGroup | StreamsGroup) -> bool:
        """Return whether a group may get a new target: `assignment.interval.ms` after the one before."""
        interval = self._setting(kind, group.id, "assignment.interval.ms")
        return group.target_time <= 0 or not 0 <= self._now_ms() - group.target_time < interval

    def _setting(self, kind: str, group_id: str, name: str) -> int:
        """Return a setting of a group of this kind."""
        value: int = self._group_settings.value(group_id, f"{kind}.{name}")
        return value

    def _session_timeout(self, kind: str, group_id: str) -> float:
        """Return the session time-out of a group's members, in seconds."""
        return self._setting(kind, group_id, "session.timeout.ms") / 1000

    def share_heartbeat(self, group_id: str, request: ShareHeartbeat, then: OnHeartbeat) -> None:
        """Let a member join or stay in a share group, which is created for the first one. Raises ApiError."""
        is_new = self.find(group_id) is None
        if is_new and request.epoch != JOINS:
            raise ApiError(ErrorCode.group_id_not_found, f"Share group {group_id} not found.")
        group = ShareGroup(group_id) if is_new else self.share_group(group_id)
        self.share_protocol.heartbeat(group, request, then)

    def streams_heartbeat(self, group_id: str, request: StreamsHeartbeat, then: OnStreamsHeartbeat) -> None:
        """Let a member join or stay in a streams group, which may replace an empty classic one. Raises ApiError."""
        classic = self.groups.get(group_id)
        if request.epoch == JOINS and classic is not None and classic.state is State.EMPTY:
            self.write_and_replay([(classic_records.group_key(group_id), None)], ignore)
        is_new = self.find(group_id) is None
        if is_new and request.epoch != JOINS:
            raise ApiError(ErrorCode.group_id_not_found, f"Streams group {group_id} not found.")
        group = StreamsGroup(group_id) if is_new else self.streams_group(group_id)
        self.streams_protocol.heartbeat(group, request, then)

    def _downgrade_without(
        self, group: ConsumerGroup, gone: Collection[str], then: Callable[[ErrorCode], object]
    ) -> bool:
        """Downgrade the group if removing these members requires it. Return whether it did."""
        if not self.migration.downgrades(group, gone):
            return False
        self._downgrade(group, gone, then)
        return True

    def _downgrade(
        self,
        group: ConsumerGroup,
        gone: Collection[str],
        then: Callable[[ErrorCode], object],
        joins: ConsumerMember | None = None,
        *,
        rebalance: bool = True,
    ) -> None:
        """Downgrade the group without these members. The classic member `joins` replaces the last consumer member."""
        classic, entries = self.migration.downgrade(group, gone, joins, rebalance=rebalance)
        members = list(group.members)
        self.write_and_replay(entries, then)
        if group.id in self.consumers:
            return  # the append failed
        for member_id in members:
            self.consumer_protocol.unwatch(group.id, member_id)
        self.groups[group.id] = classic  # replay set a copy that knows only the chosen protocol
        self.classic_protocol.resume(classic)

    def members(self, group_id: str) -> dict[str, tuple[str | None, str]] | None:
        """Return the instance id and client id of each member by id; None if the group does not exist."""
        group = self.find(group_id)
        if group is None:
            return None
        return {member.id: (member.instance_id, member.client_id) for member in group.members.values()}

    def expire(self, group_id: str, member_id: str) -> None:
        """Remove a member as if its session had expired."""
        if group_id in self.groups:
            self.classic_protocol.remove(self.groups[group_id], member_id)
        else:
            self._expired(group_id, member_id)

    def delete(self, group_ids: Iterable[str], then: Callable[[dict[str, ErrorCode]], object]) -> None:
        """Delete groups with their offsets and states. `then` gets an error, or NONE, for each."""
        group_ids = list(group_ids)
        empty = [one for one in group_ids if one in self.shares and not self.shares[one].members]
        states = {one: found for one in empty if (found := self.share_states.of(one).all)}
        failed: dict[str, ErrorCode] = {}
        left = len(states)

        def deleted(group_id: str, results: Results) -> None:
            nonlocal left
            failed.update((group_id, error.code) for error, _ in results.values() if error is not None)
            left -= 1
            if not left:
                rest = [one for one in group_ids if one not in failed]
                self._delete(rest, lambda errors: then(errors | failed))

        if not states:
            self._delete(group_ids, then)
        for group_id, found in states.items():
            self.share_states.delete(group_id, found, partial(deleted, group_id))

    def _delete(self, group_ids: Iterable[str], then: Callable[[dict[str, ErrorCode]], object]) -> None:
        results: dict[str, ErrorCode] = {}
        entries: list[Entry] = []
        for group_id in group_ids:
            group = self.find(group_id)
            if group is None or group.state is State.DEAD:
                results[group_id] = ErrorCode.group_id_not_found
            elif group.state not in _EMPTY:
                results[group_id] = ErrorCode.non_empty_group
            else:
                results[group_id] = ErrorCode.none
                entries += self._tombstones(group_id)
        if not entries:
            then(results)
            return

        def written(error: ErrorCode) -> None:
            then({group: error if result is ErrorCode.none else result for group, result in results.items()})

        self.write_and_replay(entries, written)

    def _tombstones(self, group_id: str, *, offsets: bool = True) -> list[Entry]:
        entries: list[Entry] = [
            (offset_records.offset_key(key), None) for key in self.offsets.every_key(group_id) if offsets
        ]
        consumers = self.consumers.get(group_id)
        if group_id in self.shares:
            return entries + share_records.tombstones(self.shares[group_id])
        if group_id in self.streams:
            return entries + streams_records.tombstones(self.streams[group_id])
        if consumers is None:
            return [*entries, (classic_records.group_key(group_id), None)]
        return entries + consumer_records.tombstones(consumers)

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

    # -- offsets

    def metadata_fits(self, metadata: str | None) -> bool:
        """Return whether a commit's metadata is short enough."""
        return metadata is None or len(metadata) <= self._longest_metadata

    def commit(
        self,
        offsets: dict[OffsetKey, Offset],
        then: Callable[[ErrorCode], object],
        *,
        client_id: str = "",
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Write offsets, in the transaction of `producer` if given. Call `then` once they are replicated."""
        entries: list[Entry] = [
            (offset_records.offset_key(key), offset_records.offset_value(offset)) for key, offset in offsets.items()
        ]
        self.write(entries, then, timeout=self._timeout, client_id=client_id, producer=producer)

    def forget_offsets(self, keys: Collection[OffsetKey], then: Callable[[ErrorCode], object]) -> None:
        """Delete these offsets, as far as they exist."""
        existing = {group: set(self.offsets.every_key(group)) for group in {key.group for key in keys}}
        entries: list[Entry] = [(offset_records.offset_key(key), None) for key in keys if key in existing[key.group]]
        if entries:
            self.write_and_replay(entries, then)
        else:
            then(ErrorCode.none)

    def forget_topic(self, topic: str, topic_id: uuid.UUID) -> None:
        """Delete the offsets of a deleted topic, and forget its states of share groups."""
        self.share_states.forget_topic(topic_id)
        gone = [key for group in self.all_groups() for key in self.offsets.every_key(group.id) if key.topic == topic]
        if gone:
            self.forget_offsets(gone, ignore)

    def _delete_old_later(self) -> None:
        self._retention_task = self.broker.timer.call_later(self._retention_interval, self._delete_old)

    def _delete_old(self) -> None:
        self._delete_old_later()
        self.delete_old(self.broker.now_ms())

    def delete_old(self, now_ms: int) -> None:
        """Delete offsets past their retention, and empty groups without offsets."""
        entries: list[Entry] = []
        found: list[WithOffsets] = [*self.groups.values(), *self.consumers.values(), *self.streams.values()]
        for group in found:  # empty share groups stay, as in Kafka
            keys = self.offsets.keys(group.id)
            old = [key for key in keys if is_old(group, key, self.offsets, self.replicated, now_ms, self._retention)]
            entries += [(offset_records.offset_key(key), None) for key in old]
            idle = group.state in _EMPTY and not self.offsets.has_pending(group.id)
            if idle and len(old) == len(keys) and not (isinstance(group, ClassicGroup) and group.pending):
                entries += self._tombstones(group.id, offsets=False)
        if entries:
            self.write_and_replay(entries, ignore)
