"""Batches as a client sends them, for the tests of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from abeyant.broker.log import compression
from abeyant.broker.log.batch import Batch, make_batch
from abeyant.broker.log.records import Record, encode

NOW = 1_700_000_000_000  # ms


def batch(
    values: Sequence[bytes | None] = (b"v",), *, codec: int = 0, times: Sequence[int] = (), **header: Any
) -> Batch:
    """A client's batch: base offset 0, keys k0, k1, ..., the times given or all NOW."""
    times = times or [NOW] * len(values)
    records = [Record(index, times[index], b"k%d" % index, value) for index, value in enumerate(values)]
    return batch_of(records, codec=codec, **header)


def batch_of(records: list[Record], *, codec: int = 0, base: int = 0, attributes: int = 0, **header: Any) -> Batch:
    """A batch of these records; the base timestamp is the first one's."""
    first = records[0].timestamp
    header.setdefault("max_timestamp", max(record.timestamp for record in records))
    header.setdefault("record_count", len(records))
    return make_batch(
        compression.compress(codec, encode(records, base, first)),
        base_offset=base,
        attributes=attributes | codec,
        base_timestamp=first,
        **header,
    )


def marker(producer_id: int, epoch: int, *, commits: bool, coordinator_epoch: int = 0) -> bytes:
    """A transaction's end, as its coordinator writes it."""
    key = (0).to_bytes(2) + int(commits).to_bytes(2)
    value = (0).to_bytes(2) + coordinator_epoch.to_bytes(4)
    return batch_of([Record(0, NOW, key, value)], attributes=0x30, producer_id=producer_id, producer_epoch=epoch).data
