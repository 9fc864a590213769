"""Acquire records of a share partition for a member, as Kafka's `SharePartition.acquire` does.

Records that were in flight before are acquired again in the batches of their first acquisition. Records that approach
the delivery limit are acquired in ever smaller numbers and at last alone, so that one bad record does not use up the
deliveries of the other records in its batch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from abeyant.broker.shares.lock import AcquisitionLock
from abeyant.broker.shares.spans import RecordState, Span, Spans

Offsets = tuple[int, int]
"""The first and the last offset of a batch."""


class AcquiredRecords(NamedTuple):
    """A run of offsets, `first` and `last` included, that a member has acquired, each for the `deliveries`th time."""

    first: int
    last: int
    deliveries: int


class Acquisition:
    """The acquisition of records by one member's fetch. `acquired` are the results of `again` and `new`."""

    def __init__(
        self,
        spans: Spans,
        member: str,
        lock: Callable[[int, int, int], AcquisitionLock],
        *,
        limit: int,
        strict: bool,
        max_deliveries: int,
        batch_size: int,
    ) -> None:
        """Acquire at most `limit` records; unless `strict`, acquire whole batches until `limit` is reached (KIP-1206).

        `lock(first, last, records)` starts a lock. Unless `strict`, each lock of new records has at least `batch_size`
        records, except the last lock.
        """
        self.acquired: list[AcquiredRecords] = []
        self._spans = spans
        self._member = member
        self._lock = lock
        self._left = limit
        self._strict = strict
        self._max_deliveries = max_deliveries
        self._batch_size = batch_size
        self._throttled_from = max(2, -(-max_deliveries // 2))

    def again(self, first: int, last: int) -> None:
        """Acquire available records between two offsets, both included, that have been in flight before."""
        available = [span for span in self._spans.between(first, last) if span.acquirable]
        for _, group in groupby(available, attrgetter("batch")):
            spans = [self._spans.cut(span, max(span.first, first), min(span.last, last)) for span in group]
            throttled = any(span.deliveries >= self._throttled_from for span in spans)
            if self._left <= 0 or (throttled and self.acquired):
                self._left = 0
                return
            selected = self._choose(spans) if throttled or self._strict else spans
            if selected:
                self._take(selected)
                if throttled:
                    self._left = 0
                    return

    def new(self, first: int, last: int, batches: Sequence[Offsets]) -> None:
        """Acquire records between two offsets, both included, that have never been in flight."""
        if self._left <= 0 or first > last:
            return
        if self._left <= last - first:
            target = first + self._left - 1
            last = target if self._strict else min(_end_of_batch(target, batches), last)
        for batch in [(first, last)] if self._strict else _split(first, last, batches, self._batch_size):
            span = Span(*batch, RecordState.AVAILABLE, 0, batch)
            self._spans.append(span)
            self._take([span])

    def _choose(self, spans: Iterable[Span]) -> list[Span]:
        """Select the spans of one batch that may be acquired together, by the limit and the spans' delivery counts."""
        selected: list[Span] = []
        count = 0
        most = None
        alone = self._max_deliveries - 1 if self._max_deliveries > 2 else None
        for span in spans:
            if span.deliveries == alone and count:
                break
            if most is None and span.deliveries >= self._throttled_from:
                size = span.batch[1] - span.batch[0] + 1
                most = max(1, size >> (span.deliveries - self._throttled_from + 1))
            room = sys.maxsize if most is None else most - count
            if self._strict:
                room = min(room, self._left - count)
            if span.deliveries == alone:
                room = min(room, 1)
            if room <= 0:
                break
            part = self._spans.cut(span, span.first, min(span.last, span.first + room - 1))
            selected.append(part)
            count += len(part)
            if len(part) == room:
                break
        return selected

    def _take(self, spans: list[Span]) -> None:
        """Acquire spans of one batch, under one lock."""
        records = sum(map(len, spans))
        lock = self._lock(spans[0].first, spans[-1].last, records)
        runs: list[AcquiredRecords] = []
        for span in spans:
            span.state = RecordState.ACQUIRED
            span.deliveries += 1
            span.member = self._member
            span.lock = lock
            if runs and runs[-1].last == span.first - 1 and runs[-1].deliveries == span.deliveries:
                runs[-1] = runs[-1]._replace(last=span.last)
            else:
                runs.append(AcquiredRecords(span.first, span.last, span.deliveries))
        self.acquired += runs
        self._left -= records


def _end_of_batch(offset: int, batches: Iterable[Offsets]) -> int:
    """Return the last offset of the batch that contains `offset`; `offset` itself if no batch does."""
    return next((last for base, last in batches if base <= offset <= last), offset)


def _split(first: int, last: int, batches: Iterable[Offsets], size: int) -> list[Offsets]:
    """Split the offsets `first` to `last` where batches begin. Return the first and the last offset of each part.

    Each part but the last has at least `size` offsets.
    """
    size = max(size, 1)  # clients may send 0 or less
    if last - first < size:
        return [(first, last)]
    parts = []
    for base, _ in batches:
        if base > last:
            break
        if base - first >= size:
            parts.append((first, base - 1))
            first = base
    return [*parts, (first, last)]
