"""Wrap kio's messages so that handlers need not know versions: one handler serves all versions of its API.

kio has one class per message and version. Here
* a *request* is an instance of kio's class. Fields that its version lacks are set on the class (`fill`) when the
  version is first used, so that reading a field is plain attribute access and no message is copied;
* a *response* is a `Message` with the fields of all versions. The encoder of a version writes the fields that the
  version has, and defaults for those that are not set, as in Kafka's generated classes.

Where `hypothesis` is installed, kio imports it to register strategies that the broker does not use, which takes a
quarter of a second. So `hypothesis` is hidden from kio, unless it is already imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

_HIDDEN = ("hypothesis", "hypothesis.strategies")


def _import_kio() -> None:
    if "hypothesis" in sys.modules or "kio.static._phantom" in sys.modules:
        return
    modules: dict[str, Any] = sys.modules
    for name in _HIDDEN:
        modules[name] = None  # makes `import` raise ImportError
    try:
        import kio.schema.types
        import kio.static.primitive  # noqa: F401
    finally:
        for name in _HIDDEN:
            del modules[name]


if not TYPE_CHECKING:
    _import_kio()

from kio.index import load_request_schema, load_response_schema  # noqa: E402  (only after the above)
from kio.schema.errors import ErrorCode  # noqa: E402
from kio.serial import entity_reader  # noqa: E402
from kio.serial.errors import SerialError  # noqa: E402

from abeyant.broker.wire.bounds import checked_reader  # noqa: E402
from abeyant.broker.wire.encoding import Encode, encoder  # noqa: E402
from abeyant.broker.wire.single import request_fits  # noqa: E402

__all__ = ["NO_TIME", "Codec", "ErrorCode", "Message", "SerialError", "entity_reader"]

NO_TIME = timedelta(0)


class Message(SimpleNamespace):
    """A response, or an entity in a response, with the fields of all versions."""

    error_code: Any = ErrorCode.none
    throttle_time: Any = NO_TIME  # unless a quota or a fault throttles the client
    error_message: Any = None


class Codec:
    """The reader of requests and the writer of responses for one version of an API."""

    __slots__ = (
        "read_header",
        "read_request",
        "request_entity",
        "response_entity",
        "response_tags",
        "write_response",
    )

    def __init__(self, key: int, version: int, fill: Mapping[str, Mapping[str, object]]) -> None:
        """Load kio's classes. `fill` has defaults for fields that this version lacks, by the name of kio's class."""
        request: Any = load_request_schema(key, version)
        response: Any = load_response_schema(key, version)
        self.request_entity: type = request
        self.response_entity: type = response
        module = sys.modules[request.__module__]
        for name, values in fill.items():
            entity = getattr(module, name, None)
            for field, value in values.items() if entity is not None else ():
                if not hasattr(entity, field):
                    setattr(entity, field, value)
        read: Callable[..., Any] = entity_reader
        self.read_header: Callable[[memoryview, int], tuple[Any, int]] = read(request.__header_schema__)
        self.read_request: Callable[[memoryview, int], Any] = checked_reader(
            request, read(request), request_fits(key, version)
        )
        self.write_response: Encode = encoder(response)
        # Response header version 1 is the correlation id and one byte for no tags. ApiVersions never uses it (KIP-511).
        self.response_tags = b"\0" if response.__flexible__ and key != _API_VERSIONS else b""


_API_VERSIONS = 18
