"""The groups and offsets of one partition of `__consumer_offsets`, as its log has them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from abeyant.broker.coordinator.schema import version_of
from abeyant.broker.coordinator.shard import Entry, Shard, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic import records as classic_records
from abeyant.broker.groups.classic.group import ClassicGroup, State
from abeyant.broker.groups.consumer import records as consumer_records
from abeyant.broker.groups.consumer.group import ConsumerGroup, ConsumerState
from abeyant.broker.groups.offsets import records as offset_records
from abeyant.broker.groups.offsets.committed import Offsets
from abeyant.broker.groups.offsets.records import Offset, OffsetKey
from abeyant.broker.groups.share import records as share_records
from abeyant.broker.groups.share.group import ShareGroup, ShareState
from abeyant.broker.groups.share.states import ShareStates
from abeyant.broker.groups.streams import records as streams_records
from abeyant.broker.groups.streams.group import StreamsGroup, StreamsState
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.log import Batch
    from abeyant.broker.log.records import Record
    from abeyant.broker.replica.partition import Partition

GroupT = TypeVar("GroupT", ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup)
AnyGroup = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup

EMPTY = (State.EMPTY, ConsumerState.EMPTY, ShareState.EMPTY, StreamsState.EMPTY)
"""The states of groups without members."""


class GroupsState(Shard):
    """The groups and offsets of one partition, as its log has them. `GroupShard` adds the protocols."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        """Start empty; `load` fills it."""
        super().__init__(broker, partition)
        settings = broker.cluster.settings
        self.groups: dict[str, ClassicGroup] = {}
        self.consumers: dict[str, ConsumerGroup] = {}
        self.shares: dict[str, ShareGroup] = {}
        self.streams: dict[str, StreamsGroup] = {}  # an id is in only one of the four
        self.offsets = Offsets()
        self.share_states = ShareStates(broker, self.write_and_replay)
        self._timeout: float = settings["offsets.commit.timeout.ms"] / 1000
        self._longest_metadata: int = settings["offset.metadata.max.bytes"]

    def _classic_ended(self, group: ClassicGroup) -> None:
        """Answer the pending requests of a classic group that a tombstone removed. `GroupShard` implements it."""

    # -- the log

    def replay(self, record: Record, batch: Batch) -> None:
        """Apply a record of `__consumer_offsets`."""
        assert record.key is not None
        kind = version_of(record.key)
        if kind <= offset_records.OFFSET:
            self._replay_offset(offset_records.read_offset_key(record.key), record, batch)
        elif kind == classic_records.GROUP:
            group_id = classic_records.read_group_key(record.key)
            if record.value is None:
                group = self.groups.pop(group_id, None)
                if group is not None:
                    self._classic_ended(group)
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
        """Remove a group. If it has offsets, replace it by an empty classic group."""
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
        """Commit or drop the offsets that a transaction wrote. The transaction's marker is at log offset `offset`."""
        self.offsets.end_transaction(producer_id, offset, self.replicated, commits=commits)

    @property
    def replicated(self) -> int:
        """Return the high watermark of the partition."""
        return self.partition.high_watermark

    def write_and_replay(self, entries: Sequence[Entry], then: Callable[[ErrorCode], object]) -> None:
        """Write records to the log and apply them. Call `then` with the result of the write."""
        self.write(entries, then, timeout=self._timeout)

    def tombstones(self, group_id: str, *, offsets: bool = True) -> list[Entry]:
        """Return the records that remove a group and, by default, its offsets."""
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
        """Return a group of any protocol, or None if no group has the id."""
        kinds: tuple[dict[str, Any], ...] = (self.groups, self.consumers, self.shares, self.streams)
        return next((groups[group_id] for groups in kinds if group_id in groups), None)

    def _require(self, groups: dict[str, GroupT], group_id: str, kind: str) -> GroupT:
        if group_id not in groups:
            is_another = self.find(group_id) is not None
            problem = f"is not {kind}" if is_another else "not found"
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} {problem}.")
        return groups[group_id]

    def all_groups(self) -> list[AnyGroup]:
        """Return all groups, of all protocols."""
        return [*self.groups.values(), *self.consumers.values(), *self.shares.values(), *self.streams.values()]

    def members(self, group_id: str) -> dict[str, tuple[str | None, str]] | None:
        """Return the instance id and client id of each member by id; None if the group does not exist."""
        group = self.find(group_id)
        if group is None:
            return None
        return {member.id: (member.instance_id, member.client_id) for member in group.members.values()}

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
        """Write offsets, as part of the transaction of `producer` if given. Call `then` once they are replicated."""
        entries: list[Entry] = [
            (offset_records.offset_key(key), offset_records.offset_value(offset)) for key, offset in offsets.items()
        ]
        self.write(entries, then, timeout=self._timeout, client_id=client_id, producer=producer)

    def forget_offsets(self, keys: Collection[OffsetKey], then: Callable[[ErrorCode], object]) -> None:
        """Delete the offsets of `keys`, as far as they exist. Call `then` with the result."""
        existing = {group: set(self.offsets.every_key(group)) for group in {key.group for key in keys}}
        entries: list[Entry] = [(offset_records.offset_key(key), None) for key in keys if key in existing[key.group]]
        if entries:
            self.write_and_replay(entries, then)
        else:
            then(ErrorCode.none)

    def forget_topic(self, topic: str, topic_id: uuid.UUID) -> None:
        """Delete the offsets of a deleted topic, and remove the topic from the records of share groups."""
        self.share_states.forget_topic(topic_id)
        keys = [key for group in self.all_groups() for key in self.offsets.every_key(group.id) if key.topic == topic]
        if keys:
            self.forget_offsets(keys, ignore)
