"""Run the server's thread, loop and sockets, from `serve` to `close`, a fork or the interpreter's exit."""

from __future__ import annotations

import asyncio
import atexit
import errno
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from abeyant.errors import AbeyantError
from abeyant.forking import reset_in_child
from abeyant.reporting import logger
from abeyant.timer.units import machine_time
from abeyant.web.connection import Connection, Streams
from abeyant.web.guard import Guard
from abeyant.web.routes import Routes

_WAITING = 1024  # backlog: connections that the system queues until they are accepted
_SHORT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Server:
    """A server over HTTP in a thread of its own. `close` it, or use it as a context manager."""

    def __init__(self, site: Routes, guard: Guard, host: str, port: int, name: str) -> None:
        """Not for users. Listen, and start the thread. `name` is the host in `url`."""
        self._site = site
        self._guard = guard
        self._listener = _listen(host, port)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        shown = f"[{name}]" if ":" in name else name
        self.url = f"http://{shown}:{self.port}/"
        """The server's address, such as `http://127.0.0.1:8080/`."""
        self._clients: dict[socket.socket, asyncio.Task[None]] = {}
        self._streams = Streams(site.limits.streams)
        self._accepting: asyncio.Task[None] | None = None
        self._closed = False
        # The machine's clock: a test that freezes or replaces Python's must not stop ours.
        self.loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop()
        self.loop.time = machine_time  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._run, name="abeyant-web", daemon=True)
        reset_in_child(self)
        atexit.register(self.close)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Return whether the server has been closed, or this process is a fork of the one that it serves."""
        return self._closed

    def close(self) -> None:
        """Stop listening and close the connections. A second call does nothing. Call it from another thread."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._stop)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Server {self.url}{' closed' if self._closed else ''}>"

    # -- in a forked child

    def _reset_in_child(self) -> object:
        """Close the inherited sockets, so that the port is free when the parent ends. The child serves nothing."""
        self._closed = True
        atexit.unregister(self.close)
        # Not through the loop: its epoll is the parent's too, and closing the loop would change it there.
        for client in (self._listener, *self._clients):
            client.close()
        kept = self.loop, self._clients, self._accepting
        _inherited.append(kept)  # an event loop that is collected complains that it was not closed
        return None

    # -- in the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self._accepting = self.loop.create_task(self._accept())
            self.loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self._listener.close()
            self.loop.close()

    def _stop(self) -> None:
        self.loop.stop()

    async def _accept(self) -> None:
        while True:
            try:
                client, _ = await self.loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno in _SHORT_OF_FILES:
                    await asyncio.sleep(0.5)  # pending connections stay in the system's queue
                elif error.errno in (errno.EBADF, errno.EINVAL):
                    return
                continue
            # Refuse one connection too many with 503; if even those are too many, just close it.
            busy = len(self._clients) >= self._site.limits.connections
            if busy and len(self._clients) >= 2 * self._site.limits.connections:
                client.close()
                continue
            client.setblocking(False)
            self._clients[client] = self.loop.create_task(self._serve(client, busy))
            await asyncio.sleep(0)  # connections that are open have their turn before new ones

    async def _serve(self, client: socket.socket, busy: bool) -> None:
        try:
            with suppress(OSError):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await Connection(self._site, self._guard, self._streams, busy).run(self.loop, client)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone
        except Exception:  # noqa: BLE001  the others go on
            logger("web").exception("a connection failed")
        finally:
            self._clients.pop(client, None)


_inherited: list[object] = []


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises AbeyantError if the address is invalid or taken."""
    if type(port) is not int or not 0 <= port <= 65_535:
        raise AbeyantError(f"a port is a whole number from 0 to 65535, not {port!r}")
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_WAITING)
        listener.setblocking(False)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise AbeyantError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    return listener
