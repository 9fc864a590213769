"""A broker's share partitions. A group's first fetch from a partition that the broker leads opens a share partition."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from abeyant.broker.definitions import duration_ms
from abeyant.broker.errors import ApiError
from abeyant.broker.shares.partition import Phase, SharePartition
from abeyant.broker.shares.persister import Persister, Then
from abeyant.broker.shares.settings import ShareSettings
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.replica.partition import Partition

Key = tuple[str, uuid.UUID, int]
"""A group, a topic's id and a partition's index."""

_LOST = (ErrorCode.not_leader_or_follower, ErrorCode.group_id_not_found, ErrorCode.unknown_topic_or_partition)


class SharePartitions:
    """The open share partitions of one broker. Use from the loop's thread only."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shares: dict[Key, SharePartition] = {}

    def __len__(self) -> int:
        return len(self._shares)

    def all(self) -> list[SharePartition]:
        """Return all open share partitions."""
        return list(self._shares.values())

    def settings(self, group: str) -> ShareSettings:
        """Return a group's settings."""
        return ShareSettings(self._broker.cluster.controller.groups, group)

    def get(self, group: str, topic_id: uuid.UUID, index: int) -> SharePartition | None:
        """Return a share partition, or None if it is not open on this broker."""
        return self._shares.get((group, topic_id, index))

    def open(self, group: str, partition: Partition, then: Then) -> SharePartition:
        """Return a group's share partition of a partition that this broker leads. Open and load it if it is not open.

        `then` is called only after such a load: with None, or with the error. Raises ApiError if this broker does not
        lead the partition.
        """
        partition.check_leader(-1)
        key = group, partition.topic_id, partition.index
        share = self._shares.get(key)
        if share is not None:
            return share
        share = self._shares[key] = SharePartition(self._broker, group, partition, self.settings(group))
        opened = share

        def loaded(error: ApiError | None) -> None:
            if error is not None:
                self._forget(opened)
            then(error)
            self._broker.share_fetch_purgatory.check_and_complete(opened)

        partition.watchers[share] = partial(self._partition_changed, share)
        share.load(Persister(self._broker), partial(self._reset_offset, share), loaded)
        return share

    def lost(self, share: SharePartition, error: ApiError | None) -> None:
        """Forget a share partition if an error shows that it was deleted, or that another broker leads it now."""
        if error is not None and error.code in _LOST:
            self._forget(share)

    def forget_group(self, group: str) -> None:
        """Forget the share partitions of a group that has no sessions left here. Their stored state stays."""
        for share in self.all():
            if share.group == group:
                self._forget(share)

    def _forget(self, share: SharePartition) -> None:
        key = share.group, share.partition.topic_id, share.partition.index
        if self._shares.get(key) is share:
            del self._shares[key]
            share.partition.watchers.pop(share, None)
        if share.phase is not Phase.FENCED:
            share.fence()

    def _partition_changed(self, share: SharePartition) -> None:
        """Move the start with the log's start, and check waiting fetches. Fence `share` if the leadership was lost."""
        if not share.partition.leads:
            self._forget(share)
            return
        share.move_start(share.partition.log.start_offset)
        self._broker.share_fetch_purgatory.check_and_complete(share)

    def _reset_offset(self, share: SharePartition) -> int:
        """Return the offset at which a group without stored state starts, by `share.auto.offset.reset`."""
        log, where = share.partition.log, share.settings.reset
        if where == "earliest":
            return log.start_offset
        if where == "latest":
            return share.partition.high_watermark
        duration = duration_ms(where.partition(":")[2])
        assert duration is not None, f"{where!r} was checked when it was set"
        found = log.offset_for_time(self._broker.now_ms() - duration)
        return share.partition.high_watermark if found is None else found.offset


def release_all(shares: Iterable[SharePartition], member: str, lost: SharePartitions) -> None:
    """Release the records that a member has acquired in `shares`. Call `lost.lost` with the result of each release."""
    for share in shares:
        share.release(member, partial(lost.lost, share))
