"""Read a log's records out for people: decompressed and decoded. No request does this."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from abeyant.broker.log.log import Log
from abeyant.broker.log.records import Record
from abeyant.broker.log.validation import records_of

_ALL = 1 << 62


def decoded(log: Log, up_to: int, *, aborted: bool = True) -> Iterator[Record]:
    """Yield the records from the log's start to the offset `up_to`, without control records. O(bytes).

    Without `aborted`, skip those of aborted transactions.
    """
    if log.start_offset >= up_to:
        return
    skipped = defaultdict(list)
    if not aborted:
        for one in log.aborted_transactions(log.start_offset, up_to):
            skipped[one.producer_id].append(range(one.first_offset, one.last_offset))
    for batch in log.read_batches(log.start_offset, _ALL, up_to, min_one=True):
        if batch.is_control:
            continue
        if batch.is_transactional and any(batch.base_offset in span for span in skipped[batch.producer_id]):
            continue
        yield from (record for record in records_of(batch) if log.start_offset <= record.offset < up_to)
