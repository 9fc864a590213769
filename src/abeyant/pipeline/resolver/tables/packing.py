"""Pack rows on the map side, in Spark's Python workers: one binary value for each *shard* of a chunk.

So Spark shuffles and sorts thousands of values in place of millions of rows. The shuffled bytes cost most, so numbers
take as few bytes as they need (see kernels.narrow), and columns with few distinct texts take one byte a row.

The events of a chunk are first reduced to the steps of their staircases (see kernels.resolve), unless an earlier chunk
has shown that this removes few rows: then they are only grouped by shard. `order` encodes the shard and the kind of
rows: see `PACKED`.

Memory: three copies of a chunk while it is packed.
"""

from __future__ import annotations

import json
import math
import struct
from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.kernels.dealing import deal
from abeyant.kernels.narrow import head_size, narrow, widen
from abeyant.kernels.resolve import Staircases
from abeyant.pipeline.resolver.tables.hot_keys import Integers

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "ALONE",
    "COARSE",
    "COMBINED",
    "CONDITION",
    "EVENTS",
    "IS_ONE",
    "KINDS",
    "NTH",
    "ORDERS",
    "PACKED",
    "PROFILE",
    "RIVALS",
    "SHARDS",
    "EventPacker",
    "Packed",
    "Watches",
    "binary",
    "pack_operations",
    "shards_of",
    "spot",
    "unpacked_events",
    "unpacked_operations",
]

SHARDS: Final = 1024
"""Number of shards: many, so that each has few events."""

COARSE: Final = 4
"""Number of neighbouring shards that are packed as one, under the first shard's number, for tables of moderate size: a
value has a fixed cost, however few rows it holds. Such shards may differ only in bits that are packed (`_PLACE_BYTES`).
"""

PACKED: Final = "order long, packed binary"
"""`order` is `KINDS` times the shard, plus the kind. If the shard has so many rows that they are spread over tasks,
`ORDERS` times a task's number, not 0, is added; a second shuffle puts such a shard together."""
KINDS: Final = 4
ORDERS: Final = KINDS * SHARDS
EVENTS, ALONE, COMBINED, PROFILE = range(KINDS)
"""The kinds of rows: events, operations of one watch, watches of other operations, and a part of the profile, where
`order` has the part's number in place of a shard's."""
RIVALS: Final = PROFILE
"""Kind in the second shuffle: operations of one watch, used only if their id may be repeated."""


# `flags` of a watch. The bits from `NTH` up hold the number of the watch in its operation, from 0.
IS_ONE: Final = 1  # the operation's only watch
CONDITION: Final = 2  # times 0 for null, 1 for all, 2 for any
NTH: Final = 8

_TEXTS: Final = ("instance", "op_id", "kind", "key")
"""The text columns of a watch. `key` is needed only to tell rows of one id apart, so only where ids may be repeated."""
_OFTEN_FEW: Final = ("instance", "kind")
_FEW: Final = 256  # distinct values at most, so that one byte encodes them
_SHORT: Final = 64  # bytes of such a text at most, so that decoding does not make a chunk much larger

_SIZES: Final = struct.Struct("<qq")  # lengths in bytes of a value's numbers, and of its `_few` texts

_SHARD_BITS: Final = 10
# The least place of each shard but the first: the uppermost bits of a place, which is signed, are its shard.
_FIRST_PLACES: Final = (np.arange(1, SHARDS) - SHARDS // 2) << (64 - _SHARD_BITS)
_DEALT_SHARDS: Final = np.arange(SHARDS) ^ (SHARDS // 2)  # `deal` sorts places as unsigned: the upper half is first

# A place is packed without its uppermost byte, which follows from the shard. Four bytes of the identity are packed: the
# chance that two of a billion keys share both is 10**-11.
_PLACE_BYTES: Final = 7
_KEY_BYTES: Final = (_PLACE_BYTES, 4)
_EVENT_NUMBERS: Final = 4
_WORTH: Final = 0.75  # share of a chunk's rows: if more are steps, later chunks are not reduced


class EventPacker:
    """Packs the events of a task, chunk after chunk."""

    def __init__(self, together: int = 1) -> None:
        """Pack every `together` neighbouring shards as one; `together` is 1 or `COARSE`."""
        self._together = together
        self._reduces = True

    def __call__(self, place: Integers, identity: Integers, progress: Integers, at_us: Integers) -> Packed:
        """Pack a chunk of at least one row."""
        if self._reduces:
            packed, steps = _steps(np.column_stack((place, identity, progress, at_us)), self._together)
            self._reduces = steps < _WORTH * len(place)
            return packed
        rows, ends = np.empty((len(place), 4), np.int64), np.empty(SHARDS // self._together, np.int64)
        deal(place.data, identity.data, progress.data, at_us.data, ends.data, rows.ravel().data)
        return _packed_events(_DEALT_SHARDS[:: self._together], rows, ends, (progress, at_us))


class Packed(NamedTuple):
    """The packed values of a chunk, with the `order` and the number of rows of each."""

    order: Integers
    rows: Integers
    values: pa.Array

    def batch(self, large: float = math.inf, number: int = 0) -> pa.RecordBatch:
        """Return the values as `PACKED`; spread values of more than `large` rows over tasks, by the task's `number`."""
        order = np.where(self.rows > large, self.order + ORDERS * number, self.order)
        return pa.record_batch({"order": pa.array(order), "packed": self.values})


def spot(together: int) -> str:
    """Return the SQL expression of the group that an `order` is shuffled to, a number below `SHARDS` // `together`."""
    return f"(`order` div {KINDS * together} + `order` div {ORDERS}) % {SHARDS // together}"


def shards_of(places: Integers, together: int = 1) -> Integers:
    """Return the shard of each place, where every `together` neighbouring shards count as the first of them."""
    return ((places >> (64 - _SHARD_BITS)) + SHARDS // 2) & -together


def _steps(events: Integers, together: int) -> tuple[Packed, int]:
    """Reduce events, rows of (place, identity, progress, at), to steps. Return the packed steps, and their number."""
    rows = np.frombuffer(Staircases(events.ravel().data).steps, np.int64).reshape(-1, 4)
    ends = np.append(np.searchsorted(rows[:, 0], _FIRST_PLACES[together - 1 :: together]), len(rows))
    return _packed_events(np.arange(0, SHARDS, together), rows, ends, (rows[:, 2], rows[:, 3])), len(rows)


def _packed_events(shards: Integers, rows: Integers, ends: Integers, others: Sequence[Integers]) -> Packed:
    nonempty, packed = _narrowed(rows, ends, others)
    return Packed(shards[nonempty] * KINDS + EVENTS, np.diff(ends, prepend=0)[nonempty], packed)


class Watches(NamedTuple):
    """The integer columns of a chunk of operations, one row per watch; `cut_operations` may change places."""

    place: Integers
    identity: Integers
    required: Integers
    start_us: Integers
    deadline_us: Integers
    flags: Integers
    group: Integers
    """Hash group of the operation's id: see `profile`."""
    version: Integers
    """Hash that tells rows of one id with several watches apart; 0 for one watch."""

    def select(self, rows: slice | npt.NDArray[Any]) -> Watches:
        """Return the rows of a slice, a mask or indices."""
        return Watches(*(column[rows] for column in self))


def pack_operations(texts: pa.RecordBatch, watches: Watches, together: int = 1) -> Packed:
    """Pack a chunk of at least one watch; `texts` has the columns of `_TEXTS`, with or without `key`."""
    order = shards_of(watches.place, together) * KINDS + np.where(watches.flags & IS_ONE, ALONE, COMBINED)
    sorting = np.argsort(order.astype(np.uint16), kind="stable")  # of 16 bits: a radix sort
    order = order[sorting]
    firsts = np.flatnonzero(np.diff(order, prepend=-1))
    orders, ends = order[firsts], np.append(firsts[1:], len(order))
    spans = watches._replace(deadline_us=watches.deadline_us - watches.start_us)
    _, blocks = _narrowed(np.column_stack(spans)[sorting], ends, spans[2:])
    values, description = _few(texts, len(orders))
    values = values.take(pa.array(sorting))
    parts: list[ReadableBuffer] = []
    sizes = []
    for first, end, block in zip(firsts.tolist(), ends.tolist(), blocks, strict=True):
        buffers = block.as_buffer(), description, values.slice(first, end - first).serialize()
        parts += [_SIZES.pack(*(len(part) for part in buffers[:2])), *buffers]
        sizes.append(_SIZES.size + sum(len(part) for part in buffers))
    return Packed(orders, ends - firsts, binary(sizes, b"".join(parts)))


def unpacked_operations(
    values: Sequence[memoryview], shard: int, *, with_key: bool = True
) -> tuple[Watches, pa.RecordBatch]:
    """Unpack values of `pack_operations`, all of one shard, into numbers and texts."""
    numbers, texts = [], []
    for description, group in groupby(map(_parts, values), key=lambda parts: parts[1]):
        dictionaries, schema = _read_few(description)
        names = [name for name in schema.names if with_key or name != "key"]
        batches = []
        for block, _, packed in group:
            numbers.append(block)
            batches.append(pa.ipc.read_record_batch(packed, schema).select(names))
        batch = pa.concat_batches(batches)
        for name, distinct in dictionaries.items():
            batch = batch.set_column(names.index(name), name, distinct.take(batch.column(name)))
        texts.append(batch)
    rows = widen(b"".join(numbers), len(Watches._fields), _uppermost_byte(shard))
    watches = Watches(*np.ascontiguousarray(np.frombuffer(rows, np.int64).reshape(-1, len(Watches._fields)).T))
    return watches._replace(deadline_us=watches.start_us + watches.deadline_us), pa.concat_batches(texts)


def _parts(value: memoryview) -> tuple[memoryview, bytes, pa.Buffer]:
    """Split a value of `pack_operations` into its numbers, the description of `_few`, and the batch of texts."""
    first, second = _SIZES.unpack_from(value)
    numbers, description = value[_SIZES.size :][:first], value[_SIZES.size + first :][:second]
    return numbers, bytes(description), pa.py_buffer(value[_SIZES.size + first + second :])


def unpacked_events(packed: ReadableBuffer, shard: int) -> array[int]:
    """Unpack concatenated values of `EventPacker`, of one shard, into rows of (place, identity, progress, at)."""
    return widen(packed, _EVENT_NUMBERS, _uppermost_byte(shard))


def _narrowed(rows: Integers, ends: Integers, others: Sequence[Integers]) -> tuple[npt.NDArray[np.intp], pa.Array]:
    """Pack blocks of rows (place, identity, `others`). Return the numbers of the blocks with rows, and these blocks."""
    spans = [(int(column.min()), int(column.max())) for column in others]
    least = np.array([0] * len(_KEY_BYTES) + [low for low, _ in spans])
    widths = np.array([*_KEY_BYTES, *(((high - low).bit_length() + 7) // 8 for low, high in spans)])
    lengths = np.diff(ends, prepend=0)
    nonempty = np.flatnonzero(lengths)
    sizes = head_size(len(widths)) + lengths[nonempty] * widths.sum()
    packed = np.empty(sizes.sum(), np.uint8)
    narrow(rows.ravel().data, ends.data, widths.data, least.data, packed.data)
    return nonempty, binary(sizes, packed)


def _uppermost_byte(shard: int) -> int:
    """Return the uppermost byte of a shard's places, at its position; `_PLACE_BYTES` leave it out."""
    lower = 8 * _PLACE_BYTES
    return ((shard - SHARDS // 2) << (64 - _SHARD_BITS)) >> lower << lower


def _few(texts: pa.RecordBatch, blocks: int) -> tuple[pa.RecordBatch, bytes]:
    """Encode columns of few distinct values as one byte a row, unless that saves nothing.

    Return the texts, and a description for `_read_few`: the names of all columns and the distinct values. The
    description is repeated in each of the `blocks`.
    """
    dictionaries: dict[str, list[str]] = {}
    for name in _OFTEN_FEW:
        column = texts.column(name)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        values = encoded.dictionary.cast(pa.string())
        longest = pc.max(pc.binary_length(values)).as_py() or 0
        if len(values) <= _FEW and longest <= _SHORT and values.nbytes * blocks <= len(column):
            order = pc.sort_indices(values)  # so that most chunks have the same description
            rank = np.empty(len(order), np.uint8)
            rank[order.to_numpy()] = np.arange(len(order))
            dictionaries[name] = values.take(order).to_pylist()
            indices = pa.array(rank).take(encoded.indices)
            texts = texts.set_column(texts.schema.get_field_index(name), name, indices)
    plain = pa.schema([(name, pa.uint8() if name in dictionaries else pa.string()) for name in texts.schema.names])
    description = {name: dictionaries.get(name) for name in texts.schema.names}
    return texts.cast(plain), json.dumps(description, ensure_ascii=False).encode()


@lru_cache(maxsize=64)
def _read_few(description: bytes) -> tuple[dict[str, pa.Array], pa.Schema]:
    """Parse the description of `_few`: return the values of each encoded column, and the schema of the texts."""
    columns = json.loads(description)
    values = {name: pa.array(texts, pa.string()) for name, texts in columns.items() if texts is not None}
    return values, pa.schema([(name, pa.uint8() if name in values else pa.string()) for name in columns])


def binary(lengths: npt.ArrayLike, values: Any) -> pa.Array:
    """Return a binary array of values that are concatenated in one buffer, given their lengths in bytes.

    Raises OverflowError for 2 GB or more.
    """
    ends = np.concatenate(([0], np.cumsum(lengths)))
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"the rows of one chunk have {ends[-1]:,} bytes in all; the maximum is 2 GB")
    offsets = ends.astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    )
