"""The keys and values of coordinators' records, by Kafka's schemas: kio reads them, `wire.encoding` writes them.

A schema names each field with its type: one of Kafka's ("int32", "string", "uuid", ...), another schema, an array as a
list of one type, `Nullable` of these, or a `Field` if not all versions have it. The first use of a version makes a
class for kio, which takes half a millisecond.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import field, make_dataclass
from functools import cache
from struct import Struct
from types import GenericAlias
from typing import Any, NamedTuple

from abeyant.broker.wire.bounds import checked_reader
from abeyant.broker.wire.encoding import Encode, encoder
from abeyant.broker.wire.schema import SerialError, entity_reader

_TYPES: dict[str, Any] = {"string": str, "bytes": bytes, "uuid": uuid.UUID | None}  # all others are numbers
_VERSION = Struct(">h")


class Nullable(NamedTuple):
    """A type whose value may be None."""

    type: Any


class Field(NamedTuple):
    """A field of versions `since` to `until`, else `default`. A tagged field is written unless it has `default`."""

    type: Any
    since: int = 0
    until: int = 1 << 15
    default: object = None
    tag: int | None = None


class Schema:
    """The fields of a kind of key or value, in all versions."""

    def __init__(self, name: str, latest: int = 0, /, *, flexible_since: int = 1 << 15, **fields: Any) -> None:
        """`latest` is the latest version, `flexible_since` the first with the flexible encoding (KIP-482)."""
        self.name = name
        self.latest = latest
        self._flexible_since = flexible_since
        self._fields = {key: kind if isinstance(kind, Field) else Field(kind) for key, kind in fields.items()}
        self._codec = cache(self._make_codec)

    def write(self, version: int, message: object) -> bytes:
        """Encode the version and its fields, taken from the attributes of `message`."""
        parts = [_VERSION.pack(version)]
        self._codec(version)[0](parts.append, message)
        return b"".join(parts)

    def read(self, data: bytes, version: int | None = None) -> Any:
        """Decode `data` to an object with the fields of all versions. Raises ValueError if that fails.

        Reads the version from `data` unless it is given. Ignores trailing bytes.
        """
        if version is None:
            version = version_of(data)
        if not 0 <= version <= self.latest:
            raise ValueError(f"{self.name} in version {version}; 0 to {self.latest} can be read")
        try:
            return self._codec(version)[1](memoryview(data), _VERSION.size)
        except SerialError as error:
            raise ValueError(f"cannot decode {self.name} in version {version}: {error!r}") from error

    def entity(self, version: int, *, flexible: bool) -> Any:
        """Return a class for kio with the fields of a version, and class attributes for those that it lacks."""
        namespace: dict[str, object] = {"__flexible__": flexible}
        fields: list[Any] = []
        for name, kind in self._fields.items():
            if not kind.since <= version <= kind.until:
                namespace[name] = kind.default
                continue
            annotation, kafka_type = _annotation(kind.type, version, flexible)
            metadata = {} if kafka_type is None else {"kafka_type": kafka_type}
            if kind.tag is None:
                fields.append((name, annotation, field(metadata=metadata)))
            else:
                fields.append((name, annotation, field(default=kind.default, metadata={**metadata, "tag": kind.tag})))
        return make_dataclass("Record", fields, kw_only=True, namespace=namespace)

    def _make_codec(self, version: int) -> tuple[Encode, Callable[[memoryview, int], Any]]:
        entity = self.entity(version, flexible=version >= self._flexible_since)
        return encoder(entity), checked_reader(entity, entity_reader(entity))


def version_of(data: bytes) -> int:
    """Return the version of a value. For a key of `__consumer_offsets`, this is its kind. Raises struct.error."""
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _annotation(kind: Any, version: int, flexible: bool) -> tuple[Any, str | None]:
    """Return a field's Python type, and its Kafka type: for a list the elements', for an object None."""
    if isinstance(kind, Schema):
        return kind.entity(version, flexible=flexible), None
    if isinstance(kind, str):
        return _TYPES.get(kind, int), kind
    inner, kafka_type = _annotation(kind[0], version, flexible)
    return inner | None if isinstance(kind, Nullable) else GenericAlias(tuple, (inner, ...)), kafka_type
