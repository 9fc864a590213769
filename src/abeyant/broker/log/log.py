"""One replica's log, as its leader and its followers use it.

Offsets ascend and are never used twice. Compaction and `advance_start` leave gaps, which readers skip. Lookups by
offset, time or size are O(log batches).

A log has no clock and never waits: `now_ms` comes from the broker's clock. Use it from one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from abeyant.broker.log import validation
from abeyant.broker.log.batch import APPEND_TIME, CONTROL, NO_PRODUCER, Batch, split
from abeyant.broker.log.compaction import Compaction
from abeyant.broker.log.config import LogConfig
from abeyant.broker.log.epochs import LeaderEpochs
from abeyant.broker.log.errors import BatchTooLargeError, CorruptRecordError, OffsetOutOfRangeError
from abeyant.broker.log.markers import Marker, marker_of
from abeyant.broker.log.producers import Producers
from abeyant.broker.log.readable import ReadableLog
from abeyant.broker.log.segment import LARGEST_OFFSET_DELTA, Segment


class Appended(NamedTuple):
    """The result of an append as leader."""

    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic has LogAppendTime; for a duplicate, its greatest timestamp, as in Kafka
    duplicate: bool
    size: int  # bytes that the log grew by


class Log(ReadableLog):
    """The batches of one replica, from `start_offset` to `end_offset`."""

    def __init__(self, topic: str, partition: int, config: LogConfig, now_ms: int = 0) -> None:
        """Create an empty log in memory."""
        self.topic = topic
        self.partition = partition
        self.config = config
        self._open(now_ms)

    def _open(self, now_ms: int) -> None:
        """Begin with an empty log at offset 0. `DiskLog` overrides this to load its files."""
        self._begin(0, now_ms)

    def _begin(self, offset: int, now_ms: int) -> None:
        """Reset to an empty log that begins at `offset`."""
        self.start_offset = offset
        self.end_offset = offset
        self.size = 0  # bytes of all batches, also of those before `start_offset` in its segment
        self._segments = [self._make_segment(offset, now_ms)]
        self._bases = [offset]
        self.epochs = LeaderEpochs()
        self.producers = Producers()
        self._compacted_to = 0  # below this offset no key has two records
        # Segment base offset -> the producers' state at its start, for truncation.
        self._snapshots: dict[int, dict[str, Any]] = {offset: self.producers.snapshot()}

    def __repr__(self) -> str:
        return f"<Log {self.topic}-{self.partition} {self.start_offset}-{self.end_offset}>"

    # Writing

    def append(self, records: bytes, leader_epoch: int, now_ms: int, *, from_client: bool = True) -> Appended:
        """Validate one batch, assign its offsets and append it, as leader. For a duplicate, return the first offsets.

        `from_client=False` is for the coordinators, whose batches have no sequence numbers and may be markers.
        Raises a LogError, and appends nothing then.
        """
        batch = validation.parse_batch(records, self.config, from_client=from_client)
        batch = validation.validate(batch, self.config, now_ms)
        batch.place(self.end_offset, leader_epoch)
        if batch.size > self.config.segment_bytes:
            raise BatchTooLargeError(
                f"Message batch size is {batch.size} bytes, which exceeds the maximum configured segment size of"
                f" {self.config.segment_bytes}."
            )
        marker = None
        if batch.producer_id != NO_PRODUCER:
            if from_client and (duplicate := self.producers.duplicate_of(batch)) is not None:
                return Appended(duplicate.base_offset, duplicate.last_offset, duplicate.timestamp, True, 0)
            if batch.is_control:
                marker = marker_of(batch)
                self.producers.check_marker(batch, marker)
            else:
                self.producers.check_data(batch, sequenced=from_client)
        self._write(batch, marker, now_ms)
        append_time = batch.max_timestamp if batch.attributes & APPEND_TIME else -1
        return Appended(batch.base_offset, batch.last_offset, append_time, False, batch.size)

    def append_replicated(self, records: bytes | Sequence[Batch], now_ms: int) -> int:
        """Append the leader's batches unchanged; return the new end offset.

        If `records` is bytes, the CRC of each batch is checked. `Batch` objects are trusted, and share their bytes with
        the leader. Raises CorruptRecordError for a wrong CRC, or for an offset below the end of the log.
        """
        if isinstance(records, bytes):
            batches: Sequence[Batch] = split(records)
            for batch in batches:
                if not batch.crc_is_valid():
                    raise CorruptRecordError(
                        f"Record is corrupt (stored crc = {batch.crc}) in {self.topic}-{self.partition}"
                    )
        else:
            batches = records
        for batch in batches:
            if batch.base_offset < self.end_offset:
                if self.start_offset != self.end_offset or batch.last_offset < self.end_offset:
                    raise CorruptRecordError(
                        f"Unexpected offset in append to {self.topic}-{self.partition}: {batch.base_offset} is less"
                        f" than the next offset {self.end_offset}"
                    )
                start = self.start_offset  # the leader's log starts in the middle of this batch
                self.truncate_fully(batch.base_offset, now_ms)
                self.start_offset = start
            self.append_next(batch, now_ms)
        return self.end_offset

    def append_next(self, batch: Batch, now_ms: int) -> None:
        """Append one of the leader's batches unchanged, at the end of the log or after a gap."""
        self._write(batch, _marker_in(batch) if batch.attributes & CONTROL else None, now_ms)

    def _write(self, batch: Batch, marker: Marker | None, now_ms: int) -> None:
        segment = self._segments[-1]
        if self._is_full(segment, batch, now_ms):
            segment = self.roll(now_ms, batch.base_offset)
        segment.append(batch, now_ms)
        self.end_offset = batch.next_offset
        self.size += batch.size
        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        if batch.producer_id != NO_PRODUCER:
            self._note_producer(batch, marker)

    def _note_producer(self, batch: Batch, marker: Marker | None) -> None:
        if not batch.is_control:
            self.producers.note_data(batch)
        elif marker is not None:
            self.producers.note_marker(batch, marker)

    def _replay(self, batches: Iterable[Batch]) -> None:
        """Update the producer state with batches that are already in the log."""
        for batch in batches:
            if batch.producer_id != NO_PRODUCER:
                self._note_producer(batch, _marker_in(batch))

    def _is_full(self, segment: Segment, batch: Batch, now_ms: int) -> bool:
        size = segment.size
        if not size:
            return False
        config = self.config
        if size + batch.size > config.segment_bytes or batch.last_offset - segment.base_offset > LARGEST_OFFSET_DELTA:
            return True
        first, last = segment.first_timestamp, batch.max_timestamp
        if first is None or last < 0:
            first, last = segment.created_ms, now_ms
        is_old: bool = last - first > config.roll_ms  # by timestamps, so a replica built anew gets the same segments
        return is_old

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Start a new segment at `base_offset`, by default the end of the log, and return it. O(producers)."""
        base = self.end_offset if base_offset is None else base_offset
        last = self._segments[-1]
        if not len(last) and last.base_offset == base:
            last.created_ms = now_ms
            return last
        segment = self._make_segment(base, now_ms)
        if not len(last):
            self._segments.pop()
            self._bases.pop()
            del self._snapshots[last.base_offset]
            self._remove([last], now_ms)
        self._segments.append(segment)
        self._bases.append(base)
        self._snapshots[base] = self.producers.snapshot()
        return segment

    def _make_segment(self, base_offset: int, now_ms: int) -> Segment:
        return Segment(base_offset, now_ms)

    def start_epoch(self, epoch: int) -> None:
        """Start a leader epoch at the end of the log."""
        self.epochs.assign(epoch, self.end_offset)

    # Leader epochs

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the greatest known epoch up to `epoch` and its end offset, (-1, -1) if unknown (KIP-101, KIP-320)."""
        return self.epochs.end_of(epoch, self.end_offset)

    # Removing

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Truncate to `offset`, removing batches that reach past it. O(batches of a segment).

        If `offset` is at or below the log start, empty the log and restart it at `offset`. If `offset` is at or above
        the log end, only remove an epoch that begins at the end: in that epoch this replica was leader but appended
        nothing, and the new leader does not know the epoch.
        """
        if offset >= self.end_offset:
            self.epochs.truncate_from(self.end_offset)
            return
        if offset <= self.start_offset:
            self.truncate_fully(offset, now_ms)
            return
        keep = self._segment_index(offset)
        segments = self._segments[keep + 1 :]
        for segment in segments:
            self._snapshots.pop(segment.base_offset, None)
        self._remove(segments, now_ms)
        del self._segments[keep + 1 :], self._bases[keep + 1 :]
        segment = self._segments[keep]
        count = segment.index_of(offset)
        straddles = count < len(segment) and segment.first_offset(count) < offset
        self.end_offset = segment.first_offset(count) if straddles else offset
        segment.truncate(count)
        self.size = sum(segment.size for segment in self._segments)
        self.start_offset = min(self.start_offset, self.end_offset)
        self._compacted_to = min(self._compacted_to, self._bases[-1])
        self.epochs.truncate_from(self.end_offset)
        self.producers.restore(self._snapshots[segment.base_offset])
        self._replay(segment.batches())

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Remove all batches, epochs and producers, and restart the log at `offset`."""
        self._remove(self._segments, now_ms)
        self._begin(offset, now_ms)

    def advance_start(self, offset: int, now_ms: int) -> bool:
        """Advance the log start to `offset` (DeleteRecords) and remove segments before it. Return whether it moved.

        Raises OffsetOutOfRangeError if `offset` is above the log end.
        """
        if offset > self.end_offset:
            raise OffsetOutOfRangeError(
                f"Cannot increment the log start offset to {offset} of partition {self.topic}-{self.partition} since"
                f" it is larger than the end offset {self.end_offset}"
            )
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self.epochs.truncate_before(offset)
        self.producers.forget_before(offset)
        self._remove_first(sum(1 for base in self._bases[1:] if base <= offset), now_ms)
        return True

    def delete_old(self, now_ms: int, up_to: int) -> int:
        """Remove the oldest segments that exceed `retention.ms` or `retention.bytes`; return how many.

        Do nothing unless `cleanup.policy` includes "delete". Segments are removed as a whole, and only below the high
        watermark `up_to`. If the last segment is removed, an empty one takes its place.
        """
        if not self.config.delete:
            return 0
        count = 0
        excess = self.size - self.config.retention_bytes if self.config.retention_bytes >= 0 else 0
        for index, segment in enumerate(self._segments):
            end = self._bases[index + 1] if index + 1 < len(self._bases) else self.end_offset
            if end > up_to or end == segment.base_offset:
                break
            too_old = 0 <= self.config.retention_ms < now_ms - segment.last_time
            if not too_old and excess < segment.size:
                break
            excess -= segment.size
            count += 1
        if not count:
            return 0
        if count == len(self._segments):
            self.roll(now_ms)
        self.advance_start(self._bases[count], now_ms)
        return count

    def compact(self, now_ms: int, up_to: int, *, force: bool = False) -> int:
        """Remove records that a later record of the same key supersedes; return the bytes freed.

        Do nothing unless `cleanup.policy` includes "compact". Segments are compacted below the last stable offset
        `up_to`, never the last segment, once the dirty part exceeds `min.cleanable.dirty.ratio` or
        `max.compaction.lag.ms`. `force` compacts all segments below `up_to` at once. Memory: the keys, and one batch.
        """
        if not self.config.compact:
            return 0
        if force and len(self._segments[-1]) and self.end_offset <= up_to:
            self.roll(now_ms)
        run = Compaction(self._segments, self._compacted_to, self.start_offset, self.producers, self.config, now_ms)
        count = run.count_cleanable(up_to, even_young=force)
        if not count or not (force or run.is_due(count)):
            return 0
        before = self.size
        compacted_to = self._bases[count]
        for group in run.groups(count):
            target = self._make_cleaned(group[0].base_offset, now_ms)
            try:
                run.fill(target, group)
            except BaseException:
                target.discard()
                raise
            self._replace(group, target, now_ms)
        self._compacted_to = compacted_to
        return before - self.size

    def _make_cleaned(self, base_offset: int, now_ms: int) -> Segment:
        """Return an empty segment for compacted batches. The segment is not part of the log yet."""
        return Segment(base_offset, now_ms)

    def _replace(self, group: list[Segment], target: Segment, now_ms: int) -> None:
        """Replace the segments of `group` by `target`, their compacted segment."""
        first = self._bases.index(group[0].base_offset)
        self._segments[first : first + len(group)] = [target]
        self._bases[first : first + len(group)] = [target.base_offset]
        for segment in group[1:]:
            del self._snapshots[segment.base_offset]
        self.size += target.size - sum(segment.size for segment in group)
        self._remove(group, now_ms)

    def _remove_first(self, count: int, now_ms: int) -> None:
        segments = self._segments[:count]
        for segment in segments:
            self._snapshots.pop(segment.base_offset, None)
            self.size -= segment.size
        del self._segments[:count], self._bases[:count]
        self._remove(segments, now_ms)

    def _remove(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Discard segments that are no longer part of the log."""
        for segment in segments:
            segment.close()

    def close(self) -> None:
        """Close the log. It cannot be used afterwards."""
        for segment in self._segments:
            segment.close()

    def delete(self, now_ms: int) -> None:
        """Delete the log, after its topic or this replica was deleted."""
        self.close()

    # Producers and transactions

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that wrote nothing for `producer.id.expiration.ms`; return how many.

        Keep producers that have an open transaction.
        """
        return self.producers.expire(now_ms, self.config.producer_expiration_ms)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the last stable offset, at which read_committed readers stop.

        This is the first offset of the earliest transaction that is open or whose marker is at or above the high
        watermark. Without such a transaction it is the high watermark. If the transaction's first records were
        deleted, it is the log start.
        """
        producers = self.producers
        if not (producers.open or producers.ended):
            return high_watermark
        unstable = producers.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else min(max(unstable, self.start_offset), high_watermark)


def _marker_in(batch: Batch) -> Marker | None:
    """Return the marker in a control batch; None for a batch of data, or a control batch that compaction emptied."""
    if batch.producer_id == NO_PRODUCER or not batch.is_control or not batch.record_count:
        return None
    return marker_of(batch)
