"""Read records of a share partition, and acquire them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from abeyant.broker.shares.acquisition import AcquiredRecords, Offsets

if TYPE_CHECKING:
    from abeyant.broker.log import Batch
    from abeyant.broker.shares.partition import SharePartition


class Demand:
    """A member's share fetch: the member, and the limits of the fetch."""

    __slots__ = ("batch_size", "client_id", "max_bytes", "member", "records", "strict")

    def __init__(
        self, member: str, client_id: str, max_bytes: int, records: int, batch_size: int, *, strict: bool
    ) -> None:
        """Limit the fetch to `max_bytes` per share partition and to `records` in all.

        See `Acquisition` for `batch_size` and `strict`.
        """
        self.member = member
        self.client_id = client_id
        self.max_bytes = max_bytes
        self.records = records
        self.batch_size = batch_size
        self.strict = strict


def read(share: SharePartition, demand: Demand) -> tuple[bytes, list[AcquiredRecords]]:
    """Acquire available records. Return the batches that contain the records, and the records' offsets.

    Reduce `demand.records` by the number of acquired records.
    """
    partition = share.partition
    log = partition.log
    share.move_start(log.start_offset)
    offset, end = share.fetch_offset(), share.readable_to
    if not log.start_offset <= offset < end or demand.records <= 0:
        return b"", []
    batches = log.read_batches(offset, demand.max_bytes, end, min_one=True)
    acquired = share.deliver(
        demand.member, demand.client_id, offset, [_offsets(batch) for batch in batches], limit=demand.records,
        strict=demand.strict, batch_size=demand.batch_size,
    )  # fmt: skip
    if acquired and share.settings.read_committed:
        acquired = share.archive_aborted(acquired, _aborted(share, batches))
    if not acquired:
        return b"", []
    demand.records -= sum(one.last - one.first + 1 for one in acquired)
    first, last = acquired[0].first, acquired[-1].last
    return b"".join(
        batch.data for batch in batches if batch.last_offset >= first and batch.base_offset <= last
    ), acquired


def _offsets(batch: Batch) -> Offsets:
    return batch.base_offset, batch.last_offset


def _aborted(share: SharePartition, batches: list[Batch]) -> Iterable[Offsets]:
    """Yield the first and last offset of each batch that belongs to an aborted transaction."""
    producers = share.partition.log.producers
    if not producers.has_aborted:
        return
    aborted = producers.aborted_between(batches[0].base_offset, batches[-1].next_offset)
    for batch in batches:
        if (
            batch.is_transactional
            and not batch.is_control
            and any(
                one.producer_id == batch.producer_id and one.first_offset <= batch.base_offset < one.last_offset
                for one in aborted
            )
        ):
            yield _offsets(batch)
