"""The records in flight of a share partition: runs of offsets in one state, in order and without gaps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from abeyant.broker.shares.lock import AcquisitionLock

_FIRST = attrgetter("first")


class RecordState(IntEnum):
    """The state of a record in flight, with Kafka's number for it."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def terminal(self) -> bool:
        """Return whether the record is never delivered again."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class StateBatch(NamedTuple):
    """A run of offsets with one state and delivery count, as the share coordinator stores it."""

    first: int
    last: int
    state: int
    deliveries: int


class Span:
    """A run of offsets `first` to `last`, both included, in one state.

    `deliveries` counts how often the records were delivered. Acquired records have a `member` and a `lock`. `batch` is
    the first and last offset of the batch in which the records were first acquired. While a change of state is being
    written, `previous` is the former member; `lock` is None then if the lock has expired meanwhile.
    """

    __slots__ = ("batch", "deliveries", "first", "last", "lock", "member", "previous", "state")

    def __init__(self, first: int, last: int, state: RecordState, deliveries: int, batch: tuple[int, int]) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.deliveries = deliveries
        self.batch = batch
        self.member = ""
        self.lock: AcquisitionLock | None = None
        self.previous: str | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"<Span {self.first}-{self.last} {self.state.name} {self.deliveries}>"

    @property
    def acquirable(self) -> bool:
        """Return whether a member may acquire the records now."""
        return self.state is RecordState.AVAILABLE and self.previous is None

    def unlock(self) -> None:
        """Release the span's records from their lock. A lock with no records left is cancelled."""
        lock, self.lock = self.lock, None
        if lock is not None:
            lock.release(len(self))

    def stored(self) -> StateBatch:
        """Return the span as the share coordinator stores it."""
        return StateBatch(self.first, self.last, self.state.value, self.deliveries)


class Spans:
    """A list of spans in the order of their offsets. Finding a span is O(log spans)."""

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def __len__(self) -> int:
        return len(self._spans)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def __getitem__(self, index: int) -> Span:
        return self._spans[index]

    def append(self, span: Span) -> None:
        """Add a span after all others."""
        self._spans.append(span)

    def between(self, first: int, last: int) -> list[Span]:
        """Return the spans that overlap `first` to `last`, both included."""
        start = max(bisect_right(self._spans, first, key=_FIRST) - 1, 0)
        end = bisect_right(self._spans, last, key=_FIRST)
        return [span for span in self._spans[start:end] if span.last >= first]

    def cut(self, span: Span, first: int, last: int) -> Span:
        """Split `span` so that one span has exactly the offsets `first` to `last`, and return that span. O(spans)."""
        if first > span.first:
            span = self._split(span, first)
        if last < span.last:
            self._split(span, last + 1)
        return span

    def _split(self, span: Span, offset: int) -> Span:
        """End `span` before `offset`, and return a new span that begins at `offset`."""
        upper = Span(offset, span.last, span.state, span.deliveries, span.batch)
        upper.member, upper.lock, upper.previous = span.member, span.lock, span.previous
        span.last = offset - 1
        self._spans.insert(bisect_right(self._spans, span.first, key=_FIRST), upper)
        return upper

    def drop_before(self, offset: int) -> None:
        """Drop all records before `offset`, and release their locks. O(spans)."""
        count = 0
        for span in self._spans:
            if span.first >= offset:
                break
            if span.last >= offset:
                if span.lock is not None:
                    span.lock.release(offset - span.first)
                span.first = offset
                break
            span.unlock()
            count += 1
        del self._spans[:count]

    def drop_settled(self) -> int | None:
        """Drop the leading spans whose records are never delivered again.

        Return the offset after the dropped spans, or None if no span was dropped.
        """
        count = 0
        for span in self._spans:
            if not span.state.terminal or span.previous is not None:
                break
            count += 1
        if not count:
            return None
        next_offset = self._spans[count - 1].last + 1
        del self._spans[:count]
        return self._spans[0].first if self._spans else next_offset

    def clear(self) -> None:
        """Drop all spans, and release their locks."""
        for span in self._spans:
            span.unlock()
        self._spans.clear()
