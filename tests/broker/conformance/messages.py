"""Kafka's messages as plain dictionaries, whatever their version: written to bytes and read from bytes by kio.

A request names only what matters; other fields get the protocol's default, or else zero, nothing or false. A field that
the version does not have yet is left out; one that no version has is a mistake. Times are milliseconds.
"""

from __future__ import annotations

import dataclasses
import io
import typing
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from .times import accept_no_time

Plain = Any  # what JSON has, and bytes
ZERO_ID = str(UUID(int=0))

API_KEYS = {"".join(part.capitalize() for part in name.split("_")): key for key, name in api_key_map.items()}
accept_no_time()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def kio_versions(api: str) -> range:
    """The versions that kio can write and read."""
    known = sorted(schema_name_map[api_key_map[API_KEYS[api]]])
    return range(known[0], known[-1] + 1)


def request(api: str, version: int, correlation_id: int, client_id: str | None, body: Mapping[str, Plain]) -> bytes:
    """A request's bytes, header included, without the length in front."""
    schema = load_request_schema(API_KEYS[api], version)
    unknown = _names(body) - _known(api)
    if unknown:
        raise ValueError(f"{api} has no field {', '.join(sorted(unknown))} in any version")
    kinds = typing.get_type_hints(schema.__header_schema__)
    given: dict[str, Any] = {
        "request_api_key": API_KEYS[api], "request_api_version": version,
        "correlation_id": correlation_id, "client_id": client_id,
    }  # fmt: skip
    header = schema.__header_schema__(**{name: given[name] for name in kinds if name in given})
    out = io.BytesIO()
    entity_writer(schema.__header_schema__)(out, header)
    entity_writer(schema)(out, _build(schema, body))
    return out.getvalue()


def response(api: str, version: int, data: bytes) -> tuple[int, dict[str, Plain]]:
    """An answer's correlation id, and what it says."""
    schema = load_response_schema(API_KEYS[api], version)
    header, at = entity_reader(schema.__header_schema__)(data, 0)
    said, size = entity_reader(schema)(data, at)
    if at + size != len(data):
        raise ValueError(f"{api} v{version}: {len(data) - at - size} of {len(data)} bytes follow the answer")
    return header.correlation_id, _plain(said)


@cache
def _known(api: str) -> frozenset[str]:
    """The names of all fields that any version of a request has, nested ones too."""
    found: set[str] = set()
    for version in kio_versions(api):
        _collect(load_request_schema(API_KEYS[api], version), found)
    return frozenset(found)


def _collect(schema: type, found: set[str]) -> None:
    for field, kind in _fields(schema):
        found.add(field.name)
        if dataclasses.is_dataclass(kind.inner):
            _collect(typing.cast("type", kind.inner), found)


def _names(body: Plain) -> set[str]:
    if isinstance(body, Mapping):
        return set(body) | {name for value in body.values() for name in _names(value)}
    if isinstance(body, list | tuple):
        return {name for value in body for name in _names(value)}
    return set()


class _Kind(typing.NamedTuple):
    inner: Any
    is_many: bool
    may_be_none: bool


def _kind(hint: Any) -> _Kind:
    may_be_none = type(None) in typing.get_args(hint)
    if may_be_none and typing.get_origin(hint) is not tuple:
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    is_many = typing.get_origin(hint) is tuple
    if is_many:
        hint = typing.get_args(hint)[0]
        if type(None) in typing.get_args(hint):
            hint = next(one for one in typing.get_args(hint) if one is not type(None))
    return _Kind(hint, is_many, may_be_none)


@cache
def _fields(schema: type) -> tuple[tuple[dataclasses.Field[Any], _Kind], ...]:
    hints = typing.get_type_hints(schema)
    return tuple((field, _kind(hints[field.name])) for field in dataclasses.fields(schema))


def _build(schema: type, body: Mapping[str, Plain]) -> Any:
    values = {}
    for field, kind in _fields(schema):
        if field.name in body:
            given = body[field.name]
            many = kind.is_many and given is not None
            values[field.name] = tuple(_value(kind, one) for one in given) if many else _value(kind, given)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            values[field.name] = _zero(kind)
    return schema(**values)


def _value(kind: _Kind, given: Plain) -> Any:
    if given is None:
        return None
    if dataclasses.is_dataclass(kind.inner):
        return _build(typing.cast("type", kind.inner), given)
    if kind.inner is UUID:
        return UUID(given) if UUID(given).int else None
    if issubclass(kind.inner, timedelta):
        return timedelta(milliseconds=given)
    if issubclass(kind.inner, datetime):
        return _EPOCH + timedelta(milliseconds=given)
    return given


def _zero(kind: _Kind) -> Any:
    if kind.is_many:
        return ()
    if kind.may_be_none:
        return None
    if dataclasses.is_dataclass(kind.inner):
        return _build(typing.cast("type", kind.inner), {})
    for base, zero in ((bool, False), (int, 0), (str, ""), (bytes, b""), (float, 0.0), (timedelta, timedelta())):
        if issubclass(kind.inner, base):
            return zero
    raise TypeError(f"no zero for {kind.inner}")


def _plain(value: Any) -> Plain:
    if dataclasses.is_dataclass(value):
        return {
            field.name: ZERO_ID if kind.inner is UUID and not kind.is_many and found is None else
            -1 if found is None and _is_time(kind) else _plain(found)
            for field, kind in _fields(typing.cast("type", type(value)))
            for found in (getattr(value, field.name),)
        }  # fmt: skip
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Enum):
        return value.name.upper()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, timedelta):
        return value // _MILLISECOND
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MILLISECOND
    return value


def _is_time(kind: _Kind) -> bool:
    return isinstance(kind.inner, type) and issubclass(kind.inner, datetime | timedelta)
