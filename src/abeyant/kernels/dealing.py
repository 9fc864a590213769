"""Join four columns into rows, grouped into shards by the first column's uppermost bits: one pass of a radix sort.

Rows are joined while they are dealt out to shards, so each value is read once and written once (Knuth, TAOCP 3, 5.2.5).

O(rows + shards). When compiled, both functions release the global interpreter lock.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.kernels.buffers import integers, same_length, writable_integers

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from abeyant.kernels.rows import Integers

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio, odd; a C constant when compiled
_ALL = 0xFFFFFFFFFFFFFFFF
_WIDTH = 4


def pair_hashes(
    ones: ReadableBuffer,
    one_of: ReadableBuffer,
    others: ReadableBuffer,
    other_of: ReadableBuffer,
    places: WriteableBuffer,
    identities: WriteableBuffer,
) -> None:
    """Write into `places` and `identities` the two hashes of each row's pair of texts.

    `ones` and `others` hold two hashes per text, as `hashing.hash_texts` writes them. `one_of` and `other_of` hold for
    each row the indices of its two texts, as 32-bit integers; either may be empty, and row n then has text n. The order
    of a pair matters: a reversed pair has other hashes. Raises ValueError for an index out of range, or columns of
    different length; TypeError for other kinds of buffer.
    """
    place = writable_integers(places, "places")
    identity = writable_integers(identities, "identities")
    same_length("identities", identity, "places", len(place))
    columns = []
    for name, hashes, numbers in (("one", ones, one_of), ("other", others, other_of)):
        values, rows = integers(hashes, f"{name}s"), memoryview(numbers)
        if rows.itemsize != 4 or not rows.contiguous:
            raise TypeError(f"{name}_of must hold 32-bit integers, not {rows.itemsize}-byte {rows.format!r}")
        rows = rows.cast("B").cast("i") if len(rows) else memoryview(array("i"))
        if len(rows):
            same_length(f"{name}_of", rows, "places", len(place))
        if not _all_in_range(rows, len(values) // 2, len(place)):
            raise ValueError(f"{name}_of has an index out of range for the {len(values) // 2} texts in {name}s")
        columns += [_unsigned(values), rows]
    _pair(columns[0], columns[1], columns[2], columns[3], _unsigned(place), _unsigned(identity))


def deal(
    places: ReadableBuffer,
    identities: ReadableBuffer,
    thirds: ReadableBuffer,
    fourths: ReadableBuffer,
    ends: WriteableBuffer,
    rows: WriteableBuffer,
) -> None:
    """Join the columns into `rows` of four integers, shard after shard; within a shard, rows keep their order.

    `ends` receives the end of each shard, counted in rows. Its length is the number of shards, a power of two from 2
    on; a row's shard is the uppermost bits of its place, as an unsigned integer. Raises ValueError for columns of
    different length or another number of shards, TypeError for other kinds of buffer.
    """
    place = integers(places, "places")
    columns = [place]
    for name, buffer in (("identities", identities), ("thirds", thirds), ("fourths", fourths)):
        column = integers(buffer, name)
        same_length(name, column, "places", len(place))
        columns.append(column)
    out = writable_integers(rows, "rows")
    same_length("rows", out, "places times 4", _WIDTH * len(place))
    shards = writable_integers(ends, "ends")
    if len(shards) < 2 or len(shards) & (len(shards) - 1):
        raise ValueError(f"ends has {len(shards)} elements, which is not a power of two above 1")
    _deal(columns[0], columns[1], columns[2], columns[3], 65 - len(shards).bit_length(), shards, out)


def _unsigned(view: memoryview) -> memoryview:
    return view.cast("B").cast("Q") if len(view) else memoryview(array("Q"))


# -- in C when compiled, the last two without the interpreter's lock -------------------------------------------------


def _all_in_range(numbers: memoryview, count: int, rows: int) -> bool:
    if not len(numbers):
        return rows <= count
    for row in range(len(numbers)):
        number = numbers[row]
        if number < 0 or number >= count:
            return False
    return True


def _pair(
    ones: memoryview,
    one_of: memoryview,
    others: memoryview,
    other_of: memoryview,
    places: memoryview,
    identities: memoryview,
) -> None:
    with cython.nogil:
        for row in range(len(places)):
            one = 2 * (one_of[row] if len(one_of) else row)
            other = 2 * (other_of[row] if len(other_of) else row)
            places[row] = _both(ones[one], others[other])
            identities[row] = _both(ones[one + 1], others[other + 1])


def _both(one: int, other: int) -> int:
    """Combine two hashes into one, which is spread as evenly as they are."""
    return (one * _GOLDEN + other) & _ALL


def _deal(
    places: Integers,
    identities: Integers,
    thirds: Integers,
    fourths: Integers,
    shift: int,
    ends: Integers,
    rows: Integers,
) -> None:
    """Write the columns into `rows` by shard, a counting sort; set `ends` to the end of each shard, in rows."""
    with cython.nogil:
        for shard in range(len(ends)):
            ends[shard] = 0
        for row in range(len(places)):
            ends[_shard(places[row], shift)] += 1
        to = 0
        for shard in range(len(ends)):
            count = ends[shard]
            ends[shard] = to
            to += count
        for row in range(len(places)):
            shard = _shard(places[row], shift)
            to = _WIDTH * ends[shard]
            ends[shard] += 1
            rows[to] = places[row]
            rows[to + 1] = identities[row]
            rows[to + 2] = thirds[row]
            rows[to + 3] = fourths[row]


def _shard(place: int, shift: int) -> int:
    return (place & _ALL) >> shift
