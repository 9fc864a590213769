"""A cluster: its brokers, its controller, its clock, and the loop that they run on.

    with Cluster(brokers=3) as kafka: ...           in its own thread, with our event loop
    async with Cluster(brokers=3) as kafka: ...     on the running loop, which may be in virtual time

Both forms have the same methods. The methods are thread-safe: they run in the loop's thread, and block until they are
done. Of the methods marked as not for users, only `_on_loop` is thread-safe.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar

from abeyant.aio.loop import EventLoop
from abeyant.broker.api.cluster_api import ClusterApi
from abeyant.broker.api.faults import Faults
from abeyant.broker.broker import Broker
from abeyant.broker.clock import Clock, HeldClock, MachineClock
from abeyant.broker.controller import Controller
from abeyant.broker.definitions import definition
from abeyant.broker.log import LogError
from abeyant.broker.network import Network
from abeyant.broker.requests.common.ports import Gate
from abeyant.broker.security.protocol import Security
from abeyant.broker.settings import Settings, from_python
from abeyant.broker.wire.connection import Staging
from abeyant.engine import is_compiled
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.reporting import logger
from abeyant.timer.units import machine_time

if TYPE_CHECKING:
    from abeyant.broker.log.directory import DataDirectory
    from abeyant.broker.request_log import RequestLog

T = TypeVar("T")

_LAST_PORT = 65_535
_LAST_ID = (1 << 31) - 1


class Cluster(ClusterApi):
    """A Kafka-compatible cluster of brokers in this process, numbered from 1.

    `bootstrap` is for clients' `bootstrap.servers`. Use the cluster as a context manager, or call `open` and `close`.

    Examples:
        >>> with Cluster(brokers=3) as kafka:
        ...     kafka.create_topic("orders", partitions=6, replicas=3)
        ...     print(kafka.in_sync("orders", 0))
        (1, 2, 3)
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        clock: Literal["real", "held"] = "real",
        host: str = "127.0.0.1",
        port: int = 0,
        advertise: str | None = None,
        settings: Mapping[str, object] | None = None,
        data: str | Path | None = None,
        request_log: str | Path | None = None,
        security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT",
        users: Mapping[str, str] | None = None,
        racks: Sequence[str] | None = None,
        **unknown: Never,
    ) -> None:
        """Create a cluster, not yet started. `port` is the first broker's port, and the others use the next ports.

        Port 0 picks free ports. `advertise` is the address returned to clients, HOST or HOST:PORT, as in Kafka's
        `advertised.listeners`, if brokers listen on another address: a container's name, or a published port. PORT is
        the first broker's port. `data` is a directory for topics and records (default: memory). A later cluster with
        the same `data` has these topics and records again, even if this cluster was killed. `settings` use Kafka's
        names, with dots or underscores, and Kafka's defaults; `node.id` is the first broker's id, and the others get
        the next ids. With `clock="held"` time stands still until `clock.advance`.
        `request_log` is a directory, where each broker writes Kafka's request log: `broker-N/kafka-request.log`.
        `security` is the security protocol of clients. For TLS, the setting `ssl.keystore.location` names a PEM file
        with a key and its certificates; by default both are generated, and clients trust `ca_file`. For SASL, `users`
        maps names to passwords; clients may use PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
        `racks` are names of racks, given to the brokers in turn: with two racks, brokers 1 and 3 are in the first rack.
        Raises AbeyantError for an unknown setting, TypeError for an unknown option, ValueError for an invalid value.
        """
        if unknown:
            raise TypeError(_unknown_option(next(iter(unknown))))
        if type(brokers) is not int or not 1 <= brokers <= 1000:
            raise ValueError(f"brokers must be from 1 to 1000, not {brokers!r}")
        if type(port) is not int or not host:
            raise ValueError(f"port must be a whole number and host not empty, not {port!r} and {host!r}")
        if not 0 <= port <= _LAST_PORT + 1 - brokers:
            problem = f"{brokers} brokers have ports up to {port + brokers - 1}" if port > 0 else f"port is {port}"
            raise AbeyantError(f"{problem}; a port is from 0 to {_LAST_PORT}")
        if clock not in ("real", "held"):
            raise ValueError(f'clock must be "real" or "held", not {clock!r}')
        self.settings = Settings(from_python(settings or {}))
        first = 1 if self.settings["node.id"] is None else self.settings["node.id"]
        if first + brokers - 1 > _LAST_ID:
            raise AbeyantError(f"node.id {first} is too large: the last of {brokers} brokers would exceed {_LAST_ID}")
        ignored = [name for name in self.settings.static if not definition("broker", name).has_effect]
        if ignored:
            logger("broker").warning("settings without effect in this broker: %s", ", ".join(sorted(ignored)))
        self._racks = _checked_racks(racks, self.settings)
        self.host = host
        self._advertised = _address(advertise, brokers) if advertise is not None else (host, 0)
        self.security = Security(security, users, self._advertised[0], self.settings)
        self.brokers: dict[int, Broker] = {}
        self._staging = Staging()
        self._gate: Gate | None = None
        self._observer: RequestLog | None = None
        if request_log is not None:
            from abeyant.broker.request_log import RequestLog

            self._observer = RequestLog(Path(request_log))
        self._awaited = []
        self._calls: set[Future[Any]] = set()  # calls of other threads, which block until the loop has run them
        self._faults = Faults(self)
        self._ports = {first + index: port and port + index for index in range(brokers)}
        self.directory: DataDirectory | None = None
        self._data = data
        self._held = clock == "held"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # -- from open to close

    def open(self) -> Self:
        """Start all brokers in their own thread. Raises AbeyantError if a port is taken."""
        self._require_new()
        # Our loop is the faster one only if it is compiled.
        loop: asyncio.AbstractEventLoop = EventLoop() if is_compiled() else asyncio.SelectorEventLoop()
        loop.time = machine_time  # type: ignore[method-assign]  # a test that freezes its clocks must not stop ours
        self._loop = loop
        self._thread = threading.Thread(target=_run, args=(loop,), name="abeyant-broker", daemon=True)
        self._thread.start()
        try:
            self._on_loop(self._begin, loop)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop all brokers and close the connections. A second call does nothing.

        Calls that block in other threads, as `until_waiting` does, raise AbeyantError immediately.
        """
        loop, self._loop = self._loop, None
        if loop is None:
            return
        if hasattr(self, "clock"):
            self.clock.interrupt()
        if self._thread is None:
            self._end()
        else:
            if not loop.is_closed():
                with suppress(RuntimeError):
                    asyncio.run_coroutine_threadsafe(self._end_thread(loop), loop)
            self._thread.join()
            self._thread = None
        for call in list(self._calls):  # the loop has ended without running them
            if not call.done():
                call.set_exception(self._not_open())

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self._require_new()
        self._loop = asyncio.get_running_loop()
        try:
            self._begin(self._loop)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        await asyncio.sleep(0)  # aborted transports call their protocols in the loop's next turn

    # -- for users

    @property
    def ca_file(self) -> Path | None:
        """Return the PEM file of the generated certificate authority; None if none was generated.

        librdkafka: `ssl.ca.location`. Java: `ssl.truststore.location`, with `ssl.truststore.type=PEM`.
        """
        certificates = self.security.certificates
        return certificates.authority if certificates else None

    @property
    def bootstrap(self) -> str:
        """Return the brokers' advertised addresses, for clients' `bootstrap.servers`."""
        return ",".join("{}:{}".format(*self._client_address(number)) for number in self._ports)

    # -- inside

    def _client_address(self, broker: int) -> tuple[str, int]:
        """Return a broker's host and port for clients. Not for users."""
        host, first = self._advertised
        return host, first + broker - next(iter(self._ports)) if first else self._ports[broker]

    def _require_new(self) -> None:
        if self._loop is not None or self.brokers:
            raise AbeyantError("this cluster has been opened before: create another")

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Create the cluster's parts and start all brokers, in the loop's thread."""
        journal = None
        if self._data is not None:
            from abeyant.broker.log.directory import DataDirectory

            self.directory = DataDirectory(self._data)
            journal = self.directory.journal
        if self._held:
            self.clock: Clock = HeldClock(loop, self._on_loop, self._settle)
        else:
            self.clock = Clock(loop) if self._thread is None else MachineClock(loop)
        if self.directory is not None:
            self.directory.on_deletion = self._delete_files_at
        self.network = Network(loop)
        credentials = self.security.credentials
        self.controller = Controller(self.clock, self.network, self.settings, tuple(self._ports), journal, credentials)
        for number in self._ports:
            self._start(number)
        self.network.settle()

    def _delete_files_at(self, at_ms: int) -> None:
        assert self.directory is not None
        delay = max(at_ms - self.clock.now_ms(), 0) / 1000
        self.clock.timer.call_later(delay, self.directory.delete_due, at_ms)

    def _start(self, number: int) -> None:
        broker = Broker(self, number)
        try:
            broker.listen(self._ports[number])
        except OSError as error:
            address = f"{self.host}:{self._ports[number]}"
            raise AbeyantError(f"broker {number} cannot listen at {address}: {error.strerror or error}") from error
        self._ports[number] = broker.port
        self.brokers[number] = broker
        self.settings.add_broker(number, self._own_settings(broker))
        if self.directory is not None:
            try:
                self.directory.delete_others(number, self.controller.replicas_of(number), broker.now_ms())
            except LogError as error:
                raise AbeyantError(f"broker {number} cannot start: {error}") from None
        self.controller.register(broker)

    def _own_settings(self, broker: Broker) -> dict[str, str]:
        protocol, number = self.security.protocol, str(broker.id)
        values = {
            "node.id": number,
            "broker.id": number,
            "log.dirs": broker.log_dir,
            "listeners": f"{protocol}://{broker.host}:{broker.port}",
            "advertised.listeners": f"{protocol}://{broker.address}",
        }
        if mechanisms := self.security.mechanisms:
            values["sasl.enabled.mechanisms"] = ",".join(mechanisms)
        if self._racks:
            values["broker.rack"] = self._racks[(broker.id - min(self._ports)) % len(self._racks)]
        return values

    def _end(self) -> None:
        self._end_waits()
        for broker in self.brokers.values():
            if not broker.stopped:
                broker.stop()
        if hasattr(self, "controller"):
            self.controller.close()
            self.clock.close()
        if self.directory is not None:
            self.directory.close()
        if self._observer is not None:
            self._observer.close()
        self.security.close()

    async def _end_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._end()
            connecting = asyncio.all_tasks() - {asyncio.current_task()}  # handshakes, which end with their broker
            await asyncio.gather(*connecting, return_exceptions=True)
            await asyncio.sleep(0)  # aborted transports call their protocols in the loop's next turn
        finally:
            loop.stop()

    def _on_loop(self, action: Callable[..., T], *args: Any) -> T:
        """Call `action` in the loop's thread and return its result. Thread-safe. Not for users."""
        loop = self._loop
        if loop is not None and asyncio._get_running_loop() is loop:
            return action(*args)
        result: Future[T] = Future()

        def run() -> None:
            if result.done():
                return
            try:
                if self._loop is None:
                    raise self._not_open()
                result.set_result(action(*args))
            except BaseException as error:  # noqa: BLE001  raised in the calling thread
                result.set_exception(error)

        self._calls.add(result)
        try:
            loop = self._loop  # only now: `close` ends the calls that it finds, and later ones see that it is closed
            if loop is None:
                raise self._not_open()
            try:
                loop.call_soon_threadsafe(run)
            except RuntimeError:  # it is closed
                raise self._not_open() from None
            return result.result()
        finally:
            self._calls.discard(result)

    def _not_open(self) -> AbeyantError:
        hint = "it has been closed; create another" if self.brokers else "use it in a `with` statement, or call open()"
        return AbeyantError(f"the cluster is not open: {hint}")


def _checked_racks(racks: Sequence[str] | None, settings: Settings) -> tuple[str, ...]:
    """Return the racks. Raises ValueError unless they are a list of names, AbeyantError if `broker.rack` is set too."""
    if racks is None:
        return ()
    if (
        not isinstance(racks, Sequence)
        or isinstance(racks, str)
        or not racks
        or not all(isinstance(rack, str) and rack for rack in racks)
    ):
        raise ValueError(f'racks must be a list of names, for instance ["east", "west"], not {racks!r}')
    if settings["broker.rack"] is not None:
        raise AbeyantError("broker.rack sets one rack for all brokers, racks= one for each broker: leave one out")
    return tuple(racks)


def _address(text: str, brokers: int) -> tuple[str, int]:
    """Return the host and the first broker's port in `advertise`, port 0 if it has none. Raises AbeyantError."""
    host, colon, digits = text.partition(":")
    if not host or "/" in text or host == "0.0.0.0":
        raise AbeyantError(f"advertise is {text!r}: give a HOST or HOST:PORT that clients can connect to")
    if not colon:
        return host, 0
    port = int(digits) if digits.isascii() and digits.isdecimal() else 0
    if not 1 <= port <= _LAST_PORT + 1 - brokers:
        raise AbeyantError(f"advertise is {text!r}: the port must be from 1 to {_LAST_PORT + 1 - brokers}")
    return host, port


def _unknown_option(option: str) -> str:
    """Return the error message for an unknown option. Most unknown options are names of settings."""
    from abeyant.broker.definitions import definitions

    name = option.replace("_", ".")
    if name in definitions("broker"):
        return f'Cluster has no option {option}, which is a setting: write settings={{"{name}": ...}}'
    names = [*inspect.signature(Cluster).parameters, *definitions("broker")]
    names.remove("unknown")
    return f"Cluster has no option {option}{did_you_mean(option if option in names else name, names)}"


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped: the main function of the cluster's thread."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
