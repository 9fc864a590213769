"""Transaction markers: control batches of one record, hidden from consumers (KIP-98).

key     version int16, type int16: 0 aborted, 1 committed
value   version int16, epoch int32 of the coordinator that wrote it
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from abeyant.broker.log.batch import Batch, make_batch
from abeyant.broker.log.errors import InvalidRecordError
from abeyant.broker.log.records import Record, encode
from abeyant.broker.log.validation import records_of

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_ABORTED, _COMMITTED = 0, 1
_TRANSACTIONAL_CONTROL = 0x30


class Marker(NamedTuple):
    """The content of a transaction marker: commit or abort, and the epoch of the coordinator that wrote the marker."""

    commits: bool
    coordinator_epoch: int


def marker_of(batch: Batch) -> Marker:
    """Return the marker in a control batch. Raises InvalidRecordError for another kind of control batch."""
    for record in records_of(batch):
        key, value = record.key, record.value
        if key is None or len(key) < _KEY.size or value is None or len(value) < _VALUE.size:
            raise InvalidRecordError(
                f"A control record with key {key!r} and value {value!r} is not a transaction marker"
            )
        kind = _KEY.unpack_from(key)[1]
        if kind not in (_ABORTED, _COMMITTED):
            raise InvalidRecordError(f"Control record of type {kind} is not a transaction marker")
        return Marker(kind == _COMMITTED, _VALUE.unpack_from(value)[1])
    raise InvalidRecordError("Control batch without a record is not a transaction marker")


def marker_batch(producer_id: int, producer_epoch: int, marker: Marker, now_ms: int) -> Batch:
    """Return the control batch that ends a producer's transaction."""
    key = _KEY.pack(0, _COMMITTED if marker.commits else _ABORTED)
    record = Record(0, now_ms, key, _VALUE.pack(0, marker.coordinator_epoch))
    return make_batch(
        encode([record], 0, now_ms),
        record_count=1,
        attributes=_TRANSACTIONAL_CONTROL,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
