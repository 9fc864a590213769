"""The map side, on Arrow batches in Spark's Python workers: rows become a few binary values, one a *shard* and chunk.

So Spark shuffles and sorts thousands of values in place of millions of rows. What travels costs most, so numbers travel
in as few bytes as they need (see kernels.narrow), and so do texts of which there are few.

The events of a chunk are reduced to the steps of their staircases first (see kernels.resolve), unless a chunk before
has shown that hardly any goes: then they are only dealt out to shards. `order` tells the shard and what is packed: see
`PACKED`.

Memory: a chunk, three times while it is packed.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.kernels.dealing import deal
from abeyant.kernels.narrow import head_size, narrow, widen
from abeyant.kernels.resolve import Staircases
from abeyant.pipeline.resolver.tables.hot_keys import HotKeys, Integers

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "ALONE",
    "COMBINED",
    "EVENTS",
    "KINDS",
    "PACKED",
    "READ",
    "SHARDS",
    "TEXTS",
    "EventPacker",
    "WatchNumbers",
    "binary",
    "packed_operations",
    "unpacked_events",
    "unpacked_operations",
]

SHARDS: Final = 1024
"""Shards are many, so that the events of one are few."""

PACKED: Final = "order long, cuts long, packed binary"
"""`order`: `KINDS` times the shard, and one of the four below. `cuts`: the fingerprint of the cuts that were used."""
KINDS: Final = 4
EVENTS_FOR_ALONE, EVENTS, ALONE, COMBINED = range(KINDS)
"""Of the operations: rows that are an answer alone, and rows to be combined with others of the same id. Events are for
both, or, where no operation has to be combined, for the former alone: so Spark hands none on to the other reader.
"""
READ: Final = {ALONE: (EVENTS_FOR_ALONE, EVENTS, ALONE), COMBINED: (EVENTS, COMBINED)}
"""What is read for the operations of one kind."""

TEXTS: Final = {
    ALONE: ("instance", "op_id", "kind"),
    COMBINED: ("instance", "op_id", "kind", "any_of", "version"),
}
"""What a row a watch of an operation has besides numbers.

`any_of`: any of its watches will do.
`version`: what else tells rows of one id apart, and which of them counts. It is the condition, the keys of all watches,
and what they require; empty where an id has no other row.
"""
_KINDS_OF_TEXT: Final = {
    "instance": pa.string(),
    "op_id": pa.string(),
    "kind": pa.string(),
    "any_of": pa.bool_(),
    "version": pa.list_(pa.string()),
}
_OFTEN_FEW: Final = ("instance", "kind")
_FEW: Final = 256  # distinct values that one byte tells apart
_SHORT: Final = 64  # bytes of such a one, so that a chunk of them that is read is not much larger than it was packed

_SIZES: Final = struct.Struct("<qq")  # bytes of the numbers of a value, and of the few texts

_SHARD_BITS: Final = 10
# The least place of each shard but the first: a shard is the uppermost bits of a place, which is signed.
_FIRST_PLACES: Final = (np.arange(1, SHARDS) - SHARDS // 2) << (64 - _SHARD_BITS)
_DEALT_SHARDS: Final = np.arange(SHARDS) ^ (SHARDS // 2)  # without the sign the upper half comes first

# Of a place all but the uppermost byte, which the shard tells. Four bytes of the identity: with the place they tell a
# billion keys apart but for a chance of 10**-11.
_PLACE_BYTES: Final = 7
_KEY_BYTES: Final = (_PLACE_BYTES, 4)
_EVENT_NUMBERS: Final = 4
_WORTH: Final = 0.75  # of the rows of a chunk: if more are steps, it was not worth while to look for them


class EventPacker:
    """Packs the events of a task, chunk after chunk."""

    def __init__(self, hot: HotKeys, *, several: bool) -> None:
        """`several`: whether any operation has to be combined."""
        self._hot = hot
        self._kind = EVENTS if several else EVENTS_FOR_ALONE
        self._reduces = True

    def __call__(self, place: Integers, identity: Integers, progress: Integers, at_us: Integers) -> pa.RecordBatch:
        """Pack a chunk, which has rows."""
        if self._reduces:
            return self._reduced(np.column_stack((place, identity, progress, at_us)))
        rows, ends = np.empty((len(place), 4), np.int64), np.empty(SHARDS, np.int64)
        deal(place.data, identity.data, progress.data, at_us.data, ends.data, rows.ravel().data)
        return self._packed(_DEALT_SHARDS, rows, ends, (progress, at_us))

    def _reduced(self, events: Integers) -> pa.RecordBatch:
        steps = Staircases(self._hot.cut_events(events).ravel().data).steps
        rows = np.frombuffer(steps, np.int64).reshape(-1, 4)
        self._reduces = bool(self._hot) or len(rows) < _WORTH * len(events)
        ends = np.append(np.searchsorted(rows[:, 0], _FIRST_PLACES), len(rows))
        return self._packed(np.arange(SHARDS), rows, ends, (rows[:, 2], rows[:, 3]))

    def _packed(self, shards: Integers, rows: Integers, ends: Integers, others: Sequence[Integers]) -> pa.RecordBatch:
        there, packed = _narrowed(rows, ends, others)
        return _packed(shards[there] * KINDS + self._kind, packed, self._hot)


class WatchNumbers(NamedTuple):
    """The columns of a chunk of operations, a row a watch; places may be moved."""

    place: Integers
    identity: Integers
    required: Integers
    start_us: Integers
    deadline_us: Integers


def packed_operations(
    texts: pa.RecordBatch, numbers: WatchNumbers, alone: npt.NDArray[np.bool_], hot: HotKeys
) -> pa.RecordBatch:
    """Pack a chunk of watches, which has rows; `texts` has the columns of `TEXTS`, those of combined ones if any is."""
    place, identity, required, start_us, deadline_us = numbers
    hot.cut_operations(place, identity, required)
    order = ((place >> (64 - _SHARD_BITS)) + SHARDS // 2) * KINDS + np.where(alone, ALONE, COMBINED)
    sorting = np.argsort(order.astype(np.uint16), kind="stable")  # of 16 bits: a radix sort
    order = order[sorting]
    firsts = np.flatnonzero(np.diff(order, prepend=-1))
    orders, ends = order[firsts], np.append(firsts[1:], len(order))
    others = required, start_us, deadline_us - start_us
    _, blocks = _narrowed(np.column_stack((place, identity, *others))[sorting], ends, others)
    kinds = [kind for kind in TEXTS if np.any(orders % KINDS == kind)]
    values, few = _few(texts.select(TEXTS[kinds[-1]]), len(orders))
    values = values.take(pa.array(sorting))
    of_kind = {kind: values.select(TEXTS[kind]) for kind in kinds}
    parts: list[ReadableBuffer] = []
    sizes = []
    for order_, first, end, block in zip(orders.tolist(), firsts.tolist(), ends.tolist(), blocks, strict=True):
        own = block.as_buffer(), few, _written(of_kind[order_ % KINDS].slice(first, end - first))
        parts += [_SIZES.pack(*(len(part) for part in own[:2])), *own]
        sizes.append(_SIZES.size + sum(len(part) for part in own))
    return _packed(orders, binary(sizes, b"".join(parts)), hot)


def _written(texts: pa.RecordBatch) -> pa.Buffer:
    number = texts.schema.get_field_index("version")
    if number >= 0 and not len(texts.column(number).flatten()):
        # Of a slice without any, Arrow writes where each version of all other rows begins.
        none = pa.ListArray.from_arrays(pa.array(np.zeros(len(texts) + 1, np.int32)), pa.array([], pa.string()))
        texts = texts.set_column(number, texts.schema.field(number), none)
    return texts.serialize()


def unpacked_operations(values: Sequence[memoryview], kind: int, shard: int) -> tuple[WatchNumbers, pa.RecordBatch]:
    """Return the numbers and the texts of values of `packed_operations`, all of one kind and shard."""
    numbers, texts = [], []
    for few, some in groupby(map(_parts, values), key=lambda parts: parts[1]):
        dictionaries = _read_few(few)
        schema = _text_schema(kind, tuple(dictionaries))
        batches = []
        for block, _, packed in some:
            numbers.append(block)
            batches.append(pa.ipc.read_record_batch(packed, schema))
        batch = pa.concat_batches(batches)
        for name, distinct in dictionaries.items():
            batch = batch.set_column(TEXTS[kind].index(name), name, distinct.take(batch.column(name)))
        texts.append(batch)
    rows = widen(b"".join(numbers), len(WatchNumbers._fields), _uppermost_byte(shard))
    columns = np.ascontiguousarray(np.frombuffer(rows, np.int64).reshape(-1, len(WatchNumbers._fields)).T)
    place, identity, required, start_us, span_us = columns
    return WatchNumbers(place, identity, required, start_us, start_us + span_us), pa.concat_batches(texts)


def _parts(value: memoryview) -> tuple[memoryview, bytes, pa.Buffer]:
    """Return the numbers of a value of `packed_operations`, the few texts, and all others."""
    first, second = _SIZES.unpack_from(value)
    numbers, few = value[_SIZES.size :][:first], value[_SIZES.size + first :][:second]
    return numbers, bytes(few), pa.py_buffer(value[_SIZES.size + first + second :])


def unpacked_events(packed: ReadableBuffer, shard: int) -> array[int]:
    """Return rows of place, identity, progress and time, given values of `EventPacker`, one after the other."""
    return widen(packed, _EVENT_NUMBERS, _uppermost_byte(shard))


def _narrowed(rows: Integers, ends: Integers, others: Sequence[Integers]) -> tuple[npt.NDArray[np.intp], pa.Array]:
    """Return which blocks have rows, and these. Rows have a key's place and identity, and those `others`."""
    spans = [(int(column.min()), int(column.max())) for column in others]
    least = np.array([0] * len(_KEY_BYTES) + [low for low, _ in spans])
    widths = np.array([*_KEY_BYTES, *(((high - low).bit_length() + 7) // 8 for low, high in spans)])
    lengths = np.diff(ends, prepend=0)
    there = np.flatnonzero(lengths)
    sizes = head_size(len(widths)) + lengths[there] * widths.sum()
    packed = np.empty(sizes.sum(), np.uint8)
    narrow(rows.ravel().data, ends.data, widths.data, least.data, packed.data)
    return there, binary(sizes, packed)


def _uppermost_byte(shard: int) -> int:
    """Return what `_PLACE_BYTES` leave out of the places of a shard."""
    lower = 8 * _PLACE_BYTES
    return ((shard - SHARDS // 2) << (64 - _SHARD_BITS)) >> lower << lower


def _few(texts: pa.RecordBatch, blocks: int) -> tuple[pa.RecordBatch, bytes]:
    """Replace columns of few values by bytes, unless that saves nothing.

    Return these values too, as `_read_few` takes them: each of the blocks has them.
    """
    few = {}
    for name in _OFTEN_FEW:
        column = texts.column(name)
        told = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        values = told.dictionary.cast(pa.string())
        longest = pc.max(pc.binary_length(values)).as_py() or 0
        if len(values) <= _FEW and longest <= _SHORT and values.nbytes * blocks <= len(column):
            order = pc.sort_indices(values)  # so that most chunks have the same
            rank = np.empty(len(order), np.uint8)
            rank[order.to_numpy()] = np.arange(len(order))
            few[name] = pa.array([values.take(order)], pa.list_(pa.string()))
            indices = pa.array(rank).take(told.indices)
            texts = texts.set_column(texts.schema.get_field_index(name), name, indices)
    plain = pa.schema([(name, pa.uint8() if name in few else _KINDS_OF_TEXT[name]) for name in texts.schema.names])
    return texts.cast(plain), _serialized(few)


def _serialized(few: dict[str, pa.Array]) -> bytes:
    if not few:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([(name, values.type) for name, values in few.items()])) as stream:
        stream.write_batch(pa.record_batch(few))
    return bytes(sink.getvalue())


@lru_cache(maxsize=64)
def _read_few(few: bytes) -> dict[str, pa.Array]:
    if not few:
        return {}
    batch = pa.ipc.open_stream(few).read_next_batch()
    return {name: batch.column(name).flatten() for name in batch.schema.names}


@cache
def _text_schema(kind: int, few: tuple[str, ...]) -> pa.Schema:
    return pa.schema([(name, pa.uint8() if name in few else _KINDS_OF_TEXT[name]) for name in TEXTS[kind]])


def binary(lengths: npt.ArrayLike, values: Any) -> pa.Array:
    """Return the values, which stand one after the other in a buffer, so many bytes long, as an array.

    Raises OverflowError for 2 GB or more.
    """
    ends = np.concatenate(([0], np.cumsum(lengths)))
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"rows of {ends[-1]:,} bytes are too much for one chunk; the most is 2 GB")
    offsets = ends.astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    )


def _packed(order: Integers, packed: pa.Array, hot: HotKeys) -> pa.RecordBatch:
    cuts = np.full(len(order), hot.fingerprint())
    return pa.record_batch({"order": pa.array(order), "cuts": pa.array(cuts), "packed": packed})
