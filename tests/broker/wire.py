"""A client that speaks any version of any API, by kio's messages: what no real client would ask for."""

from __future__ import annotations

import io
import socket
import struct
import sys
import uuid
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, get_args

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from broker.conformance.times import accept_no_time

accept_no_time()
_PATIENCE = 30.0  # seconds
_SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE = 17, 18, 36


class WireClient:
    """One connection, authenticated as a user with a password if one is given."""

    def __init__(self, bootstrap: str, user: tuple[str, str] | None = None) -> None:
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=_PATIENCE)
        self._correlation = 0
        if user is not None:
            self.ask(_SASL_HANDSHAKE, 1, mechanism="PLAIN")
            said = self.ask(_SASL_AUTHENTICATE, 2, auth_bytes="\0".join(("", *user)).encode())
            assert said.error_code.name == "none", said

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def ask(self, api_key: int, version: int, /, **values: Any) -> Any:
        """Send a request, its fields as given and else as `sample` makes them up; return the response."""
        number = self.send(api_key, version, **values)
        return self.receive(api_key, version, number)

    def send(self, api_key: int, version: int, /, **values: Any) -> int:
        """Send a request; return its correlation id."""
        self._correlation += 1
        data = encoded(api_key, version, self._correlation, **values)
        self.socket.sendall(struct.pack(">i", len(data)) + data)
        return self._correlation

    def receive(self, key: int, version: int, correlation: int) -> Any:
        """The next response, which has to be whole, and the answer to that request."""
        (size,) = struct.unpack(">i", self._exactly(4))
        data = self._exactly(size)
        assert struct.unpack_from(">i", data) == (correlation,)
        schema: Any = load_response_schema(key, version)
        start = 5 if schema.__flexible__ and key != _API_VERSIONS else 4
        read: Any = entity_reader
        response, used = read(schema)(data, start)
        assert start + used == len(data), "there are bytes left over"
        return response

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError(f"the broker closed the connection after {len(data)} of {count} bytes")
            data += more
        return data


def encoded(api_key: int, version: int, correlation: int, /, **values: Any) -> bytes:
    """A request's bytes after its length: its fields as given, and else as `sample` makes them up."""
    schema: Any = load_request_schema(api_key, version)
    frame = io.BytesIO()
    header = schema.__header_schema__
    known = {
        "request_api_key": api_key, "request_api_version": version, "correlation_id": correlation, "client_id": "wire",
    }  # fmt: skip
    write: Any = entity_writer
    write(header)(frame, header(**known))
    write(schema)(frame, sample(schema, **values))
    return frame.getvalue()


def sample(schema: Any, /, **values: Any) -> Any:
    """One of kio's messages: `values` where it has such fields, at any depth; else the least that there can be."""
    module = sys.modules[schema.__module__]
    made = {}
    for field in fields(schema):
        if field.name in values:
            made[field.name] = _given(module, field, values[field.name])
        elif field.default is MISSING:
            made[field.name] = _least(field.type)
    return schema(**made)


def _given(module: Any, field: Any, value: Any) -> Any:
    entity = next((one for one in _parts(field.type) if is_dataclass(one)), None)
    if entity is None or value is None:
        return tuple(value) if isinstance(value, list) else value
    if isinstance(value, list):
        return tuple(sample(entity, **one) for one in value)
    return sample(entity, **value)


def _parts(kind: Any) -> list[Any]:
    found = [kind]
    for part in get_args(kind):
        found += _parts(part)
    return found


def _least(kind: Any) -> Any:
    kinds = _parts(kind)
    if type(None) in kinds and "tuple" not in str(kind):
        return None
    if "tuple" in str(kind):
        return ()
    for known, least in ((bool, False), (str, ""), (bytes, b""), (uuid.UUID, None)):
        if isinstance(kind, type) and issubclass(kind, known):
            return least
    if "Timedelta" in str(kind):
        return timedelta(0)
    return 0
