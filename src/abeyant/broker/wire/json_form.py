"""Convert messages to JSON as in Kafka's request log: with the protocol's field names, and only the size of records.

The form is that of Kafka's generated `JsonConverter` classes: kio's `max_wait` becomes `maxWaitMs`, an id becomes 22
characters of base64, and a tagged field with its default is omitted.
"""

from __future__ import annotations

import base64
import dataclasses
import typing
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from abeyant.broker.wire.encoding import defaults, moment

_MILLISECOND = timedelta(milliseconds=1)
_NO_ID = "A" * 22


class _Field(typing.NamedTuple):
    attribute: str
    name: str
    convert: Callable[[Any], Any]
    default: Any
    tagged: bool


def json_form(entity: type, message: object) -> dict[str, Any]:
    """Return `message` as a dict with the fields of kio's class `entity`, and defaults for fields that it lacks.

    `message` may be an object of any class. O(size of the message).
    """
    form: dict[str, Any] = {}
    for field in _fields(entity):
        value = getattr(message, field.attribute, field.default)
        if not field.tagged or value != field.default:
            form[field.name] = field.convert(value)
    return form


@cache
def _fields(entity: type) -> tuple[_Field, ...]:
    fields = []
    for field in dataclasses.fields(entity):
        kind = field.metadata.get("kafka_type", "")
        name = _camel(field.name)
        if kind == "records":
            name += "SizeInBytes"
        elif kind.startswith(("timedelta", "datetime")):
            name += "Ms"
        default, tagged = defaults(entity).get(field.name), "tag" in field.metadata
        fields.append(_Field(field.name, name, _converter(kind, field.type), default, tagged))
    return tuple(fields)


def _camel(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


def _converter(kind: str, hint: Any) -> Callable[[Any], Any]:
    nested = _nested(hint)
    convert_item = _CONVERTERS.get(kind, _itself) if nested is None else (lambda value: json_form(nested, value))

    def convert(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return [convert_item(item) for item in value]
        if value is None and nested is not None:
            return None
        return convert_item(value)

    return convert


def _nested(hint: Any) -> type | None:
    """Return kio's class of a field or of its elements; None for a primitive type. `hint` is the field's type."""
    if dataclasses.is_dataclass(hint):
        return typing.cast("type", hint)
    return next((entity for part in typing.get_args(hint) if (entity := _nested(part)) is not None), None)


def _itself(value: Any) -> Any:
    return value


def _size(value: Any) -> int | None:
    return None if value is None else len(value)


def _span(value: timedelta | None) -> int:
    return -1 if value is None else value // _MILLISECOND


def _id(value: uuid.UUID | None) -> str:
    """Return a topic id in the form in which Kafka shows ids: 22 characters of base64."""
    return _NO_ID if value is None else base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "records": _size,
    "timedelta_i32": _span,
    "timedelta_i64": _span,
    "datetime_i64": moment,
    "uuid": _id,
    "bytes": _base64,
    "error_code": int,
}
