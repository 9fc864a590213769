"""One request in work: who asks for what, and the way back."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from abeyant.broker.wire.schema import ErrorCode
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.requests.common.ports import Broker
    from abeyant.broker.wire.apis import Api
    from abeyant.broker.wire.connection import Connection
    from abeyant.broker.wire.schema import Codec

_CORRELATION_ID = Struct(">i")


class Call:
    """A client's request at a broker. Answer it once: `answer`, `done` where there is no answer, or `drop`."""

    __slots__ = (
        "_codec",
        "_lost",
        "api",
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "local",
        "request",
        "since",
        "version",
    )

    def __init__(
        self, broker: Broker, connection: Connection, api: Api, version: int, codec: Codec, header: Any, request: Any
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.api = api
        self.version = version
        self.client_id: str = header.client_id or ""
        connection.client_id = self.client_id
        self.correlation_id: int = header.correlation_id
        self.request = request
        self.since = broker.now()  # seconds on the broker's clock
        self.local: float | None = None  # seconds that its handling took, once it waits for something
        self._codec = codec
        self._lost = False

    def answer(self, response: Any) -> None:
        """Send a response: an object with the fields of all versions.

        Raises nothing, for it is often called in the midst of what concerns others too: what cannot be written, a text
        that is too long for its version for instance, is told as UNKNOWN_SERVER_ERROR.
        """
        if self.connection.closed:
            return
        if self._lost:
            self.connection.abort()
            return
        try:
            parts = self._written(response)
        except Exception:  # noqa: BLE001
            logger("broker").exception("%r cannot be answered", self)
            try:
                response = self.api.module.refused(self.request, ErrorCode.unknown_server_error)
                parts = self._written(response)
            except Exception:  # noqa: BLE001  not even that: the client must not wait for ever
                self.drop()
                return
        observer = self.broker.cluster.observer
        if observer is not None:
            observer.answered(self, response)
        self.connection.answer(parts)

    def _written(self, response: Any) -> list[bytes]:
        parts = [_CORRELATION_ID.pack(self.correlation_id), self._codec.response_tags]
        self._codec.write_response(parts.append, response)
        return parts

    def done(self) -> None:
        """There is no answer to this one: go on with the next (acks=0)."""
        observer = self.broker.cluster.observer
        if observer is not None:
            observer.answered(self, None)
        self.connection.answer([])

    def proceed(self) -> None:
        """Do what is asked for."""
        self.api.module.handle(self)

    def refuse(self, error: ErrorCode) -> None:
        """Answer with an error for everything that is asked for, and do nothing.

        Close the connection where the client could not learn of it: with acks=0, as Kafka does, since it would take an
        answer for that to its next request; and where the response of this version has no room for the error, as
        Metadata for all topics before version 13.
        """
        refused = self.api.module.refused(self.request, error)
        said_nothing = self.api.module.refused(self.request, ErrorCode.none)
        if getattr(self.request, "acks", None) == 0 or self._written(refused) == self._written(said_nothing):
            self.connection.close()
        else:
            self.answer(refused)

    def drop(self) -> None:
        """Answer nothing, and end the connection."""
        self.connection.abort()

    def lose_answer(self) -> None:
        """From now on: end the connection in place of an answer."""
        self._lost = True

    @property
    def codec(self) -> Codec:
        """In which it was read, and will be answered."""
        return self._codec

    def __repr__(self) -> str:
        return f"<{self.api.name} {self.version} of {self.client_id!r} at broker {self.broker.id}>"
