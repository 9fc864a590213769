"""The schemas of the rows that a stream's tasks exchange and keep as state: Arrow columns, packed into binary values.

Spark shuffles few rows, each (`shard`, `what`, `payload`): a payload holds all the rows of one task for one shard. Any
change of the schemas below needs a new `state.VERSION`, because the state consists of such rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final

import pyarrow as pa

from abeyant.pipeline.resolver.streams.clock import Mark

__all__ = [
    "EVENTS",
    "OUTCOMES",
    "PACKED",
    "REJECTED",
    "REPORTS",
    "STATUS",
    "WATCHES",
    "RowKind",
    "as_schema",
    "joined",
    "mark_from",
    "mark_to",
    "pack_rows",
    "packed_rows",
    "unpack_rows",
]

PACKED: Final = "shard int, what int, payload binary"


class RowKind(IntEnum):
    """The kind of rows in a payload."""

    WATCHES = 0
    EVENTS = 1
    REJECTED = 2
    MARK = 3
    REPORTS = 4
    OUTCOMES = 5
    STATUS = 6


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


_TEXT, _LONG, _INT = pa.string(), pa.int64(), pa.int32()

WATCHES: Final = _schema(
    instance=_TEXT,
    op_id=_TEXT,
    kind=_TEXT,
    key=_TEXT,
    place=_LONG,  # two hashes of (instance, key)
    identity=_LONG,
    required=_LONG,
    start=_LONG,
    deadline=_LONG,
    combine=_INT,  # 0: the operation has only this watch; n: all of its n watches are required; -n: any of n
    watch=_INT,  # the watch's number within the operation
    operation=_LONG,  # a hash of (instance, op_id)
    version=_LONG,  # a hash of all watches: two rows of one id that differ are two versions
    watches=_TEXT,  # all watches as JSON, in the row of the first; null for one watch
)
"""The watches of operations, one row per watch. Times are in microseconds."""

EVENTS: Final = _schema(instance=_TEXT, key=_TEXT, place=_LONG, identity=_LONG, progress=_LONG, at=_LONG)

REJECTED: Final = _schema(table=_TEXT, reason=_TEXT, row=_TEXT)

REPORTS: Final = _schema(
    instance=_TEXT,
    op_id=_TEXT,
    kind=_TEXT,
    start=_LONG,
    deadline=_LONG,
    combine=_INT,
    watch=_INT,
    operation=_LONG,
    version=_LONG,
    reached=_LONG,  # null: not in time
    fresh=pa.bool_(),  # became final in this batch
    last=pa.bool_(),  # the deadline has passed: the watch's last report
)
"""The result of a watch whose operation has several; repeated in each batch, from the batch in which it is final."""

OUTCOMES: Final = _schema(
    instance=_TEXT, op_id=_TEXT, kind=_TEXT, outcome=_TEXT, at=pa.timestamp("us", "UTC"), waited_ms=pa.float64()
)

STATUS: Final = _schema(pending=_LONG, watermark=_LONG, state_bytes=_LONG)
"""A shard's status after a batch: pending watches, watermark (microseconds), size of the state (bytes)."""


def as_schema(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with exactly these types, which the reader assumes when it unpacks the bytes.

    Spark sends texts as `large_string` where the session says so (`spark.sql.execution.arrow.useLargeVarTypes`).
    """
    return rows if rows.schema.types == schema.types else rows.cast(schema)


def pack_rows(batch: pa.RecordBatch) -> pa.Buffer:
    """Pack rows without their schema, which the reader knows. Of a slice, only the slice's rows are packed."""
    return batch.serialize()


def unpack_rows(payload: bytes | pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Unpack rows without copying."""
    return pa.ipc.read_record_batch(pa.py_buffer(payload), schema)


def joined(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Concatenate batches into one."""
    found = pa.Table.from_batches(list(batches), schema).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema)


_MARK: Final = struct.Struct("<Bqq")
_SOURCES: Final = ("operations", "events", "tick", "end")


def mark_to(mark: Mark) -> bytes:
    """Pack a mark into bytes."""
    return _MARK.pack(_SOURCES.index(mark.source), mark.least, mark.greatest)


def mark_from(payload: bytes) -> Mark:
    """Unpack a mark from bytes."""
    source, least, greatest = _MARK.unpack(payload)
    return Mark(_SOURCES[source], least, greatest)


def packed_rows(rows: Iterable[tuple[int, RowKind, bytes | pa.Buffer]]) -> Iterator[pa.RecordBatch]:
    """Yield one batch of (`shard`, `what`, `payload`), or nothing if there are no rows."""
    columns = list(zip(*rows, strict=True))
    if columns:
        shards, whats, payloads = columns
        yield pa.RecordBatch.from_arrays(
            [pa.array(shards, _INT), pa.array(whats, _INT), pa.array([bytes(p) for p in payloads], pa.binary())],
            ["shard", "what", "payload"],
        )
