"""A log's records, read out for people: decompressed and decoded. No request does this."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from abeyant.broker.log.batch import Batch
from abeyant.broker.log.compression import decompress
from abeyant.broker.log.log import Log
from abeyant.broker.log.records import Record, decode

_ALL = 1 << 62


def decoded(log: Log, up_to: int, *, aborted: bool = True) -> Iterator[Record]:
    """Yield the records from the log's start to the offset `up_to`, without control records. O(bytes).

    Without `aborted` those of aborted transactions are left out.
    """
    if log.start_offset >= up_to:
        return
    left_out = defaultdict(list)
    if not aborted:
        for one in log.aborted_transactions(log.start_offset, up_to):
            left_out[one.producer_id].append(range(one.first_offset, one.last_offset))
    for batch in log.read_batches(log.start_offset, _ALL, up_to, min_one=True):
        if batch.is_transactional and any(batch.base_offset in span for span in left_out[batch.producer_id]):
            continue
        for record in decoded_batch(batch):
            if log.start_offset <= record.offset < up_to:
                yield record


def decoded_batch(batch: Batch) -> Iterator[Record]:
    """Yield the records of one batch; none of a control batch."""
    if batch.is_control:
        return
    records = decompress(batch.compression, batch.records)
    for record in decode(records, batch.record_count, batch.base_offset, batch.base_timestamp):
        yield record._replace(timestamp=batch.max_timestamp) if batch.timestamp_is_append_time else record
