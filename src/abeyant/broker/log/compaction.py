"""Compaction: keep the last record of each key, in order and with its offset (Kafka: `Cleaner`).

A tombstone, a record without a value, stays for `delete.retention.ms` after its first compaction, so that readers that
began earlier can see it. The tombstone's batch stores the end of that time as its delete horizon (KIP-534): readers
ignore the horizon, and later compactions use it. Records of aborted transactions are removed. A transaction marker
stays as long as any batch of its transaction, and for `delete.retention.ms` after the last batch was removed. Each
producer's last batch stays, empty if need be, to keep the sequence number. If a producer's only batch is a marker, the
marker stays, to keep the producer epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from abeyant.broker.log import compression
from abeyant.broker.log.batch import Batch
from abeyant.broker.log.config import LogConfig
from abeyant.broker.log.producers import Producers
from abeyant.broker.log.records import Record
from abeyant.broker.log.segment import LARGEST_OFFSET_DELTA, Segment
from abeyant.broker.log.validation import records_of


class Compaction:
    """One compaction of a log's segments, at the time `now_ms`."""

    def __init__(
        self,
        segments: Sequence[Segment],
        compacted_to: int,
        start_offset: int,
        producers: Producers,
        config: LogConfig,
        now_ms: int,
    ) -> None:
        """Prepare a compaction. Earlier ones compacted the log up to `compacted_to`; from there on the log is dirty."""
        self._segments = list(segments)
        self._first_dirty = max(compacted_to, start_offset)
        self._producers = producers
        self._config = config
        self._now_ms = now_ms
        self._last: dict[bytes, int] = {}  # key -> its last offset, for keys in the dirty part
        self._in_transaction: set[int] = set()  # producers whose transaction's marker is still to come
        self._last_batches = {state.batches[-1].base_offset for state in producers.states() if state.batches}
        self._last_markers = {(state.producer_id, state.epoch) for state in producers.states() if not state.batches}

    def count_cleanable(self, up_to: int, *, even_young: bool) -> int:
        """Return how many of the first segments can be compacted; 0 if none of these segments is dirty.

        Segments count if they end at or below the offset `up_to`, are not the log's last, and are at least
        `min.compaction.lag.ms` old. `even_young` ignores the age.
        """
        count = 0
        for segment, following in pairwise(self._segments):
            young = self._now_ms - segment.last_time < self._config.min_compaction_lag_ms
            if following.base_offset > up_to or (young and not even_young):
                break
            count += 1
        return count if self._segments[count].base_offset > self._first_dirty else 0

    def is_due(self, count: int) -> bool:
        """Return whether the first `count` segments exceed the dirty ratio or the maximum compaction lag."""
        segments = self._segments[:count]
        dirty = [segment for segment in segments if segment.base_offset >= self._first_dirty] or segments[-1:]
        size = sum(segment.size for segment in segments)
        if sum(segment.size for segment in dirty) > self._config.min_cleanable_dirty_ratio * size:
            return True
        oldest = dirty[0].created_ms if dirty[0].first_timestamp is None else dirty[0].first_timestamp
        return self._now_ms - oldest > self._config.max_compaction_lag_ms

    def groups(self, count: int) -> list[list[Segment]]:
        """Return the first `count` segments in groups, each of which fits into one segment.

        Also find the last offset of each key in the dirty part of these segments, for `fill`.
        """
        for segment in self._segments[:count]:
            for batch in segment.batches(segment.index_of(self._first_dirty)):
                if not batch.is_control and not self._is_aborted(batch):
                    self._last.update(
                        (record.key, record.offset) for record in records_of(batch) if record.key is not None
                    )
        groups: list[list[Segment]] = []
        for segment in self._segments[:count]:
            group = groups[-1] if groups else []
            size = segment.size + sum(part.size for part in group)
            span = segment.next_offset - group[0].base_offset if group else 0
            if not group or size > self._config.segment_bytes or span > LARGEST_OFFSET_DELTA:
                groups.append([segment])
            else:
                group.append(segment)
        return groups

    def fill(self, target: Segment, group: Iterable[Segment]) -> None:
        """Compact the group's batches, and append the results to `target`, an empty segment. Call `groups` first."""
        for segment in group:
            for batch in segment.batches():
                result = self._compact_marker(batch) if batch.is_control else self._compact_data(batch)
                if result.record_count or self._is_last_of_producer(batch):
                    target.append(result, segment.modified_ms)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        if batch.is_control:
            return (batch.producer_id, batch.producer_epoch) in self._last_markers
        return batch.base_offset in self._last_batches

    def _compact_marker(self, batch: Batch) -> Batch:
        """Return the batch of a transaction marker, without its record once the delete horizon has passed.

        The first compaction that finds no data of the transaction sets the horizon.
        """
        if batch.producer_id in self._in_transaction or not batch.is_transactional:
            self._in_transaction.discard(batch.producer_id)
            return batch
        self._producers.forget_aborted(batch.last_offset)
        horizon = batch.delete_horizon
        if horizon is None:
            return _with(batch, records_of(batch), self._now_ms + self._config.delete_retention_ms)
        return batch if self._now_ms < horizon else _with(batch, [], horizon)

    def _compact_data(self, batch: Batch) -> Batch:
        if batch.is_transactional:
            self._in_transaction.add(batch.producer_id)
        if self._is_aborted(batch):
            return _with(batch, [], batch.delete_horizon)
        return compact_batch(batch, self._last, self._now_ms, self._config.delete_retention_ms)

    def _is_aborted(self, batch: Batch) -> bool:
        return batch.is_transactional and any(
            transaction.producer_id == batch.producer_id
            and transaction.first_offset <= batch.base_offset <= transaction.last_offset
            for transaction in self._producers.aborted_between(batch.base_offset, batch.next_offset)
        )


def compact_batch(batch: Batch, last: Mapping[bytes, int], now_ms: int, delete_retention_ms: int) -> Batch:
    """Return the batch without expired tombstones and without records that a later record of the same key supersedes.

    `last` has the last offset of each key. Records without a key are removed too. The result may be an empty batch.
    """
    horizon = batch.delete_horizon
    expired = horizon is not None and now_ms >= horizon
    records = records_of(batch)
    remaining = [
        record
        for record in records
        if record.key is not None
        and last.get(record.key, -1) <= record.offset
        and not (expired and record.value is None)
    ]
    if horizon is None and any(record.value is None for record in remaining):
        horizon = now_ms + delete_retention_ms
    elif len(remaining) == len(records):
        return batch
    return _with(batch, remaining, horizon)


def _with(batch: Batch, records: list[Record], horizon: int | None) -> Batch:
    return batch.with_records(records, batch.compression if records else compression.NONE, horizon)
