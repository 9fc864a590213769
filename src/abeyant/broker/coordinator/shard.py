"""The coordinator's state in one partition of its topic, while this broker leads that partition.

The log is the source of truth: `load` replays it; `write` appends records, applies them, and calls back once every
in-sync replica has them (K1). A shard never rolls back: records are lost only with the leadership, and then the shard
is dropped and the next leader loads the log. A write waits in the Produce purgatory, as acks=all produces do (K7).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from abeyant.broker.delayed.produce import PendingAck, wait_for_acks
from abeyant.broker.errors import ApiError
from abeyant.broker.log import Batch, LogError
from abeyant.broker.log.batch import NO_PRODUCER, make_batch
from abeyant.broker.log.markers import marker_of
from abeyant.broker.log.records import Record, encode
from abeyant.broker.log.validation import records_of
from abeyant.broker.wire.schema import ErrorCode
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.replica.partition import Partition

Entry = tuple[bytes, bytes | None]
"""A record's key and value; a value of None is a tombstone."""

_AT_ONCE = 1 << 20  # bytes to load in one turn of the loop
_TRANSACTIONAL = 0x10

# Errors of an append, grouped by the error for the coordinator's client.
# Kafka: `CoordinatorOperationExceptionHelper`
_MOVED = (ErrorCode.not_leader_or_follower, ErrorCode.kafka_storage_error)
_NOT_AVAILABLE = (
    ErrorCode.unknown_topic_or_partition, ErrorCode.not_enough_replicas, ErrorCode.not_enough_replicas_after_append,
    ErrorCode.request_timed_out,
)  # fmt: skip
_TOO_LARGE = (ErrorCode.message_too_large, ErrorCode.record_list_too_large)


class Shard:
    """A coordinator's state for the keys of one partition. Use from the loop's thread only.

    Subclasses define `replay`, `end_transaction`, `begin` and `end`.
    """

    def __init__(self, broker: Broker, partition: Partition) -> None:
        """Start empty; `load` fills it."""
        self.broker = broker
        self.partition = partition
        self.loading = True
        self._next = partition.log.start_offset

    # -- for subclasses

    def replay(self, record: Record, batch: Batch) -> None:
        """Apply a record to the state. The record comes from the log or was just written."""
        raise NotImplementedError

    def end_transaction(self, producer_id: int, offset: int, *, commits: bool) -> None:
        """Apply the end of a transaction that wrote to this partition. `offset` is the offset of its marker."""

    def begin(self) -> None:
        """Start timers, after the whole log has been replayed."""

    def end(self) -> None:
        """Stop after losing the leadership: cancel timers, and answer pending requests with NOT_COORDINATOR."""

    # -- the log

    def load(self) -> None:
        """Replay the log, 1 MiB in each turn of the loop, then call `begin`."""
        if not self.loading or not self.partition.leads:
            return
        log = self.partition.log
        remaining = _AT_ONCE
        while self._next < log.end_offset:
            if remaining <= 0:
                asyncio.get_running_loop().call_soon(self.broker.run, self.load)
                return
            batches = log.read_batches(self._next, remaining, log.end_offset, min_one=True)
            if not batches:
                break  # compaction left a gap at the end
            for batch in batches:
                self._replay_batch(batch)
            remaining -= sum(batch.size for batch in batches)
            self._next = batches[-1].next_offset
        self.loading = False
        self.begin()

    def _replay_batch(self, batch: Batch) -> None:
        if batch.is_control:
            if batch.record_count:  # compaction may have left an empty batch
                self.end_transaction(batch.producer_id, batch.base_offset, commits=marker_of(batch).commits)
            return
        for record in records_of(batch):
            try:
                self.replay(record, batch)
            except Exception:  # noqa: BLE001  one unreadable record must not cost the rest of the log
                logger("broker").exception("%r: skipped unreadable record at offset %d", self.partition, record.offset)

    def write(
        self,
        entries: Sequence[Entry],
        then: Callable[[ErrorCode], object],
        *,
        timeout: float,
        client_id: str = "",
        producer: tuple[int, int] | None = None,
        replayed: bool = True,
    ) -> None:
        """Append one batch of records. Call `then` once, with NONE when every in-sync replica has the batch.

        On failure `then` gets the error for the client: NOT_COORDINATOR if this broker no longer leads;
        COORDINATOR_NOT_AVAILABLE if too few replicas are in sync, or replication takes longer than `timeout` seconds
        (the records stay in the log, and may still take effect); UNKNOWN_SERVER_ERROR for a batch that is too large.

        `then` may be called before this returns. With `producer` (id and epoch) the batch is part of that producer's
        transaction. With `replayed=False` the caller applies the records itself.
        """
        now_ms = self.broker.now_ms()
        records = [Record(index, now_ms, key, value) for index, (key, value) in enumerate(entries)]
        producer_id, epoch = producer or (NO_PRODUCER, -1)
        batch = make_batch(
            encode(records, 0, now_ms), record_count=len(records), base_timestamp=now_ms, max_timestamp=now_ms,
            producer_id=producer_id, producer_epoch=epoch, attributes=_TRANSACTIONAL if producer else 0,
        )  # fmt: skip
        try:
            append_info = self.partition.append(batch.data, all_in_sync=True, from_client=False)
        except ApiError as error:
            then(coordinator_error(error.code))
            return
        except LogError as error:
            then(coordinator_error(ErrorCode(error.code)))
            return
        if replayed:
            stored = batch.at_offset(append_info.base_offset, self.partition.state.leader_epoch)
            for record in records:
                self.replay(record._replace(offset=append_info.base_offset + record.offset), stored)
        ack = PendingAck(self.partition, append_info.last_offset + 1)
        now = self.broker.now()
        wait_for_acks(self.broker, [ack], timeout, client_id, now, lambda: then(coordinator_error(ack.error)))


def ignore(_: ErrorCode) -> None:
    """Ignore the result of a write. If the write failed, housekeeping or the next coordinator repeats it."""


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """Translate the error of an append into the error that the coordinator's client gets."""
    if error in _MOVED:
        return ErrorCode.not_coordinator
    if error in _NOT_AVAILABLE:
        return ErrorCode.coordinator_not_available
    return ErrorCode.unknown_server_error if error in _TOO_LARGE else error
