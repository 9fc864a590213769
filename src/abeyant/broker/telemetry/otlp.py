"""Read the names of metrics from a client's push, which is OpenTelemetry's message `MetricsData`, version 1.

Of its Protocol Buffers fields only these are read: resource_metrics (1), scope_metrics (2), metrics (2), name (1).
"""

from __future__ import annotations

from collections.abc import Iterator

_PATH = (1, 2, 2, 1)
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # wire types
_FIXED = {_FIXED_64: 8, _FIXED_32: 4}
_LONGEST_VARINT = 10  # bytes


def metric_names(data: bytes) -> tuple[str, ...]:
    """Return the names of all metrics, sorted, each once. Raises ValueError for invalid data. O(bytes)."""
    return tuple(sorted({str(name, "utf-8") for name in _values(memoryview(data), _PATH)}))


def _values(message: memoryview, path: tuple[int, ...]) -> Iterator[memoryview]:
    """Yield the values of the nested fields to which `path` leads: the field numbers, from the outermost."""
    field, *rest = path
    for value in _fields(message, field):
        if rest:
            yield from _values(value, tuple(rest))
        else:
            yield value


def _fields(message: memoryview, field_number: int) -> Iterator[memoryview]:
    """Yield the values of the length-delimited field with the number `field_number`. Raises ValueError."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _varint(message, at)
            if tag >> 3 == field_number:
                yield message[at : at + size]
            at += size
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise ValueError(f"wire type {kind} is invalid: OpenTelemetry's fields have 0, 1, 2 or 5")
    if at > len(message):
        raise ValueError(f"a field extends {at - len(message)} bytes beyond the end of its message")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Read the varint at byte `at`. Return its value and the position after it. Raises ValueError."""
    number = 0
    for index, byte in enumerate(message[at : at + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, at + index + 1
    raise ValueError(f"the varint at byte {at} is cut off, or longer than {_LONGEST_VARINT} bytes")
