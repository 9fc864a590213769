"""Compaction: keep the last record of each key, in its place and with its offset (Kafka: `Cleaner`).

A tombstone, a record without a value, stays for `delete.retention.ms` after compaction first met it, so that every
reader that began before can see it. That time is in its batch as the delete horizon (KIP-534), which readers ignore and
the next compaction uses. Records of aborted transactions go. A marker stays as long as any
batch of its transaction, and for `delete.retention.ms` after compaction first met it alone. A producer's last batch
stays if only as an empty one, for its sequence number; where it has none but a marker, that does, for its epoch.
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
    """One run over a log's segments. Time is `now_ms` throughout."""

    def __init__(
        self,
        segments: Sequence[Segment],
        compacted_to: int,
        start_offset: int,
        producers: Producers,
        config: LogConfig,
        now_ms: int,
    ) -> None:
        """Continue after `compacted_to`, the offset up to which the log has been compacted before."""
        self._segments = list(segments)
        self._first_dirty = max(compacted_to, start_offset)
        self._producers = producers
        self._config = config
        self._now_ms = now_ms
        self._last: dict[bytes, int] = {}  # the last offset of each key that was written since
        self._of_transactions: set[int] = set()  # producers with a batch of a transaction, and no marker yet
        self._last_batches = {state.batches[-1].base_offset for state in producers.states() if state.batches}
        self._last_markers = {(state.producer_id, state.epoch) for state in producers.states() if not state.batches}

    def possible(self, up_to: int, *, even_young: bool) -> int:
        """Return how many segments can be compacted: not the last, none above `up_to`; 0 if all of them have been."""
        count = 0
        for segment, following in pairwise(self._segments):
            young = self._now_ms - segment.last_time < self._config.min_compaction_lag_ms
            if following.base_offset > up_to or (young and not even_young):
                break
            count += 1
        return count if self._segments[count].base_offset > self._first_dirty else 0

    def is_due(self, count: int) -> bool:
        """Return whether enough of the first `count` segments is dirty, or has been dirty for too long."""
        segments = self._segments[:count]
        dirty = [segment for segment in segments if segment.base_offset >= self._first_dirty] or segments[-1:]
        size = sum(segment.size for segment in segments)
        if sum(segment.size for segment in dirty) > self._config.min_cleanable_dirty_ratio * size:
            return True
        oldest = dirty[0].created_ms if dirty[0].first_timestamp is None else dirty[0].first_timestamp
        return self._now_ms - oldest > self._config.max_compaction_lag_ms

    def groups(self, count: int) -> list[list[Segment]]:
        """Return the first `count` segments, grouped with neighbours that fit in one segment. Reads the dirty ones."""
        for segment in self._segments[:count]:
            for batch in segment.batches(segment.index_of(self._first_dirty)):
                if not batch.is_control and not self._is_aborted(batch):
                    self._last.update((one.key, one.offset) for one in records_of(batch) if one.key is not None)
        groups: list[list[Segment]] = []
        for segment in self._segments[:count]:
            group = groups[-1] if groups else []
            size = segment.size + sum(one.size for one in group)
            span = segment.next_offset - group[0].base_offset if group else 0
            if not group or size > self._config.segment_bytes or span > LARGEST_OFFSET_DELTA:
                groups.append([segment])
            else:
                group.append(segment)
        return groups

    def fill(self, target: Segment, group: Iterable[Segment]) -> None:
        """Append the remaining records of the group's batches to an empty segment."""
        for segment in group:
            for batch in segment.batches():
                kept = self._kept_marker(batch) if batch.is_control else self._kept(batch)
                if kept.record_count or self._is_last_of_producer(batch):
                    target.append(kept, segment.modified_ms)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        if batch.is_control:
            return (batch.producer_id, batch.producer_epoch) in self._last_markers
        return batch.base_offset in self._last_batches

    def _kept_marker(self, batch: Batch) -> Batch:
        """Return a transaction's marker; empty once its delete horizon has passed."""
        if batch.producer_id in self._of_transactions or not batch.is_transactional:
            self._of_transactions.discard(batch.producer_id)
            return batch
        self._producers.forget_aborted(batch.last_offset)
        horizon = batch.delete_horizon
        if horizon is None:
            return _with(batch, records_of(batch), self._now_ms + self._config.delete_retention_ms)
        return batch if self._now_ms < horizon else _with(batch, [], horizon)

    def _kept(self, batch: Batch) -> Batch:
        if batch.is_transactional:
            self._of_transactions.add(batch.producer_id)
        if self._is_aborted(batch):
            return _with(batch, [], batch.delete_horizon)
        return compacted(batch, self._last, self._now_ms, self._config.delete_retention_ms)

    def _is_aborted(self, batch: Batch) -> bool:
        return batch.is_transactional and any(
            one.producer_id == batch.producer_id and one.first_offset <= batch.base_offset <= one.last_offset
            for one in self._producers.aborted_between(batch.base_offset, batch.next_offset)
        )


def compacted(batch: Batch, last: Mapping[bytes, int], now_ms: int, delete_retention_ms: int) -> Batch:
    """Return the batch without replaced records and expired tombstones; it may be empty."""
    horizon = batch.delete_horizon
    too_late = horizon is not None and now_ms >= horizon
    records = records_of(batch)
    kept = [
        record
        for record in records
        if record.key is not None
        and last.get(record.key, -1) <= record.offset
        and not (too_late and record.value is None)
    ]
    if horizon is None and any(record.value is None for record in kept):
        horizon = now_ms + delete_retention_ms
    elif len(kept) == len(records):
        return batch
    return _with(batch, kept, horizon)


def _with(batch: Batch, records: list[Record], horizon: int | None) -> Batch:
    return batch.with_records(records, batch.compression if records else compression.NONE, horizon)
