"""What one partition of a coordinator's topic holds, for as long as this broker leads it.

The topic is the truth and a shard is what it says: `load` reads the log from its start to its end and has every record
replayed; `write` appends records, has them replayed too, and tells once every in-sync replica has them (K1). A shard
never takes anything back: what was appended is lost only with the leadership, and then the shard is dropped, and the
next leader reads what there is.

What waits for the replicas is an operation in the Produce purgatory, as a client's acks=all produce is (K7).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from abeyant.broker.delayed.produce import DelayedProduce, PendingAck
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
"""A record's key and value; without a value what was said of the key before is forgotten."""

_AT_ONCE = 1 << 20  # bytes that are read in one turn of the loop
_TRANSACTIONAL = 0x10

# What an append's error is to a coordinator's client. Kafka: `CoordinatorOperationExceptionHelper`
_MOVED = (ErrorCode.not_leader_or_follower, ErrorCode.kafka_storage_error)
_NOT_AVAILABLE = (
    ErrorCode.unknown_topic_or_partition, ErrorCode.not_enough_replicas, ErrorCode.not_enough_replicas_after_append,
    ErrorCode.request_timed_out,
)  # fmt: skip
_TOO_LARGE = (ErrorCode.message_too_large, ErrorCode.record_list_too_large)


class Shard:
    """A part of a coordinator's state: that of the keys in one partition. Use from the loop's thread only.

    Subclasses have `replay`, `ended`, `begin` and `end`.
    """

    def __init__(self, broker: Broker, partition: Partition) -> None:
        """Know nothing yet: see `load`."""
        self.broker = broker
        self.partition = partition
        self.loading = True
        self._next = partition.log.start_offset

    # -- what a coordinator does

    def replay(self, record: Record, batch: Batch) -> None:
        """Learn what a record says: one that was found in the log, or that `write` has just put there."""
        raise NotImplementedError

    def ended(self, producer_id: int, place: int, *, commits: bool) -> None:
        """A transaction that wrote here is over: its marker is at `place` in the log."""

    def begin(self) -> None:
        """All there is in the log has been replayed: what is timed starts now."""

    def end(self) -> None:
        """This broker does not lead the partition any more: who waits is told NOT_COORDINATOR, and no time runs."""

    # -- the log

    def load(self) -> None:
        """Replay the log from its start to its end, 1 MiB in each turn of the loop; then `begin`."""
        if not self.loading or not self.partition.leads:
            return
        log = self.partition.log
        left = _AT_ONCE
        while self._next < log.end_offset:
            if left <= 0:
                asyncio.get_running_loop().call_soon(self.broker.run, self.load)
                return
            batches = log.read_batches(self._next, left, log.end_offset, min_one=True)
            if not batches:
                break  # nothing but a gap that compaction has left
            for batch in batches:
                self._replay_batch(batch)
            left -= sum(batch.size for batch in batches)
            self._next = batches[-1].next_offset
        self.loading = False
        self.begin()

    def _replay_batch(self, batch: Batch) -> None:
        if batch.is_control:
            if batch.record_count:  # compaction may have left nothing else
                self.ended(batch.producer_id, batch.base_offset, commits=marker_of(batch).commits)
            return
        for record in records_of(batch):
            try:
                self.replay(record, batch)
            except Exception:  # noqa: BLE001  the rest of the log is not to be lost for one record that nobody can read
                logger("broker").exception("%r: the record at offset %d is left out", self.partition, record.offset)

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
        """Append one batch of records, and call `then` once: with NONE when every in-sync replica has it.

        Else with what a coordinator's client is told: NOT_COORDINATOR, where this broker does not lead any more;
        COORDINATOR_NOT_AVAILABLE, where there are too few replicas or they take longer than `timeout` seconds (what
        was appended stays then, and may count yet); UNKNOWN_SERVER_ERROR for what is too large.

        `then` may be called before this returns. With `producer`, its id and epoch, the batch is part of that
        producer's transaction. With `replayed` False the caller has it in its state already, or will have.
        """
        now = self.broker.now_ms()
        records = [Record(index, now, key, value) for index, (key, value) in enumerate(entries)]
        producer_id, epoch = producer or (NO_PRODUCER, -1)
        batch = make_batch(
            encode(records, 0, now), record_count=len(records), base_timestamp=now, max_timestamp=now,
            producer_id=producer_id, producer_epoch=epoch, attributes=_TRANSACTIONAL if producer else 0,
        )  # fmt: skip
        try:
            appended = self.partition.append(batch.data, all_in_sync=True, from_client=False)
        except ApiError as error:
            then(told(error.code))
            return
        except LogError as error:
            then(told(ErrorCode(error.code)))
            return
        if replayed:
            placed = batch.placed(appended.base_offset, self.partition.state.leader_epoch)
            for record in records:
                self.replay(record._replace(offset=appended.base_offset + record.offset), placed)
        acked = PendingAck(self.partition, appended.last_offset + 1)
        operation = DelayedProduce(
            timeout, [acked], client_id, self.broker.now(), lambda: then(told(acked.error))
        )  # fmt: skip
        self.broker.produce_purgatory.try_complete_else_watch(operation, [self.partition])


def told(error: ErrorCode) -> ErrorCode:
    """What a coordinator's client is told of an append's error."""
    if error in _MOVED:
        return ErrorCode.not_coordinator
    if error in _NOT_AVAILABLE:
        return ErrorCode.coordinator_not_available
    return ErrorCode.unknown_server_error if error in _TOO_LARGE else error
