"""One partition for one share group, at the partition's leader. Kafka: `SharePartition`.

A share partition starts from the state that the share coordinator has stored. Each acknowledgement and release is
stored there before it takes effect: until then its records can be neither acquired nor acknowledged, and a failed write
restores their former state. The expiry of a lock takes effect at once. Acquisitions are not stored: after a change of
the leader, acquired records are available again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.shares.acquisition import AcquiredRecords, Acquisition, Offsets
from abeyant.broker.shares.lock import AcquisitionLock
from abeyant.broker.shares.persister import Persister, Then
from abeyant.broker.shares.settings import ShareSettings
from abeyant.broker.shares.spans import RecordState, Span, Spans, StateBatch
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.replica.partition import Partition

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)  # types of acknowledgement
_STATES = {
    GAP: RecordState.ARCHIVED, ACCEPT: RecordState.ACKNOWLEDGED, RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}  # fmt: skip


class Acknowledgement(NamedTuple):
    """An acknowledgement of offsets, `first` and `last` included. `types` has one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Phase(Enum):
    """The states of a share partition."""

    LOADING = "loading"
    ACTIVE = "active"
    FENCED = "fenced"
    """Closed: another leader took over, no member of the group fetches here any more, or loading the state failed."""


class SharePartition:
    """The state of one partition's records for one group. Use from the loop's thread only."""

    def __init__(self, broker: Broker, group: str, partition: Partition, settings: ShareSettings) -> None:
        """Start without state; `load` reads it."""
        self.group = group
        self.partition = partition
        self.phase = Phase.LOADING
        self.leader_epoch = partition.state.leader_epoch
        self.state_epoch = 0
        self.start = 0  # the offset of the first record that may still be delivered
        self.spans = Spans()
        self.settings = settings
        self._broker = broker
        self._persister: Persister
        self._look_for_available = False  # False: no span is available, only later offsets

    def __repr__(self) -> str:
        return f"<SharePartition {self.group} {self.partition} {self.phase.value} from {self.start}: {len(self.spans)}>"

    @property
    def next(self) -> int:
        """Return the first offset that has never been in flight."""
        return max(self.start, self.spans[-1].last + 1) if self.spans else self.start

    @property
    def in_flight(self) -> int:
        """Return the number of records in flight."""
        return self.next - self.start if self.spans else 0

    @property
    def delivery_complete(self) -> int:
        """Return the number of records in flight that are never delivered again. O(spans)."""
        return sum(span.last - max(span.first, self.start) + 1 for span in self.spans if span.state.terminal)

    @property
    def readable_to(self) -> int:
        """Return the offset before which members may read: by `share.isolation.level`."""
        committed = self.settings.read_committed
        return self.partition.last_stable_offset if committed else self.partition.high_watermark

    def available_bytes(self) -> int:
        """Return the number of readable bytes from the next offset to fetch."""
        offset, end = self.fetch_offset(), self.readable_to
        log = self.partition.log
        return log.bytes_between(offset, end) if log.start_offset <= offset < end else 0

    # -- from and to the share coordinator

    def load(self, persister: Persister, reset: Callable[[], int], then: Then) -> None:
        """Read the stored state, then call `then`. `reset` returns the start offset if no state is stored."""
        self._persister = persister

        def read(error: ApiError | None, state: Any) -> None:
            if self.phase is not Phase.LOADING:
                then(ApiError(ErrorCode.not_leader_or_follower))
            elif error is not None:
                self.phase = Phase.FENCED
                then(error)
            else:
                start = reset() if state.start_offset == -1 else state.start_offset
                self._restore(start, state.state_epoch, state.state_batches)
                then(None)

        persister.read(self, read)

    def _restore(self, start: int, epoch: int, batches: Iterable[Any]) -> None:
        self.start = start
        self.state_epoch = epoch
        for batch in batches:
            first = max(batch.first_offset, self.next)
            if first > batch.last_offset:
                continue
            if first > self.next:  # acquired before, and not acknowledged
                gap = (self.next, first - 1)
                self.spans.append(Span(*gap, RecordState.AVAILABLE, 0, gap))
            offsets = (first, batch.last_offset)
            self.spans.append(Span(*offsets, RecordState(batch.delivery_state), batch.delivery_count, offsets))
        self._look_for_available = True
        self.phase = Phase.ACTIVE
        self._advance()

    def fence(self) -> None:
        """Stop: release all locks, and refuse further acquisitions and acknowledgements."""
        self.phase = Phase.FENCED
        self.spans.clear()
        self._check_fetches()

    def _write(self, batches: Sequence[StateBatch], then: Then) -> None:
        self._persister.write(self, batches, then)

    # -- acquire

    def fetch_offset(self) -> int:
        """Return the first available offset, to read from. O(spans) after records were released, else O(1)."""
        if self._look_for_available:
            for span in self.spans:
                if span.acquirable and span.last >= self.start:
                    return max(span.first, self.start)
            self._look_for_available = False
        return self.next

    @property
    def acquirable(self) -> bool:
        """Return whether a member could acquire a record now, provided that the log has a record to read."""
        if self.phase is not Phase.ACTIVE:
            return False
        return self.fetch_offset() != self.next or self.in_flight < self.settings.max_locks

    def deliver(
        self,
        member: str,
        client_id: str,
        read_from: int,
        batches: Sequence[Offsets],
        *,
        limit: int,
        strict: bool,
        batch_size: int,
    ) -> list[AcquiredRecords]:
        """Acquire up to `limit` records of the batches that were read from offset `read_from`. See `Acquisition`."""
        if self.phase is not Phase.ACTIVE or limit <= 0 or not batches or batches[-1][1] < self.start:
            return []
        last = batches[-1][1]
        room = self.settings.max_locks - self.in_flight
        if room <= 0:
            limit = min(limit, self.next - read_from)
            last = min(last, self.next - 1)
            if limit <= 0:
                return []
        else:
            limit = min(limit, room)
        base = batches[0][0]
        self._archive(read_from, base - 1, RecordState.AVAILABLE)  # the log does not have them any more
        acquisition = Acquisition(
            self.spans, member, lambda *offsets: self._lock(member, client_id, *offsets), limit=limit, strict=strict,
            max_deliveries=self.settings.delivery_limit, batch_size=batch_size,
        )  # fmt: skip
        acquisition.again(max(base, self.start), last)
        first = max(self.next, base)
        was_empty = not self.spans
        acquisition.new(first, last, batches)
        if was_empty and self.spans:
            self.start = first
        return acquisition.acquired

    def _lock(self, member: str, client_id: str, first: int, last: int, records: int) -> AcquisitionLock:
        keys = (self.partition.key, (self.group, member), ("offsets", f"{first}-{last}"))
        broker = self._broker
        return AcquisitionLock(
            self.settings.lock_seconds, first, last, records, keys, client_id, broker.now(),
            broker.share_lock_purgatory, self._expire,
        )  # fmt: skip

    def archive_aborted(self, acquired: list[AcquiredRecords], batches: Iterable[Offsets]) -> list[AcquiredRecords]:
        """Archive acquired records in `batches`, which are of aborted transactions. Return `acquired` without them."""
        for first, last in batches:
            self._archive(first, last, RecordState.ACQUIRED)
            acquired = [part for one in acquired for part in _without(one, first, last)]
        self._advance()
        return acquired

    def _archive(self, first: int, last: int, state: RecordState) -> None:
        """Archive the records between two offsets, both included, whose state is `state`."""
        for span in self.spans.between(first, last) if first <= last else ():
            if span.state is state and span.previous is None:
                part = self.spans.cut(span, max(span.first, first), min(span.last, last))
                part.unlock()
                part.state = RecordState.ARCHIVED
                part.member = ""
                self._look_for_available = True

    # -- acknowledge

    def acknowledge(self, member: str, batches: Iterable[Acknowledgement], then: Then) -> None:
        """Apply a member's acknowledgements: all of them, or none. Call `then` when they are stored or have failed."""
        changed: list[Span] = []
        try:
            for batch in batches:
                self._acknowledge(member, batch, changed)
        except ApiError as error:
            self._undo(changed)
            then(error)
            return
        self._store(changed, then)

    def _acknowledge(self, member: str, batch: Acknowledgement, changed: list[Span]) -> None:
        if batch.last < self.start:
            return
        for first, last, kind in _runs(batch):
            for span in self._acknowledged_spans(max(first, self.start), last):
                _require_acquired(span, member)
                part = self.spans.cut(span, max(span.first, first), min(span.last, last))
                if kind == RENEW:
                    self._renew(part, member)
                else:
                    self._change(part, _STATES[kind])
                    changed.append(part)

    def _acknowledged_spans(self, first: int, last: int) -> list[Span]:
        if first > last:
            return []
        if not self.spans or first < self.spans[0].first:
            raise ApiError(
                ErrorCode.invalid_record_state,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        if last >= self.next:
            which = "first" if first >= self.next else "last"
            raise ApiError(
                ErrorCode.invalid_request,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
        return self.spans.between(first, last)

    def _renew(self, span: Span, member: str) -> None:
        if not self.settings.renew:
            raise ApiError(ErrorCode.invalid_record_state, "Renewing acquisition locks is not enabled for the group.")
        client_id = "" if span.lock is None else span.lock.client_id
        span.unlock()
        span.lock = self._lock(member, client_id, span.first, span.last, len(span))

    def release(self, member: str, then: Then) -> None:
        """Release a member's acquired records, as its session has ended. Call `then` when the release is stored."""
        changed = [
            span
            for span in self.spans
            if span.state is RecordState.ACQUIRED and span.member == member and span.previous is None
        ]
        for span in changed:
            self._change(span, RecordState.AVAILABLE)
        self._store(changed, then)

    def _change(self, span: Span, state: RecordState) -> None:
        """Begin a change of acquired records. At the delivery limit, archive records instead of releasing them."""
        if state is RecordState.AVAILABLE and (
            span.deliveries >= self.settings.delivery_limit or span.last < self.start
        ):
            state = RecordState.ARCHIVED
        span.previous = span.member
        span.state = state
        span.member = ""

    def _store(self, changed: list[Span], then: Then) -> None:
        if not changed:
            then(None)
            return

        def written(error: ApiError | None) -> None:
            if error is None:
                self._complete(changed)
            else:
                self._undo(changed)
            then(error)
            self._check_fetches()

        self._write([span.stored() for span in changed], written)

    def _complete(self, changed: Iterable[Span]) -> None:
        for span in changed:
            span.previous = None
            span.unlock()
            self._look_for_available = True
        self._advance()

    def _undo(self, changed: Iterable[Span]) -> None:
        """Undo changes that are not stored: the records are acquired again, or released if their lock has expired."""
        for span in changed:
            if span.lock is not None:
                span.state, span.member = RecordState.ACQUIRED, span.previous or ""
            else:
                self._give_back(span)
            span.previous = None

    def _give_back(self, span: Span) -> None:
        span.state = self._released(span)
        span.member = ""
        self._look_for_available = True

    def _released(self, span: Span) -> RecordState:
        """Return the state of a released span: archived at the delivery limit or before the start, else available."""
        exhausted = span.deliveries >= self.settings.delivery_limit or span.last < self.start
        return RecordState.ARCHIVED if exhausted else RecordState.AVAILABLE

    # -- time, and the start of the log

    def _expire(self, lock: AcquisitionLock) -> None:
        """Release the records that are still acquired under an expired lock."""
        expired = []
        for span in self.spans.between(lock.first, lock.last):
            if span.lock is not lock:
                continue
            span.lock = None
            if span.previous is None:
                self._give_back(span)
                expired.append(span.stored())
        if expired and self.phase is Phase.ACTIVE:
            self._write(expired, lambda _: self._advance())
            self._advance()
            self._check_fetches()

    def move_start(self, offset: int) -> None:
        """Forget the records before `offset`, which the log does not have any more."""
        if offset > self.start and self.phase is Phase.ACTIVE:
            self.spans.drop_before(offset)
            self.start = offset
            self._advance()

    def _advance(self) -> None:
        """Move the start past all records that are never delivered again."""
        start = self.spans.drop_settled()
        if start is not None:
            self.start = max(start, self.start)

    def _check_fetches(self) -> None:
        self._broker.share_fetch_purgatory.check_and_complete(self)


def _runs(batch: Acknowledgement) -> Iterable[tuple[int, int, int]]:
    """Return the runs of offsets with the same type of acknowledgement: first offset, last offset, type."""
    if len(batch.types) == 1:
        return [(batch.first, batch.last, batch.types[0])]
    runs: list[tuple[int, int, int]] = []
    for offset, kind in enumerate(batch.types, batch.first):
        if runs and runs[-1][2] == kind:
            runs[-1] = (runs[-1][0], offset, kind)
        else:
            runs.append((offset, offset, kind))
    return runs


def _require_acquired(span: Span, member: str) -> None:
    """Raise ApiError unless the member has acquired these records."""
    if span.previous is not None:
        message = "The record state is invalid. The acknowledgement of delivery could not be completed."
    elif span.state is not RecordState.ACQUIRED:
        message = "The batch cannot be acknowledged. The batch is not in the acquired state."
    elif span.member != member:
        message = "Member is not the owner of batch record"
    else:
        return
    raise ApiError(ErrorCode.invalid_record_state, message)


def _without(acquired: AcquiredRecords, first: int, last: int) -> Iterable[AcquiredRecords]:
    """Return the parts of a run of offsets that are outside of `first` to `last`."""
    if acquired.last < first or acquired.first > last:
        return [acquired]
    parts = (acquired._replace(last=first - 1), acquired._replace(first=last + 1))
    return [part for part in parts if part.first <= part.last]
