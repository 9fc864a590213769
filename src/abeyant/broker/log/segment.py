"""A segment of a log. Lookups by offset, byte or time are O(log batches). Retention removes whole segments.

`Segment` keeps its batches in memory, `FileSegment` in `log/files.py` in a file.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from abeyant.broker.log.batch import NO_TIMESTAMP, Batch

LARGEST_OFFSET_DELTA = (1 << 31) - 1  # from the first to the last offset: Kafka's index has 32 bits for it


class Segment:
    """The batches from `base_offset` to the next segment. The index has four columns of one 64-bit number per batch."""

    def __init__(self, base_offset: int, now_ms: int) -> None:
        """Create an empty segment. No batch in it will have an offset below `base_offset`."""
        self.base_offset = base_offset
        self.created_ms = now_ms
        self.modified_ms = now_ms
        self.first_timestamp: int | None = None  # ms: `segment.ms` counts from here, if records have timestamps
        self._data: list[bytes] = []
        self._offsets = array("q")  # base offset of each batch
        self._lasts = array("q")  # last offset of each batch
        self._ends = array("q")  # bytes up to the end of each batch
        self._times = array("q")  # greatest timestamp up to each batch
        self.tail: Batch | None = None  # the last batch, if its bytes are in memory

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._offsets)

    @property
    def size(self) -> int:
        """Return the size of all batches, in bytes."""
        return self._ends[-1] if self._ends else 0

    @property
    def next_offset(self) -> int:
        """Return the offset after the last batch; `base_offset` if there is none."""
        return self._lasts[-1] + 1 if self._lasts else self.base_offset

    @property
    def max_timestamp(self) -> int:
        """Return the greatest timestamp, in ms; -1 if there is none."""
        return self._times[-1] if self._times else -1

    @property
    def last_time(self) -> int:
        """Return the greatest timestamp, in ms; if there is none, the time of the last append."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified_ms

    def append(self, batch: Batch, now_ms: int) -> None:
        """Append a batch whose offset is already set."""
        self._store(batch)
        self._note(batch)
        self.modified_ms = now_ms

    def _note(self, batch: Batch) -> None:
        timestamp: int = batch.max_timestamp
        if self.first_timestamp is None and timestamp >= 0:
            self.first_timestamp = timestamp
        before, latest = (self._ends[-1], self._times[-1]) if self._ends else (0, NO_TIMESTAMP)
        self._times.append(timestamp if timestamp > latest else latest)
        self._offsets.append(batch.base_offset)
        self._lasts.append(batch.last_offset)
        self._ends.append(before + batch.size)

    def index_of(self, offset: int) -> int:
        """Return the index of the first batch that ends at `offset` or later; the number of batches if there is none.

        This is also the number of batches that are wholly below `offset`. O(log batches).
        """
        return bisect_left(self._lasts, offset)

    def index_of_time(self, timestamp: int, since: int) -> int:
        """Return the index of the first batch from index `since` on with a record at `timestamp` (ms) or later.

        Return the number of batches if there is none. O(log batches), plus the older batches from `since` on that
        follow a greater timestamp.
        """
        index = max(bisect_left(self._times, timestamp), since)
        while index < len(self) and self.batch(index).max_timestamp < timestamp:
            index += 1
        return index

    def index_within(self, start: int, end: int, max_bytes: int) -> int:
        """Return the end index of the batches from `start` on that fit into `max_bytes`, or `end`. O(log batches)."""
        return min(bisect_right(self._ends, self.position(start) + max_bytes), end)

    def position(self, index: int) -> int:
        """Return a batch's position in the segment, in bytes."""
        return self._ends[index - 1] if index else 0

    def first_offset(self, index: int) -> int:
        """Return a batch's base offset."""
        return self._offsets[index]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes of the batches [start, end)."""
        if end - start == 1:
            return self._data[start]
        return b"".join(self._data[start:end])

    def batch(self, index: int) -> Batch:
        """Return the batch at `index`."""
        return Batch(self.read(index, index + 1))

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[Batch]:
        """Yield the batches [start, end)."""
        for index in range(start, len(self) if end is None else end):
            yield self.batch(index)

    def truncate(self, count: int) -> None:
        """Keep the first `count` batches."""
        if not count:
            self.first_timestamp = None
        self._drop(count)
        del self._offsets[count:], self._lasts[count:], self._ends[count:], self._times[count:]

    def flush(self) -> None:
        """Do nothing: memory needs no flush."""

    def close(self) -> None:
        """Release the bytes."""
        self.truncate(0)

    def discard(self) -> None:
        """Close and delete a segment that is not part of a log."""
        self.close()

    def _store(self, batch: Batch) -> None:
        self._data.append(batch.data)
        self.tail = batch

    def _drop(self, count: int) -> None:
        del self._data[count:]
        self.tail = None
