"""A log's records, read out for people: decompressed and decoded. No request does this."""

from __future__ import annotations

from collections.abc import Iterator

from abeyance.broker.log.compression import decompress
from abeyance.broker.log.log import Log
from abeyance.broker.log.records import Record, decode

_ALL = 1 << 62


def decoded(log: Log, up_to: int) -> Iterator[Record]:
    """Yield the records from the log's start to the offset `up_to`, without control records. O(bytes)."""
    if log.start_offset >= up_to:
        return
    for batch in log.read_batches(log.start_offset, _ALL, up_to, min_one=True):
        if batch.is_control:
            continue
        records = decompress(batch.compression, batch.records)
        for record in decode(records, batch.record_count, batch.base_offset, batch.base_timestamp):
            if log.start_offset <= record.offset < up_to:
                appended = batch.timestamp_is_append_time
                yield record._replace(timestamp=batch.max_timestamp) if appended else record
