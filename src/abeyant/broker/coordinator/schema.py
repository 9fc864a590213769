"""The keys and values of coordinators' records, by Kafka's schemas: kio reads them, `wire.encoding` writes them.

A schema names each field with its type: a Kafka type ("int32", "string", "uuid", ...), another schema, a list of one
type for an array, `Nullable` of such a type, or a `Field` if not all versions have the field. The first use of a
version creates a class for kio, which takes half a millisecond.
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
    """A field that versions `since` to `until` have. Other versions are read as if it had the value `default`.

    With a `tag` it is a tagged field, which is written only if its value is not `default`.
    """

    type: Any
    since: int = 0
    until: int = 1 << 15
    default: object = None
    tag: int | None = None


class Schema:
    """The fields of one kind of record key or value, in all versions."""

    def __init__(self, name: str, latest: int = 0, /, *, flexible_since: int = 1 << 15, **fields: Any) -> None:
        """Define `fields` by name and type, for the versions 0 to `latest`. `name` stands in error messages.

        `flexible_since` is the first version with the flexible encoding (KIP-482).
        """
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
            raise ValueError(f"cannot read {self.name} in version {version}: only 0 to {self.latest} are supported")
        try:
            return self._codec(version)[1](memoryview(data), _VERSION.size)
        except SerialError as error:
            raise ValueError(f"cannot decode {self.name} in version {version}: {error!r}") from error

    def entity(self, version: int, *, flexible: bool) -> Any:
        """Return a class for kio with the fields of a version. Fields of other versions are class attributes."""
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
    """Return the version of a record's key or value. A key's version tells the kind of record. Raises struct.error."""
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _annotation(kind: Any, version: int, flexible: bool) -> tuple[Any, str | None]:
    """Return a field's Python type, and the Kafka type: of the elements for a list, None for another schema."""
    if isinstance(kind, Schema):
        return kind.entity(version, flexible=flexible), None
    if isinstance(kind, str):
        return _TYPES.get(kind, int), kind
    inner, kafka_type = _annotation(kind[0], version, flexible)
    return inner | None if isinstance(kind, Nullable) else GenericAlias(tuple, (inner, ...)), kafka_type
