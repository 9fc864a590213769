"""A log's records, read out for people: decompressed and decoded. No request does this."""

from __future__ import annotations

from collections.abc import Iterator

from abeyance.broker.log.batch import Batch
from abeyance.broker.log.compression import decompress
from abeyance.broker.log.log import Log
from abeyance.broker.log.records import Record, decode

_ALL = 1 << 62


def decoded(log: Log, up_to: int) -> Iterator[Record]:
    """Yield the records from the log's start to the offset `up_to`, without control records. O(bytes)."""
    if log.start_offset >= up_to:
        return
    for batch in log.read_batches(log.start_offset, _ALL, up_to, min_one=True):
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
