"""The map side, on Arrow batches in Spark's Python workers: rows become a few binary values, one a *shard* and chunk.

So Spark shuffles and sorts thousands of values in place of millions of rows. The events of a chunk are reduced to the
steps of their staircases first (see engine.resolve), four 64-bit integers each, sorted; operations are written as Arrow
record batches, text and all. `order` tells the shard and what is packed: see `PACKED`.

Memory: a chunk, three times while it is packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyance.engine.resolve import Staircases
from abeyance.pipeline.resolver.tables.hot_keys import HotKeys, Integers
from abeyance.pipeline.spark.chunks import gathered

__all__ = [
    "ALONE",
    "COMBINED",
    "EVENTS",
    "EVENT_NUMBERS",
    "KINDS",
    "OPERATION_NUMBERS",
    "PACKED",
    "SCHEMAS",
    "SHARDS",
    "binary",
    "pack_events",
    "pack_operations",
]

SHARDS: Final = 1024
"""Shards are many, so that the events of one are few."""

PACKED: Final = "order long, cuts long, packed binary"
"""`order`: `KINDS` times the shard, and one of the three below. `cuts`: the fingerprint of the cuts that were used."""
KINDS: Final = 3
EVENTS, ALONE, COMBINED = range(KINDS)
"""Of the operations: rows that are an answer alone, and rows to be combined with others of the same id."""

_ALONE: Final = pa.schema(
    {
        "instance": pa.string(),
        "op_id": pa.string(),
        "kind": pa.string(),
        "start_us": pa.int64(),
        "deadline_us": pa.int64(),
        "required": pa.int64(),
        "identity": pa.int64(),
        "place": pa.int64(),
    }
)
_COMBINED: Final = _ALONE.append(pa.field("any_of", pa.bool_())).append(pa.field("version", pa.list_(pa.string())))
SCHEMAS: Final = {ALONE: _ALONE, COMBINED: _COMBINED}
"""A row a watch of an operation. `place` and `identity` are its key: see hot_keys.

`any_of`: any of its watches will do.
`version`: what else tells rows of one id apart, and which of them counts. It is the condition, the keys of all watches,
and what they require; empty where an id has no other row.
"""

_SHARD_BITS: Final = 10
# The least place of each shard but the first: a shard is the uppermost bits of a place, which is signed.
_FIRST_PLACES: Final = (np.arange(1, SHARDS) - SHARDS // 2) << (64 - _SHARD_BITS)


EVENT_NUMBERS: Final = ("place", "identity", "progress", "at_us")
OPERATION_NUMBERS: Final = ("start_us", "deadline_us", "required", "identity", "place", "alone", "any_of")
"""What is a number goes to Python in one list of a row, `numbers`: Spark takes a time for each column of each row, with
its defaults twice. In the first row of a partition the hot keys follow, as `HotKeys.read` takes them.
"""


def pack_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(`numbers`) -> PACKED."""
    hot: HotKeys | None = None
    for some in gathered(batches):
        rows, hot = _rows(some, EVENT_NUMBERS, hot)
        steps = Staircases(hot.cut_events(rows).ravel().data).steps
        firsts = np.searchsorted(np.frombuffer(steps, np.int64)[::4], _FIRST_PLACES)
        lengths = np.diff(firsts, prepend=0, append=len(steps) // 4)
        shards = np.flatnonzero(lengths)
        yield _packed(shards * KINDS + EVENTS, binary(lengths[shards] * 32, steps), hot)


def pack_operations(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(`numbers`, and the columns of SCHEMAS that are none) -> PACKED."""
    hot: HotKeys | None = None
    for some in gathered(batches):
        rows, hot = _rows(some, OPERATION_NUMBERS, hot)
        _, _, required, identity, place, alone, _ = rows.T
        hot.cut_operations(place, identity, required)
        order = ((place >> (64 - _SHARD_BITS)) + SHARDS // 2) * KINDS + np.where(alone, ALONE, COMBINED)
        sorting = np.argsort(order.astype(np.uint16), kind="stable")  # of 16 bits: a radix sort
        orders, firsts = np.unique(order[sorting], return_index=True)
        lengths = np.diff(firsts, append=len(order))
        kinds = [kind for kind in SCHEMAS if np.any(orders % KINDS == kind)]
        table = _sorted(some, rows, sorting, SCHEMAS[kinds[-1]])
        sorted_rows = {kind: table.select(SCHEMAS[kind].names) for kind in kinds}
        values = [
            sorted_rows[order % KINDS].slice(first, length).serialize()
            for order, first, length in zip(orders.tolist(), firsts.tolist(), lengths.tolist(), strict=True)
        ]
        yield _packed(orders, binary([value.size for value in values], b"".join(values)), hot)


def _rows(some: Sequence[pa.RecordBatch], names: Sequence[str], hot: HotKeys | None) -> tuple[Integers, HotKeys]:
    """Return the `numbers` of some batches, a row each, and the hot keys: read from their first row, unless known."""
    values = [batch.column("numbers").flatten().to_numpy() for batch in some]
    width = len(names)
    if hot is None:
        first = len(some[0].column("numbers")[0])
        hot = HotKeys.read(values[0][width:first])
        values[:1] = values[0][:width], values[0][first:]
    rows = np.concatenate(values)
    if len(rows) != width * sum(batch.num_rows for batch in some):
        raise RuntimeError("another row than the first of a partition has cuts: its rows were moved by the plan")
    return rows.reshape(-1, width), hot


def _sorted(
    some: Sequence[pa.RecordBatch], rows: Integers, sorting: npt.NDArray[np.intp], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the columns of a schema of SCHEMAS, sorted."""
    others = [name for name in schema.names if name not in OPERATION_NUMBERS]
    columns = pa.concat_batches([batch.select(others) for batch in some]).take(pa.array(sorting))
    for number, values in zip(OPERATION_NUMBERS, np.ascontiguousarray(rows[sorting].T), strict=True):
        columns = columns.append_column(number, pa.array(values))
    return columns.select(schema.names).cast(schema)


def binary(lengths: npt.ArrayLike, values: Any) -> pa.Array:
    """Return the values, which stand one after the other in a buffer, so many bytes long, as an array."""
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    )


def _packed(order: Integers, packed: pa.Array, hot: HotKeys) -> pa.RecordBatch:
    cuts = np.full(len(order), hot.fingerprint())
    return pa.record_batch({"order": pa.array(order), "cuts": pa.array(cuts), "packed": packed})
