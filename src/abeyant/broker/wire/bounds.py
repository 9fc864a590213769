"""Reject a request whose arrays announce more elements than it has bytes, before kio reads it.

kio (0.6) allocates memory for as many elements as an array announces, before it reads the first one. Five bytes can
announce 34 billion; if the allocation fails, kio ends the process with all brokers in it. So each request is walked
first: lengths and counts are read, and nothing is allocated. Every element has at least one byte, so an array may
announce at most as many elements as bytes are left (law K9). The walk also rejects null arrays where Kafka does not
allow null, but kio does.

The walk is O(fields): some microseconds for a request of one partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from struct import Struct, error
from types import NoneType
from typing import Any, get_args, get_origin

Walk = Callable[[memoryview, int], int]
"""A function that takes a frame and the position at which a value begins, and returns the position at which it ends.

Raises ValueError, IndexError or struct.error.
"""

_INT16 = Struct(">h").unpack_from
_INT32 = Struct(">i").unpack_from
_SIZES = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "timedelta_i32": 4,
    "timedelta_i64": 8, "uuid": 16,
}  # fmt: skip
_LONG = 128  # from here on a varint has several bytes
_LONGEST_VARINT = 5  # bytes of seven bits
_LONGEST_STRING = 32_767  # bytes


def checked_reader(
    entity: Any,
    read: Callable[[memoryview, int], tuple[Any, int]],
    fits: Callable[[memoryview, int], bool] | None = None,
) -> Callable[[memoryview, int], Any]:
    """Return a function that walks a request in a frame, then reads the request with `read`, kio's reader.

    `fits` is a quicker check of the most common form of request; if it returns True, the walk is skipped.

    The function raises ValueError, or what kio raises, for an invalid request. It ignores trailing bytes, as Kafka
    does: librdkafka 2.15 appends three bytes to some Metadata requests.
    """
    walk = walker(entity)

    def read_checked(frame: memoryview, start: int) -> Any:
        try:
            end = start if fits is not None and fits(frame, start) else walk(frame, start)
        except (IndexError, error):
            end = len(frame) + 1
        if end > len(frame):
            raise ValueError(f"the request ends early: it has only {len(frame)} bytes")
        return read(frame, start)[0]

    return read_checked


def walker(entity: Any) -> Walk:
    """Return the `Walk` of one of kio's classes. Raises ValueError if the type of a field is unknown."""
    flexible: bool = entity.__flexible__
    steps: list[tuple[int, Walk]] = []  # (bytes to skip, walk of the field after them)
    tagged: dict[int, Walk] = {}
    skip = 0
    for field in fields(entity):
        step = _field(field, flexible)
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = _walk(step)
        elif isinstance(step, int):
            skip += step
        else:
            steps.append((skip, step))
            skip = 0
    if flexible:
        steps.append((skip, _tags(tagged)))
        skip = 0

    def walk(data: memoryview, position: int) -> int:
        for before, step in steps:
            position = step(data, position + before)
        return position + skip

    return walk


def _walk(step: int | Walk) -> Walk:
    if not isinstance(step, int):
        return step
    size = step
    return lambda _, position: position + size


def _field(field: Any, flexible: bool) -> int | Walk:
    kind = field.type
    if get_origin(kind) is tuple:
        return _array(field, get_args(kind)[0], flexible, nullable=False)
    parts = get_args(kind)
    if NoneType in parts:
        (inner,) = (part for part in parts if part is not NoneType)
        if get_origin(inner) is tuple:
            return _array(field, get_args(inner)[0], flexible, nullable=True)
        if is_dataclass(inner):
            return _nullable(walker(inner))
    if is_dataclass(kind):
        return walker(kind)
    return _primitive(field, flexible)


def _primitive(field: Any, flexible: bool) -> int | Walk:
    name = field.metadata["kafka_type"]
    if name in _SIZES:
        return _SIZES[name]
    if name not in ("string", "bytes", "records"):
        raise ValueError(f"the field {field.name} has the type {name} of unknown size: add the type to _SIZES")
    if flexible:
        return _compact_string if name == "string" else _compact
    return _string if name == "string" else _bytes


def _compact(data: memoryview, position: int) -> int:
    size = data[position]
    if size < _LONG:
        return position + (size or 1)  # the length plus one; 0 is null
    size, position = _varint(data, position)
    return position + size - 1 if size else position


def _compact_string(data: memoryview, position: int) -> int:
    """Walk a compact string. As in Kafka, its length is limited to what older versions of the protocol allow."""
    size = data[position]
    if size < _LONG:
        return position + (size or 1)
    size, position = _varint(data, position)
    if size - 1 > _LONGEST_STRING:
        raise ValueError(f"the string at byte {position} has {size - 1:,} bytes; the limit is {_LONGEST_STRING:,}")
    return position + size - 1 if size else position


def _string(data: memoryview, position: int) -> int:
    size: int = _INT16(data, position)[0]
    return position + 2 + max(size, 0)


def _bytes(data: memoryview, position: int) -> int:
    size: int = _INT32(data, position)[0]
    return position + 4 + max(size, 0)


def _nullable(inner: Walk) -> Walk:
    """Return the walk of a nullable entity: a negative first byte means null."""
    return lambda data, position: position + 1 if data[position] > 127 else inner(data, position + 1)


def _array(field: Any, kind: Any, flexible: bool, *, nullable: bool) -> Walk:
    element = walker(kind) if is_dataclass(kind) else _primitive(field, flexible)
    name = field.name

    def walk(data: memoryview, position: int) -> int:
        if flexible:
            count, position = _varint(data, position)
            count -= 1  # 0 is null
        else:
            (count,) = _INT32(data, position)
            position += 4
        if count < 0 and not (nullable and count == -1):
            raise ValueError(f"the request's array {name} announces {count:,} elements, which is no valid count")
        remaining = len(data) - position
        if count > remaining:
            raise ValueError(
                f"the request's array {name} announces {count:,} elements, but only {remaining:,} bytes are left"
            )
        if isinstance(element, int):
            return position + element * max(count, 0)
        for _ in range(count):
            position = element(data, position)
        return position

    return walk


def _tags(walks: dict[int, Walk]) -> Walk:
    def walk(data: memoryview, position: int) -> int:
        if not data[position]:
            return position + 1
        count, position = _varint(data, position)
        for _ in range(count):
            tag, position = _varint(data, position)
            size, position = _varint(data, position)
            end = position + size
            if end > len(data):
                raise ValueError(f"the request's tagged field {tag} announces {size:,} bytes, more than are left")
            if tag in walks:
                walks[tag](data, position)
            position = end
        return position

    return walk


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return the unsigned varint at `position`, and the position after the varint."""
    value = data[position]
    if value < _LONG:
        return value, position + 1
    value &= 127
    byte = data[position + 1]
    if byte < _LONG:
        return value | byte << 7, position + 2
    for index in range(1, _LONGEST_VARINT):
        byte = data[position + index]
        value |= (byte & 127) << 7 * index
        if byte < _LONG:
            return value, position + index + 1
    raise ValueError(f"the varint at byte {position} has more than {_LONGEST_VARINT} bytes")
