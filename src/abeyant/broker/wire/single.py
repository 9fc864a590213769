"""A fast path for Produce and Fetch of a single partition, the form that nearly all clients send.

In general a request is walked field by field (`bounds.py`), and a response is written field by field (`encoding.py`).
That takes some twenty and forty calls of Python functions. Here one function checks a request's lengths, and one packs
a whole response. Both are for versions with compact strings, from Produce 9 and Fetch 12 on. Any other form takes the
general path. Tests compare the two paths.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from abeyant.broker.wire.encoding import varint

PRODUCE: Final = 0
FETCH: Final = 1
PRODUCE_SINCE: Final = 9
"""The lowest version of Produce for which this module checks requests and writes responses."""
FETCH_SINCE: Final = 12
"""The lowest version of Fetch for which this module checks requests and writes responses."""

_IDS_SINCE: Final = 13  # topic ids in place of names, in both APIs
_WITHOUT_REPLICA: Final = 15  # Fetch: the replica id is a tagged field from here on
_TWO_BYTES: Final = 128  # from here on a varint has several bytes
_UNTAGGED: Final = b"\0\0\0"  # of partition, topic, and request or response
_PARTITION: Final = 32  # bytes of a partition in Fetch, without its tags

_PRODUCE_HEAD = Struct(">iBB").pack
_PRODUCE_TAIL = Struct(">BihqqqBBBBiB").pack
_FETCH_HEAD = Struct(">iBihiB").pack
_FETCH_PARTITION = Struct(">BihqqqBi").pack

Fits = Callable[[memoryview, int], bool]
"""A function that checks whether a request, at a position in a frame, is of a single partition and within the frame.

False or an IndexError means only that the request needs the general check: it may still be valid.
"""


def request_fits(key: int, version: int) -> Fits | None:
    """Return the check for requests of an API in a version; None if this module does not support the version."""
    if key == PRODUCE and version >= PRODUCE_SINCE:
        return _produce_fits(with_ids=version >= _IDS_SINCE)
    if key == FETCH and version >= FETCH_SINCE:
        return _fetch_fits(21 if version >= _WITHOUT_REPLICA else 25, with_ids=version >= _IDS_SINCE)
    return None


def _produce_fits(*, with_ids: bool) -> Fits:
    def fits(data: memoryview, position: int) -> bool:
        # null as transactional id, acks and time-out; arrays of one element, whose count is written plus one
        if data[position] or data[position + 7] != 2:
            return False
        position += 8
        size = 16 if with_ids else data[position]
        if not 0 < size < _TWO_BYTES or data[position + size] != 2:
            return False
        position += size + 5
        size, shift = data[position], 7
        if size >= _TWO_BYTES:
            size &= 127
            while (byte := data[position := position + 1]) >= _TWO_BYTES and shift < 28:
                size |= (byte & 127) << shift
                shift += 7
            size |= byte << shift
        position += size or 1  # the length is written plus one, and 0 is null
        return bytes(data[position : position + 3]) == _UNTAGGED

    return fits


def _fetch_fits(topics_at: int, *, with_ids: bool) -> Fits:
    """Return the check for Fetch. The array of topics begins `topics_at` bytes after the start of the request."""

    def fits(data: memoryview, position: int) -> bool:
        position += topics_at
        topics = data[position]
        position += 1
        if topics == 2:
            size = 16 if with_ids else data[position]
            if not 0 < size < _TWO_BYTES or data[position + size] != 2:
                return False
            position += size + 1 + _PARTITION
            if data[position] or data[position + 1]:  # tags
                return False
            position += 2
        elif topics != 1:  # none, as in most fetches of a session
            return False
        rack = data[position + 1]
        if data[position] != 1 or not 0 < rack < _TWO_BYTES:  # nothing forgotten
            return False
        return data[position + 1 + rack] == 0

    return fits


def compact_name(name: str) -> bytes:
    """Return a topic's name encoded as a compact string."""
    data = name.encode()
    return varint(len(data) + 1) + data


def produce_response(
    correlation_id: int, topic: bytes, index: int, base_offset: int, append_time_ms: int, start_offset: int
) -> list[bytes]:
    """Return the response to a successful append, in parts.

    `topic` is the topic's compact name, from version 13 on the topic's id.
    """
    tail = _PRODUCE_TAIL(2, index, 0, base_offset, append_time_ms, start_offset, 1, 0, 0, 0, 0, 0)
    return [_PRODUCE_HEAD(correlation_id, 0, 2), topic, tail]


def fetch_response(
    correlation_id: int,
    session: int,
    topic: bytes,
    index: int,
    marks: tuple[int, int, int],
    records: bytes,
    *,
    committed: bool,
) -> list[bytes]:
    """Return the response with a partition's records, in parts.

    `topic` is the topic's compact name, from version 13 on the topic's id. `marks` are high watermark, last stable
    offset and log start. `committed` (read_committed) sends an empty list of aborted transactions, so `records` must
    hold no aborted records; otherwise the list is null.
    """
    return [
        _FETCH_HEAD(correlation_id, 0, 0, 0, session, 2),
        topic,
        _FETCH_PARTITION(2, index, 0, *marks, 1 if committed else 0, -1),
        varint(len(records) + 1),
        records,
        _UNTAGGED,
    ]
