"""Responses are written as kio writes them, byte for byte: every API in every version."""

from __future__ import annotations

import io
import uuid
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any, get_args, get_origin

import pytest
from kio.index import load_response_schema
from kio.serial import entity_writer

from abeyant.broker.wire.apis import APIS, Api
from abeyant.broker.wire.encoding import encoder
from abeyant.broker.wire.schema import ErrorCode, Message

_VALUES: dict[str, tuple[Any, Any]] = {
    "bool": (True, False),
    "int8": (-3, 100),
    "int16": (-2, 30_000),
    "uint16": (0, 60_000),
    "int32": (-1, 70_000),
    "int64": (-1, 1 << 40),
    "float64": (0.0, -1.5),
    "error_code": (ErrorCode.none, ErrorCode.not_leader_or_follower),
    "timedelta_i32": (timedelta(0), timedelta(milliseconds=30_001)),
    "timedelta_i64": (timedelta(milliseconds=-1), timedelta(days=100)),
    "datetime_i64": (datetime.fromtimestamp(0, UTC), datetime.fromtimestamp(1_700_000_000.123, UTC)),
    "uuid": (None, uuid.UUID(int=7 << 100)),
    "string": ("", "ünïcode" * 40),
    "bytes": (b"", bytes(20_000)),
    "records": (b"", bytes(300)),
}


def _filled(entity: Any, large: bool) -> Message:
    """A message with small or large values."""
    return Message(**{field.name: _value(field, large) for field in fields(entity)})


def _value(field: Any, large: bool) -> Any:
    kinds = (field.type, *get_args(field.type))
    if not large and NoneType in kinds:
        return None
    array = next((kind for kind in kinds if get_origin(kind) is tuple), None)
    if array is not None:
        kind = get_args(array)[0]
        one = _filled(kind, large) if is_dataclass(kind) else _VALUES[field.metadata["kafka_type"]][large]
        return (one,) * (200 if large and not is_dataclass(kind) else 2 if large else 0)
    for kind in kinds:
        if is_dataclass(kind):
            return _filled(kind, large)
    return _VALUES[field.metadata["kafka_type"]][large]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_response_is_written_as_kio_writes_it(api: Api) -> None:
    for version in range(api.lowest, api.highest + 1):
        schema: Any = load_response_schema(api.key, version)
        encode, write = encoder(schema), entity_writer(schema)
        for message in _filled(schema, False), _filled(schema, True):
            expected = io.BytesIO()
            write(expected, message)
            parts: list[bytes] = []
            encode(parts.append, message)
            assert b"".join(parts) == expected.getvalue(), (version, message)


def test_what_a_field_cannot_hold_is_refused() -> None:
    encode = encoder(load_response_schema(0, 9))
    partition = Message(
        index=1 << 31, error_code=ErrorCode.none, base_offset=0, log_append_time=None, log_start_offset=0,
        record_errors=(), error_message=None,
    )  # fmt: skip
    topics = [Message(name="topic", partition_responses=[partition])]
    nameless = [Message(name=None, partition_responses=[])]
    parts: list[bytes] = []
    with pytest.raises(Exception, match=r"'i' format requires"):
        encode(parts.append, Message(responses=topics, throttle_time=timedelta(0)))
    with pytest.raises(AttributeError, match="encode"):
        encode(parts.append, Message(responses=nameless, throttle_time=timedelta(0)))


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_field_that_is_not_given_has_its_default(api: Api) -> None:
    for version in range(api.lowest, api.highest + 1):
        schema: Any = load_response_schema(api.key, version)
        expected = io.BytesIO()
        entity_writer(schema)(expected, _defaults(schema))
        parts: list[bytes] = []
        encoder(schema)(parts.append, Message())
        assert b"".join(parts) == expected.getvalue(), version


def _defaults(entity: Any) -> Any:
    """kio's message with Kafka's defaults: where the schema has none, what is 0 or empty."""
    made = {}
    for field in fields(entity):
        nullable = NoneType in get_args(field.type) and field.name == "error_message"  # ours is null
        if field.default is MISSING:
            made[field.name] = None if nullable else _empty(field)
    return entity(**made)


def _empty(field: Any) -> Any:
    kinds = (field.type, *get_args(field.type))
    if any(get_origin(kind) is tuple for kind in kinds):
        return ()
    zero: dict[str, Any] = {"error_code": ErrorCode.none, "uuid": None, "string": "", "bytes": b"", "records": b""}
    kind = field.metadata["kafka_type"]
    if kind.startswith("datetime"):
        return datetime.fromtimestamp(0, UTC)
    return timedelta(0) if kind.startswith("timedelta") else zero.get(kind, False if kind == "bool" else 0)
