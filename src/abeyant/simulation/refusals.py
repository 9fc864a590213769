"""Refuse what a simulation cannot control, and name it (S4): threads, processes, real sockets, clients in C."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Never

from abeyant.aio.virtual.rest import native_threads
from abeyant.simulation.errors import SimulationError
from abeyant.simulation.sockets import ListeningSocket, SimulatedSocket

if TYPE_CHECKING:
    from abeyant.simulation.loop import SimulationLoop

_LIBRDKAFKA: Final = "confluent-kafka (librdkafka) works in threads of its own in C: use aiokafka"
# Messages by the prefix of a native thread's name: the library of the thread, and what to use instead.
_KNOWN: Final = {"rdk:": _LIBRDKAFKA}
# By package: the reason why it cannot be simulated, whichever of its calls is refused first.
_PACKAGES: Final = {
    "faust": "faust runs its consumer in a thread with an event loop of its own",
    "quixstreams": "quixstreams is confluent-kafka inside, which works in threads of its own in C",
    "kafka": "kafka-python opens real sockets, and works in a thread of its own",
}


class Refusals:
    """Replaces classes and functions that a simulation cannot control: from `begin` to `end`, a call fails the run."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._undo: list[Callable[[], object]] = []
        self._natives: set[int] = set()
        self.first: SimulationError | None = None
        """The error of the first refused call. It fails the run even if the program caught it."""

    def begin(self) -> None:
        """Replace the classes and functions by ones that raise SimulationError in the loop's thread."""
        self._natives = native_threads()
        thread = "a simulation cannot start a thread ({}): use asyncio.to_thread, or a task"
        self._refuse(threading.Thread, "start", thread, lambda self, *_: self.name)
        process = "a simulation cannot start a subprocess ({}): run its code as a process of the simulation"
        self._refuse(subprocess.Popen, "__init__", process, lambda _, args="", *__, **___: args)
        for name in ("fork", "posix_spawn", "posix_spawnp", "system", "forkpty"):
            if hasattr(os, name):
                self._refuse(os, name, process, lambda *_, name=name, **__: f"os.{name}")
        real = "a simulation cannot open a real socket ({}): use asyncio's streams, or loop.create_connection"
        self._refuse(socket.socket, "__init__", real, lambda *_, **__: "socket.socket")
        self._refuse(socket, "create_connection", real, lambda address="", *_, **__: address)
        self._replace(socket, "socket", SimulatedSocket)
        self._replace(socket, "create_server", self._listen)
        self._replace(socket, "getaddrinfo", self._address)
        self._refuse_librdkafka()

    def end(self) -> None:
        """Restore the classes and functions."""
        while self._undo:
            self._undo.pop()()

    def foreign_threads(self) -> str | None:
        """Return a message about threads started in C since `begin`; None if there are none.

        Threads of a library that had threads before `begin` are not counted.
        """
        pythons = {thread.native_id for thread in threading.enumerate()}
        names = [_name_of(thread_id) for thread_id in sorted(native_threads() - self._natives - pythons)]
        # Clients from before the run may start threads at any time; these have the process's name until they set one.
        natives = [_name_of(thread_id) for thread_id in self._natives]
        prefixes = tuple(kind for kind in _KNOWN if any(name.startswith(kind) for name in natives))
        if prefixes:
            prefixes += (_name_of(threading.main_thread().native_id or 0),)
        new_names = [name for name in names if not name.startswith(prefixes)]
        if not new_names:
            return None
        for prefix, reason in _KNOWN.items():
            if any(name.startswith(prefix) for name in new_names):
                return reason
        return f"a simulation cannot control threads in C: {', '.join(dict.fromkeys(new_names))} began during the run"

    def _listen(self, address: tuple[str, int], *, backlog: int | None = None, **_: Any) -> Any:
        return ListeningSocket(self._loop.network, address[:2], backlog or 128)

    def _address(self, host: Any, port: Any, *_: Any, **__: Any) -> list[tuple[Any, ...]]:
        address = self._loop.network.resolve(host), int(port or 0)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]

    def _refuse(self, owner: Any, name: str, message: str, describe: Callable[..., object]) -> None:
        real = getattr(owner, name)

        def refuse(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread:
                return real(*args, **kwargs)
            return self.raise_for(message.format(describe(*args, **kwargs)))

        self._replace(owner, name, refuse)

    def _refuse_librdkafka(self) -> None:
        """Refuse to make clients of confluent-kafka. Their classes are in C, so replace their names in all modules.

        Otherwise a program that polls such a client in a loop would never return to the event loop.
        """
        library: Any = sys.modules.get("confluent_kafka.cimpl")
        if library is None:
            return

        def refuse(*_: Any, **__: Any) -> Never:
            self.raise_for(_LIBRDKAFKA)

        clients = [
            client_class
            for name in ("Producer", "Consumer", "_AdminClientImpl")
            if (client_class := getattr(library, name, None))
        ]
        replacements = {client: type(client.__name__, (), {"__init__": refuse}) for client in clients}
        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if isinstance(value, type) and value in replacements:
                    self._replace(module, name, replacements[value])
        subclasses = [subclass for client in clients for subclass in client.__subclasses__()]
        while subclasses:
            client = subclasses.pop()
            subclasses += client.__subclasses__()
            self._replace(client, "__init__", refuse)

    def raise_for(self, message: str) -> Never:
        """Record and raise SimulationError with this message; if a package in `_PACKAGES` made the call, name it."""
        package = _caller_among(_PACKAGES)
        if package is not None:
            message = f"{_PACKAGES[package]}, so it cannot be simulated: use aiokafka ({message.partition(':')[0]})"
        error = SimulationError(message)
        if self.first is None:
            self.first = error
        raise error

    def _replace(self, owner: Any, name: str, value: object) -> None:
        real = getattr(owner, name)
        self._undo.append(lambda: setattr(owner, name, real))
        setattr(owner, name, value)


def _caller_among(packages: Mapping[str, str]) -> str | None:
    """Return the package, among `packages`, of the innermost caller that is in one; None if no caller is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in packages:
            return package
        frame = frame.f_back
    return None


def _name_of(native_id: int) -> str:
    try:
        return Path(f"/proc/self/task/{native_id}/comm").read_text(encoding="ascii", errors="replace").strip()
    except OSError:  # it has ended
        return f"thread {native_id}"
