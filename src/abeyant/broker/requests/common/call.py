"""A request that is being handled, with the methods that respond to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from struct import Struct
from typing import TYPE_CHECKING, Any

from abeyant.broker.errors import ApiError
from abeyant.broker.quotas.limits import Mutations
from abeyant.broker.quotas.table import MUTATION, REQUEST
from abeyant.broker.wire.schema import ErrorCode
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.requests.common.ports import Broker
    from abeyant.broker.wire.apis import Api
    from abeyant.broker.wire.connection import Connection
    from abeyant.broker.wire.schema import Codec

_CORRELATION_ID = Struct(">i")
_LONGEST_THROTTLE = ((1 << 31) - 1) / 1000  # seconds, as throttle_time_ms has 32 bits
_EXEMPT = (17, 36)  # SaslHandshake and SaslAuthenticate


class BaseCall:
    """A request at a broker, from a client or from another broker. Respond to it once."""

    __slots__ = ("_lost", "api", "began", "broker", "client_id", "local", "request", "since", "version")

    def __init__(self, broker: Broker, api: Api, version: int, client_id: str, request: Any) -> None:
        self.broker = broker
        self.api = api
        self.version = version
        self.client_id = client_id
        self.request = request
        self.since = self.began = broker.now()  # arrival and start of handling, seconds on the broker's clock
        self.local: float | None = None  # seconds that handling it took, set when it starts to wait
        self._lost = False

    is_plain = False
    """Whether the response may be sent with `answer_encoded`, because nothing observes, amends or throttles it."""

    def answer(self, response: Any) -> None:
        """Send a response: an object with the fields of all versions."""
        raise NotImplementedError

    def answer_encoded(self, parts: list[bytes]) -> None:
        """Send a response that is encoded already: its header and its fields, in parts."""
        raise NotImplementedError

    def partition(self, name: str | None, topic_id: uuid.UUID | None, index: int) -> Partition:
        """Return this broker's replica. Raises ApiError if the partition is unknown, or only on other brokers."""
        broker = self.broker
        if name is not None:
            partition = broker.partitions.get((name, index))
        else:
            partition = None if topic_id is None else broker.by_id.get((topic_id.int, index))
        if partition is not None:
            return partition
        if name is None and topic_id is None:
            raise ApiError(ErrorCode.unknown_topic_id)
        topic = broker.cluster.controller.topic_of(name, topic_id)
        if not 0 <= index < len(topic.partitions):
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        raise ApiError(ErrorCode.not_leader_or_follower)

    def proceed(self) -> None:
        """Authorize and handle the request. On ApiError, respond with this error for everything in the request."""
        try:
            self.authorize()
            self.api.module.handle(self)
        except ApiError as error:
            response = self.api.error_response(self.request, error.code)
            if error.message is not None:
                response.error_message = error.message
            self.answer(response)

    def authorize(self) -> None:
        """Raise ApiError if the sender may not send this request. Brokers may send every request."""

    def lose_answer(self) -> None:
        """Drop the response when it is ready. If the sender is a client, close its connection then."""
        self._lost = True


class Call(BaseCall):
    """A client's request at a broker. Call `answer`, `refuse`, `drop`, or `done` (no response), once."""

    __slots__ = (
        "amendments", "codec", "connection", "correlation_id", "sent", "size", "throttle_seconds", "throttled_by",
    )  # fmt: skip

    def __init__(
        self, broker: Broker, connection: Connection, api: Api, version: int, codec: Codec, header: Any, request: Any
    ) -> None:
        """`codec` is for the request's version."""
        super().__init__(broker, api, version, header.client_id or "", request)
        self.codec = codec
        self.connection = connection
        self.correlation_id: int = header.correlation_id
        self.sent = request  # as the client sent it, for the request log; authorization takes parts out of `request`
        self.amendments: list[Callable[[Any], None]] = []  # of the response, by authorization
        self.size = 0  # bytes of the request
        self.throttle_seconds = 0.0  # during which the connection's next request is not read
        self.throttled_by = ""  # a quota, or a fault
        connection.client_id = self.client_id

    def answer(self, response: Any) -> None:
        """Send a response: an object with the fields of all versions.

        Raises nothing, as it is often called while other requests are being completed. A response that cannot be
        encoded, for instance with a string too long for its version, becomes UNKNOWN_SERVER_ERROR.
        """
        if self.connection.closed:
            return
        if self._lost:
            self.connection.abort()
            return
        for amend in self.amendments:
            amend(response)
        if self.broker.client_quotas.table.enabled:
            self.charge_time()
        if self.throttle_seconds:
            response.throttle_time = timedelta(seconds=self.throttle_seconds)
        try:
            parts = self._encode(response)
        except Exception:  # noqa: BLE001
            logger("broker").exception("cannot encode the response to %r", self)
            try:
                response = self.api.error_response(self.request, ErrorCode.unknown_server_error)
                parts = self._encode(response)
            except Exception:  # noqa: BLE001  the client must not wait for ever
                self.drop()
                return
        self.broker.answered[self.api.name] += 1
        observer = self.broker.cluster._observer
        if observer is not None:
            observer.log_response(self, response)
        self._send(parts)

    @property
    def is_plain(self) -> bool:  # type: ignore[override]
        """Return whether the response may be sent with `answer_encoded`."""
        return not (
            self.amendments
            or self._lost
            or self.throttle_seconds
            or self.broker.client_quotas.table.enabled
            or self.broker.cluster._observer is not None
        )

    def answer_encoded(self, parts: list[bytes]) -> None:
        """Send a response that is encoded already, for a call that `is_plain`."""
        if self.connection.answer(parts):
            self.broker.answered[self.api.name] += 1

    def _send(self, parts: list[bytes]) -> None:
        seconds = self.throttle_seconds
        if seconds and not self.connection.closed:
            self.broker.throttled.mute(self.connection, seconds, self.api.name, self.throttled_by)
        self.connection.answer(parts, mute=seconds > 0)

    # -- throttling (KIP-219): the response is sent at once, and the connection is muted

    def throttle(self, seconds: float, by: str) -> None:
        """Mute the connection for `seconds` after the response; the longest of several calls counts.

        `by` is the name of the quota, or "fault".
        """
        seconds = round(min(seconds, _LONGEST_THROTTLE), 3)
        if seconds > self.throttle_seconds:
            self.throttle_seconds, self.throttled_by = seconds, by

    def charge(self, quota: str, amount: float) -> None:
        """Record that the client used `amount` of a quota, and throttle the connection if the quota is exceeded."""
        seconds = self.broker.client_quotas.charge(quota, self.connection.user, self.client_id, amount)
        if seconds:
            self.throttle(seconds, quota)

    def charge_time(self) -> None:
        """Charge the client's quota, once, for the time that handling took. Requests that authenticate are exempt."""
        if self.connection.login is None and self.api.key not in _EXEMPT and self.began >= 0:
            took = self.broker.now() - self.began if self.local is None else self.local - (self.began - self.since)
            self.began = -1.0
            self.charge(REQUEST, 100 * took)

    def mutations(self, strict_since: int) -> Mutations:
        """Return the client's quota for partition changes; it is strict from version `strict_since` on (KIP-599)."""
        quotas = self.broker.cluster.controller.mutation_quotas
        return quotas.of(self.connection.user, self.client_id, strict=self.version >= strict_since)

    def answer_mutations(self, response: Any, mutations: Mutations) -> None:
        """Send a response, and throttle the client if it has exhausted `mutations`, its quota."""
        self.throttle(mutations.seconds, MUTATION)
        self.answer(response)

    def size_of(self, response: Any) -> int:
        """Return the bytes of a response, with its correlation id, as Kafka counts them."""
        return sum(map(len, self._encode(response))) - len(self.codec.response_tags)

    def _encode(self, response: Any) -> list[bytes]:
        parts = [_CORRELATION_ID.pack(self.correlation_id), self.codec.response_tags]
        self.codec.write_response(parts.append, response)
        return parts

    def authorize(self) -> None:
        """Raise ApiError if the client may not send this request. Remove items in it that the client may not use."""
        if self.broker.cluster.controller.acls.enabled:
            from abeyant.broker.requests.common.authorization import authorize

            authorize(self)

    def done(self) -> None:
        """End the request without a response (acks=0). If a part of it was unauthorized, close the connection."""
        if self.amendments:
            self.connection.close()
            return
        self.broker.answered[self.api.name] += 1
        observer = self.broker.cluster._observer
        if observer is not None:
            observer.log_response(self, None)
        self._send([])

    def refuse(self, error: ErrorCode) -> None:
        """Respond with an error for everything in the request, without handling it.

        Close the connection instead if no response can carry the error: with acks=0 there is no response, as in Kafka;
        and in some versions responses have no field for it, for instance Metadata for all topics before version 13.
        """
        error_response = self.api.error_response(self.request, error)
        without_error = self.api.error_response(self.request, ErrorCode.none)
        if getattr(self.request, "acks", None) == 0 or self._encode(error_response) == self._encode(without_error):
            self.connection.close()
        else:
            self.answer(error_response)

    def drop(self) -> None:
        """Close the connection without a response."""
        self.connection.abort()

    def __repr__(self) -> str:
        return f"<{self.api.name} {self.version} of {self.client_id!r} at broker {self.broker.id}>"
