"""A TCP proxy that delays some connections: what a far or congested network does to replication."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

_CHUNK = 1 << 16


class DelayingProxy:
    """Listens on one port and connects to another, in a thread of its own.

    `seconds` holds each chunk back, both ways, on the connections whose first bytes contain `mark` (None: on all).
    """

    def __init__(self, host: str, port: int, to_port: int, mark: bytes | None) -> None:
        """Start to listen."""
        self.seconds = 0.0
        self._host, self._to_port, self._mark = host, to_port, mark
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, host, port))

    def close(self) -> None:
        """Close the port; open connections end with the process."""
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, work: Coroutine[Any, Any, asyncio.Server]) -> asyncio.Server:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection(self._host, self._to_port)
        except OSError:
            writer.close()
            return
        first = await reader.read(_CHUNK)
        is_marked = self._mark is None or self._mark in first
        await asyncio.gather(
            self._pass(reader, forth, is_marked, first), self._pass(back, writer, is_marked), return_exceptions=True
        )

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_marked: bool, first: bytes = b""
    ) -> None:
        with contextlib.suppress(OSError):
            chunk = first or await reader.read(_CHUNK)
            while chunk:
                if is_marked and self.seconds:
                    # One request is under way on a connection, so to wait in turn delays no more than the network.
                    await asyncio.sleep(self.seconds)
                writer.write(chunk)
                await writer.drain()
                chunk = await reader.read(_CHUNK)
        writer.close()
