"""The read side of a log: read batches, and look up offsets, timestamps and sizes, each in O(log batches)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from abeyant.broker.log import validation
from abeyant.broker.log.batch import Batch
from abeyant.broker.log.errors import OffsetOutOfRangeError
from abeyant.broker.log.producers import Producers
from abeyant.broker.log.records import Record
from abeyant.broker.log.segment import Segment

_ALL = 1 << 62  # bytes


class FoundOffset(NamedTuple):
    """The record that a lookup by time has found: its timestamp (ms), offset and leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class ReadableLog:
    """The read side of a log, from `start_offset` to `end_offset`. `Log` adds the write side."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    producers: Producers
    _segments: list[Segment]
    _bases: list[int]  # their base offsets

    def read(self, offset: int, max_bytes: int, up_to: int, *, min_one: bool) -> bytes:
        """Return the bytes of whole batches, from the batch that holds `offset` to the last one below `up_to`.

        Stop before `max_bytes` are exceeded; with `min_one` the first batch may exceed them. Raises
        OffsetOutOfRangeError if `offset` is below the log start or above the log end. A single batch is not copied.
        """
        tail = self._segments[-1].tail
        if tail is not None and tail.base_offset == offset >= self.start_offset and tail.next_offset == up_to:
            return tail.data if tail.size <= max_bytes or min_one else b""  # most reads are of the last batch
        parts = [segment.read(first, last) for segment, first, last in self._runs(offset, max_bytes, up_to, min_one)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_batches(self, offset: int, max_bytes: int, up_to: int, *, min_one: bool) -> list[Batch]:
        """Return the same batches as `read`, as objects. A follower in this process shares their bytes."""
        tail = self._segments[-1].tail
        if tail is not None and tail.base_offset == offset >= self.start_offset and tail.next_offset == up_to:
            return [tail] if tail.size <= max_bytes or min_one else []  # as in `read`
        return [
            batch
            for segment, first, last in self._runs(offset, max_bytes, up_to, min_one)
            for batch in segment.batches(first, last)
        ]

    def _runs(self, offset: int, max_bytes: int, up_to: int, min_one: bool) -> Iterator[tuple[Segment, int, int]]:
        self._check_offset(offset)
        left = max_bytes
        for segment in self._segments[self._segment_index(offset) :]:
            first = segment.index_of(offset)
            if first == len(segment):
                continue
            below = segment.index_of(up_to)
            last = segment.index_within(first, below, left)
            if last == first and min_one and first < below:
                last = first + 1
            if last > first:
                yield segment, first, last
            if last < len(segment):
                return
            left -= segment.position(last) - segment.position(first)
            min_one = False

    def bytes_between(self, offset: int, up_to: int) -> int:
        """Return the size in bytes of the batches that `read` returns for `offset` and `up_to` without a size limit.

        O(log batches), plus O(segments) between the two offsets.
        """
        if up_to <= offset or offset >= self.end_offset:
            return 0
        tail = self._segments[-1].tail
        if tail is not None and tail.base_offset == offset and tail.next_offset == up_to:
            return tail.size
        count = 0
        for segment in self._segments[self._segment_index(offset) :]:
            if segment.base_offset >= up_to:
                break
            first = segment.index_of(offset)
            count += max(segment.position(segment.index_of(up_to)) - segment.position(first), 0)
        return count

    def end_of_read(self, offset: int, size: int) -> int:
        """Return the base offset of the batch after the `size` bytes that `read` returned from `offset`.

        O(log batches), plus O(segments) that were read.
        """
        for segment in self._segments[self._segment_index(offset) :]:
            first = segment.index_of(offset)
            last = segment.index_within(first, len(segment), size)
            if last < len(segment):
                return segment.first_offset(last)
            size -= segment.position(last) - segment.position(first)
        return self.end_offset

    def _check_offset(self, offset: int) -> None:
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(
                f"Received request for offset {offset} for partition {self.topic}-{self.partition}, but we only have"
                f" log segments in the range {self.start_offset} to {self.end_offset}."
            )

    def _segment_index(self, offset: int) -> int:
        return max(bisect_right(self._bases, offset) - 1, 0)

    def _batches(self, offset: int) -> Iterator[Batch]:
        for segment in self._segments[self._segment_index(offset) :]:
            yield from segment.batches(segment.index_of(offset))

    def records(self, up_to: int, *, aborted: bool = True) -> Iterator[Record]:
        """Yield the decoded records from the log start to the offset `up_to`, without control records. O(bytes).

        Without `aborted`, also skip the records of aborted transactions.
        """
        if self.start_offset >= up_to:
            return
        skipped = defaultdict(list)
        for one in () if aborted else self.producers.aborted_between(self.start_offset, up_to):
            skipped[one.producer_id].append(range(one.first_offset, one.last_offset))
        for batch in self.read_batches(self.start_offset, _ALL, up_to, min_one=True):
            if batch.is_control:
                continue
            if batch.is_transactional and any(batch.base_offset in span for span in skipped[batch.producer_id]):
                continue
            yield from (record for record in validation.records_of(batch) if self.start_offset <= record.offset < up_to)

    def offset_for_time(self, timestamp_ms: int) -> FoundOffset | None:
        """Return the record of the lowest offset with a timestamp of at least `timestamp_ms`; None if there is none."""
        for segment in self._segments[self._segment_index(self.start_offset) :]:
            if segment.max_timestamp < timestamp_ms:
                continue
            index = segment.index_of(self.start_offset)
            while (index := segment.index_of_time(timestamp_ms, index)) < len(segment):
                batch = segment.batch(index)
                for record in validation.records_of(batch):
                    if record.timestamp >= timestamp_ms and record.offset >= self.start_offset:
                        return FoundOffset(record.timestamp, record.offset, epoch_of(batch))
                index += 1
        return None

    def max_timestamp(self) -> FoundOffset | None:
        """Return the first record with the greatest timestamp (ListOffsets' -3); None if none has a timestamp."""
        greatest = max(self._segments, key=_max_timestamp)
        if greatest.max_timestamp < 0:
            return None
        batch = greatest.batch(greatest.index_of_time(greatest.max_timestamp, 0))
        for record in validation.records_of(batch):
            if record.timestamp == batch.max_timestamp:
                return FoundOffset(record.timestamp, record.offset, epoch_of(batch))
        return None


def epoch_of(batch: Batch) -> int | None:
    """Return the leader epoch of a batch; None if it is unknown."""
    epoch: int = batch.leader_epoch
    return epoch if epoch >= 0 else None


def _max_timestamp(segment: Segment) -> int:
    return segment.max_timestamp
