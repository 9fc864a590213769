"""Encode a response by the fields of kio's class for its version, into the same bytes as kio's own writer.

A field that the response object lacks is written with its default, as in Kafka's generated classes.

kio (0.6) writes field by field in Python and checks each value's type: some 130 calls for the response to a produce of
one partition, which takes longer than the rest of acks=all. Here each class is inspected once, and adjacent numbers are
packed in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from struct import Struct
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

Append = Callable[[bytes], object]
Encode = Callable[[Append, Any], object]
"""A function that appends a value's bytes, in parts.

For a value of the wrong type or size it raises what `struct` or the value's methods raise.
"""

_INT16 = Struct(">h").pack
_INT32 = Struct(">i").pack
_NUMBERS = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d",
    "error_code": "h", "timedelta_i32": "i", "timedelta_i64": "q", "datetime_i64": "q", "uuid": "16s",
}  # fmt: skip
_EMPTY: dict[str, Any] = {
    "string": "", "bytes": b"", "records": b"", "uuid": None, "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
}  # fmt: skip
_NO_ID = bytes(16)
_SMALL = [bytes([number]) for number in range(128)]  # numbers of one byte


def encoder(entity: Any) -> Encode:
    """Return a function that writes any object that has the fields of `entity`, one of kio's classes."""
    flexible: bool = entity.__flexible__
    steps: list[tuple[Callable[[Any], Any], Encode]] = []  # (getter, encoder) of each field or run
    last: Encode | None = None  # writes the tagged fields
    run: list[Field[Any]] = []  # adjacent numbers
    tagged = []
    for field in fields(entity):
        if "tag" in field.metadata:
            tagged.append(field)
        elif _is_number(field):
            run.append(field)
        else:
            if run:
                steps.append(_run(run))
                run = []
            steps.append((attrgetter(field.name), _field(field, flexible)))
    if run:
        steps.append(_run(run))
    if flexible:
        last = _tags(tagged) if tagged else _no_tags

    def encode(append: Append, message: Any) -> None:
        for take, write in steps:
            try:
                value = take(message)
            except AttributeError:
                value = take(_with_defaults(message, entity))
            write(append, value)
        if last is not None:
            last(append, message)

    return encode


def _with_defaults(message: Any, entity: Any) -> Any:
    """Set the fields that the message lacks to their defaults. Return the message."""
    for name, value in defaults(entity).items():
        if not hasattr(message, name):
            setattr(message, name, value)
    return message


@cache
def defaults(entity: Any) -> dict[str, Any]:
    """Return the default of each field: the schema's default, else 0, "" or empty, as in Kafka's generated classes."""
    return {field.name: _default(field) for field in fields(entity) if not is_dataclass(field.type)}


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if _items(field) is not None:
        return ()
    return _EMPTY.get(field.metadata["kafka_type"], 0)


def _is_number(field: Field[Any]) -> bool:
    return get_origin(field.type) is not tuple and field.metadata.get("kafka_type") in _NUMBERS and not _items(field)


def _items(field: Field[Any]) -> Any:
    """Return the type of an array's elements; None if the field is not an array."""
    for kind in (field.type, *get_args(field.type)):
        if get_origin(kind) is tuple:
            return get_args(kind)[0]
    return None


def _run(run: list[Field[Any]]) -> tuple[Callable[[Any], Any], Encode]:
    """Return a getter of adjacent number fields, and an encoder that packs the numbers in one call."""
    kinds = [field.metadata["kafka_type"] for field in run]
    pack = Struct(">" + "".join(map(_NUMBERS.__getitem__, kinds))).pack
    converted = [(index, _CONVERTERS[kind]) for index, kind in enumerate(kinds) if kind in _CONVERTERS]
    take = attrgetter(*(field.name for field in run))

    def write(append: Append, numbers: tuple[Any, ...]) -> None:
        append(pack(*numbers))

    def write_converted(append: Append, numbers: tuple[Any, ...]) -> None:
        values = [*numbers]
        for index, convert in converted:
            values[index] = convert(values[index])
        append(pack(*values))

    def write_one(append: Append, number: Any) -> None:
        append(pack(converted[0][1](number) if converted else number))

    return take, write_one if len(run) == 1 else write_converted if converted else write


def _milliseconds(time: timedelta) -> int:
    return round(time.total_seconds() * 1000)


def moment(time: datetime | int | None) -> int:
    """Return a time in milliseconds since 1970, or -1 for None. An integer already is in milliseconds."""
    if isinstance(time, datetime):
        return round(time.timestamp() * 1000)
    return -1 if time is None else time  # already in ms, as `datetime` ends with the year 9999


def _id(value: UUID | None) -> bytes:
    return _NO_ID if value is None else value.bytes


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "timedelta_i32": _milliseconds, "timedelta_i64": _milliseconds, "datetime_i64": moment, "uuid": _id,
}  # fmt: skip


def _field(field: Field[Any], flexible: bool) -> Encode:
    """Return the encoder of a single field."""
    kind = _items(field)
    if kind is not None:
        return _array(encoder(kind) if is_dataclass(kind) else _primitive(field, flexible), flexible)
    if is_dataclass(field.type):
        return encoder(field.type)
    inner = next((part for part in get_args(field.type) if is_dataclass(part)), None)
    return _primitive(field, flexible) if inner is None else _nullable(encoder(inner))


def _primitive(field: Field[Any], flexible: bool) -> Encode:
    name = field.metadata["kafka_type"]
    if name in _NUMBERS:
        pack, convert = Struct(">" + _NUMBERS[name]).pack, _CONVERTERS.get(name, _itself)
        return lambda append, number: append(pack(convert(number)))
    if name not in ("string", "bytes", "records"):
        raise ValueError(f"the field {field.name} has the type {name}, which this encoder cannot write")
    is_string = name == "string"
    write = (_compact_string if is_string else _compact_bytes) if flexible else _string if is_string else _bytes
    if NoneType not in get_args(field.type) or _items(field) is not None:
        return write
    none = _SMALL[0] if flexible else _INT16(-1) if is_string else _INT32(-1)
    return lambda append, value: append(none) if value is None else write(append, value)


def _compact_string(append: Append, value: str) -> None:
    _compact_bytes(append, value.encode())


def _compact_bytes(append: Append, value: bytes) -> None:
    append(varint(len(value) + 1))
    append(value)


def _string(append: Append, value: str) -> None:
    data = value.encode()
    append(_INT16(len(data)))
    append(data)


def _bytes(append: Append, value: bytes) -> None:
    append(_INT32(len(value)))
    append(value)


def _nullable(write: Encode) -> Encode:
    """Return the encoder of a nullable entity: a first byte of -1 means null (KIP-893)."""

    def encode(append: Append, message: Any) -> None:
        if message is None:
            append(b"\xff")
        else:
            append(b"\x01")
            write(append, message)

    return encode


def _array(write: Encode, flexible: bool) -> Encode:
    def encode(append: Append, values: Any) -> None:
        count = -1 if values is None else len(values)
        append(varint(count + 1) if flexible else _INT32(count))
        if values:
            for value in values:
                write(append, value)

    return encode


def _no_tags(append: Append, _: Any) -> None:
    append(_SMALL[0])


def _tags(tagged: list[Field[Any]]) -> Encode:
    """Return the encoder of tagged fields (KIP-482). It omits fields that have their defaults; the order is by tag."""
    steps = [
        (field.metadata["tag"], field.name, field.default, _field(field, flexible=True))
        for field in sorted(tagged, key=lambda field: field.metadata["tag"])
    ]

    def encode(append: Append, message: Any) -> None:
        count = 0
        parts: list[bytes] = []
        for tag, name, default, write in steps:
            value = getattr(message, name, default)
            if value is not default and value != default:
                of_value: list[bytes] = []
                write(of_value.append, value)
                count += 1
                parts += (varint(tag), varint(sum(map(len, of_value))), *of_value)
        append(varint(count))
        if parts:
            append(b"".join(parts))

    return encode


def _itself(value: Any) -> Any:
    return value


def varint(value: int) -> bytes:
    """Return the bytes of an unsigned varint: seven bits a byte, the lowest first."""
    if value < len(_SMALL):
        return _SMALL[value]
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    data = bytearray()
    while value >= len(_SMALL):
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)
