"""Keep the clients that push metrics to one broker, and their last pushes (KIP-714).

Kafka: `ClientMetricsManager`, `ClientMetricsInstance`. Kafka passes the metrics on to a plugin; here pushes are
counted, and the names of the metrics in a client's last push are kept.
"""

from __future__ import annotations

import math
import uuid
import zlib
from base64 import urlsafe_b64encode
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from abeyant.broker.errors import ApiError
from abeyant.broker.log.compression import GZIP, LZ4, SNAPPY, ZSTD, decompress
from abeyant.broker.log.errors import UndecodableError
from abeyant.broker.telemetry.otlp import metric_names
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from abeyant.broker.telemetry.subscriptions import Subscriptions
    from abeyant.broker.wire.connection import Connection
    from abeyant.purgatory.ports import Stoppable

ACCEPTED: Final = (ZSTD, LZ4, GZIP, SNAPPY)
"""Compression codecs that clients may use for a push, in order of preference."""

_MOST: Final = 16_384  # clients at a time, as in Kafka
_MOST_BYTES: Final = 16 << 20  # of the texts kept for all clients; the last push's texts are kept in any case
_BYTES_OF_TEXT: Final = 64  # of a str, without its characters
_EXPIRY: Final = 60.0  # minimum seconds after which a silent client is forgotten
_RESERVED: Final = 2  # ids below this are not a client's
_MAY_ASK_AGAIN: Final = (ErrorCode.unknown_subscription_id, ErrorCode.unsupported_compression_type)


class Timer(Protocol):
    """Timer of a broker, which calls functions later."""

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> Stoppable:
        """Call `callback(*args)` after `delay` seconds."""


class PushedMetrics(NamedTuple):
    """One client's pushes of metrics to one broker."""

    broker: int
    client_instance_id: str
    """In URL-safe base64, as the method `clientInstanceId` of Kafka's Java clients returns it."""
    client_id: str
    software: tuple[str, str]
    """The client's name and version."""
    pushes: int
    """Number of accepted pushes."""
    size: int
    """Bytes of all accepted pushes, compressed as they were sent."""
    metrics: tuple[str, ...]
    """Names of the metrics in the last push, sorted."""
    terminated: bool
    """Whether the client has sent its last push."""

    @property
    def memory(self) -> int:
        """Return the approximate size in memory of the client's texts and the metrics' names, in bytes. O(metrics)."""
        return sum(_BYTES_OF_TEXT + len(text) for text in (self.client_id, *self.software, *self.metrics))


class ClientInstance:
    """One client as this broker knows it: the metrics to push, and the times of its last requests."""

    __slots__ = (
        "connection", "expiry", "fields", "id", "interval", "last_error", "last_get", "last_push", "metrics",
        "subscription_id", "terminating", "version",
    )  # fmt: skip

    def __init__(
        self, client: uuid.UUID, connection: Connection, fields: Mapping[str, str], subscriptions: Subscriptions
    ) -> None:
        self.id = client
        self.connection = connection  # the client is forgotten when this connection closes
        self.fields = fields
        self.version = subscriptions.version
        self.metrics, self.interval = subscriptions.client_subscription(fields)
        # Different for each set of metrics, and for each client.
        number = zlib.crc32(f"{self.metrics} {self.interval}".encode()) ^ zlib.crc32(client.bytes)
        self.subscription_id = (number ^ 1 << 31) - (1 << 31)  # with a sign
        self.last_get = self.last_push = -math.inf  # seconds
        self.last_error = ErrorCode.none
        self.terminating = False
        self.expiry: Stoppable | None = None

    def may_get(self, now: float) -> bool:
        """Return whether the client may request its subscription now. If so, record the time. `now` is in seconds."""
        if now - max(self.last_get, self.last_push) < self.interval:
            return False
        self.last_get = now
        return True

    def may_push(self, now: float) -> bool:
        """Return whether the client may push now. If so, record the time. `now` is in seconds.

        It may push once after each request for its subscription, then once per interval.
        """
        if self.last_get <= self.last_push and now - self.last_push < self.interval:
            return False
        self.last_push = now
        return True


class TelemetryClients:
    """The clients of one broker that push metrics. Use from the loop's thread only."""

    def __init__(
        self, broker: int, subscriptions: Subscriptions, max_bytes: int, timer: Timer, now: Callable[[], float]
    ) -> None:
        """`max_bytes` is the maximum size of a push; `now` returns seconds on the broker's clock."""
        self.max_bytes = max_bytes
        self._broker = broker
        self._subscriptions = subscriptions
        self._timer = timer
        self._now = now
        self._clients: OrderedDict[uuid.UUID, ClientInstance] = OrderedDict()  # least recent first
        self._by_connection: dict[Connection, uuid.UUID] = {}
        self._pushed: OrderedDict[uuid.UUID, PushedMetrics] = OrderedDict()
        self._pushed_bytes = 0
        self.errors: Counter[str] = Counter()
        """Number of refused requests by the name of their error."""
        self.pushes = self.size = 0
        """Number of accepted pushes, and of their bytes."""

    def __len__(self) -> int:
        return len(self._clients)

    def pushed(self) -> list[PushedMetrics]:
        """Return each client's pushes, of disconnected clients as well; the client of the least recent push is first.

        Beyond 16,384 clients or 16 MiB of texts, the clients of the least recent pushes are dropped.
        """
        return list(self._pushed.values())

    def get(self, client: uuid.UUID | None, connection: Connection) -> ClientInstance:
        """Return the client with the id `client`; create it if it is unknown, and with a new id if `client` is None.

        Raises ApiError if the client's previous request was too recent.
        """
        instance = self._client(client or uuid.uuid4(), connection)
        may = instance.may_get(self._now())
        if not may and instance.last_error not in _MAY_ASK_AGAIN:
            raise self._refusal(ErrorCode.throttling_quota_exceeded)
        instance.last_error = ErrorCode.none
        return instance

    def push(
        self,
        client: uuid.UUID | None,
        connection: Connection,
        subscription_id: int,
        codec: int,
        data: bytes,
        *,
        terminating: bool,
    ) -> None:
        """Record a client's push. Raises ApiError if Kafka's broker would refuse the push."""
        if client is None or client.int < _RESERVED:
            raise self._refusal(ErrorCode.invalid_request)
        instance = self._client(client, connection)
        try:
            self._check(instance, subscription_id, codec, data, terminating=terminating)
            names = self._names(codec, data)
        except ApiError as error:
            instance.last_error = error.code
            raise self._refusal(error.code) from None
        finally:
            instance.terminating = terminating
        instance.last_error = ErrorCode.none
        self.pushes += 1
        self.size += len(data)
        previous = self._pushed.pop(client, None)
        self._pushed[client] = row = PushedMetrics(
            self._broker,
            kafka_form(client),
            connection.client_id,
            connection.software,
            1 + (previous.pushes if previous else 0),
            len(data) + (previous.size if previous else 0),
            names,
            terminating,
        )
        self._pushed_bytes += row.memory - (previous.memory if previous else 0)
        while len(self._pushed) > _MOST or (self._pushed_bytes > _MOST_BYTES and len(self._pushed) > 1):
            self._pushed_bytes -= self._pushed.popitem(last=False)[1].memory

    def disconnected(self, connection: Connection) -> None:
        """Forget the client of a connection that has ended."""
        client = self._by_connection.pop(connection, None)
        if client is not None:
            self._forget(client)

    def close(self) -> None:
        """Forget all clients and cancel their timers, when the broker stops."""
        for client in list(self._clients):
            self._forget(client)

    # -- inside

    def _client(self, client: uuid.UUID, connection: Connection) -> ClientInstance:
        """Return a client and restart its expiry. Create it anew if it is unknown or the subscriptions have changed."""
        instance = self._clients.pop(client, None)
        if instance is None or instance.version < self._subscriptions.version:
            if instance is not None and instance.expiry is not None:
                instance.expiry.cancel()
            fields = _fields(client, connection) if instance is None else instance.fields
            instance = ClientInstance(client, connection, fields, self._subscriptions)
            self._by_connection[connection] = client
        elif instance.expiry is not None:
            instance.expiry.cancel()
        self._clients[client] = instance
        instance.expiry = self._timer.call_later(max(_EXPIRY, 3 * instance.interval), self._forget, client)
        if len(self._clients) > _MOST:
            self._forget(next(iter(self._clients)))
        return instance

    def _forget(self, client: uuid.UUID) -> None:
        instance = self._clients.pop(client, None)
        if instance is None:
            return
        if instance.expiry is not None:
            instance.expiry.cancel()
        if self._by_connection.get(instance.connection) == client:
            del self._by_connection[instance.connection]

    def _check(
        self, instance: ClientInstance, subscription_id: int, codec: int, data: bytes, *, terminating: bool
    ) -> None:
        if instance.terminating:
            raise ApiError(ErrorCode.invalid_request)
        if not instance.may_push(self._now()) and not terminating:
            raise ApiError(ErrorCode.throttling_quota_exceeded)
        if subscription_id != instance.subscription_id:
            raise ApiError(ErrorCode.unknown_subscription_id)
        if codec and codec not in ACCEPTED:
            raise ApiError(ErrorCode.unsupported_compression_type)
        if len(data) > self.max_bytes:
            raise ApiError(ErrorCode.telemetry_too_large)

    def _names(self, codec: int, data: bytes) -> tuple[str, ...]:
        if not data:
            return ()
        try:
            return metric_names(decompress(codec, memoryview(data), self.max_bytes))
        except (UndecodableError, ValueError):
            raise ApiError(ErrorCode.invalid_record) from None

    def _refusal(self, error: ErrorCode) -> ApiError:
        self.errors[error.name.upper()] += 1
        return ApiError(error)


def kafka_form(client: uuid.UUID) -> str:
    """Return an id as Kafka writes it: in URL-safe base64 without padding."""
    return urlsafe_b64encode(client.bytes).decode().rstrip("=")


def _fields(client: uuid.UUID, connection: Connection) -> dict[str, str]:
    """Return the client's fields that subscriptions can match."""
    address, _, port = connection.peer.rpartition(":")
    return {
        "client_instance_id": kafka_form(client),
        "client_id": connection.client_id,
        "client_software_name": connection.software[0],
        "client_software_version": connection.software[1],
        "client_source_address": address,
        "client_source_port": port,
    }
