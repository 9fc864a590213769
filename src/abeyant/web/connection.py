"""Serve one client's connection: read its requests and send the responses, within the site's limits."""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

import h11

from abeyant.errors import AbeyantError
from abeyant.reporting import logger
from abeyant.web.guard import Guard
from abeyant.web.messages import Events, Handler, HttpError, Request, Response, as_json, dumped, to_response
from abeyant.web.routes import Routes

_CHUNK = 64 << 10
_ABSOLUTE = re.compile("http://([^/?]*)", re.IGNORECASE)
_ALWAYS = (
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
)


class Streams:
    """The number of event streams that all connections together may still open."""

    def __init__(self, most: int) -> None:
        self.left = most


class Connection:
    """The connection of one client, served on the server's event loop."""

    def __init__(self, site: Routes, guard: Guard, streams: Streams, busy: bool = False) -> None:
        """With `busy`, respond to any request with 503."""
        self._busy = busy
        self._site = site
        self._limits = site.limits
        self._guard = guard
        self._streams = streams
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=site.limits.head)

    async def run(self, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        """Serve requests until the client leaves, is too slow, or breaks the protocol."""
        self._reader = asyncio.StreamReader(limit=_CHUNK, loop=loop)
        protocol = asyncio.StreamReaderProtocol(self._reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, client)
        transport.set_write_buffer_limits(_CHUNK)
        self._writer = asyncio.StreamWriter(transport, protocol, self._reader, loop)
        try:
            while await self._exchange():
                self._http.start_next_cycle()
            if self._http.their_state is not h11.DONE:
                async with asyncio.timeout(1.0):
                    await self._linger()
        except TimeoutError:
            pass  # too slow
        finally:
            transport.abort()

    async def _exchange(self) -> bool:
        """Serve one request; return whether another may follow on this connection."""
        method = "GET"
        try:
            first = await self._receive_head()
            if first is None:
                return False
            method = first.method.decode("ascii")
            if _size(first) > self._limits.head:  # h11 limits only a head that has not arrived completely
                raise HttpError(431, f"the request's line and headers exceed the limit of {self._limits.head:,} bytes")
            result = await self._handle(first)
        except h11.RemoteProtocolError as error:
            if self._http.our_state is not h11.IDLE and self._http.our_state is not h11.SEND_RESPONSE:
                return False
            result = _refused(HttpError(error.error_status_hint, str(error)))
        except TimeoutError:
            result = _refused(HttpError(408, f"the request took more than {self._limits.receive:g} s"))
        except AbeyantError as error:
            result = _refused(error)
        if isinstance(result, Events):
            await self._stream(result)
            return False
        await self._send(result, method)
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    # -- in

    async def _receive_head(self) -> h11.Request | None:
        if self._http.trailing_data[0] == b"":
            try:
                async with asyncio.timeout(self._limits.idle):
                    data = await self._reader.read(_CHUNK)
            except TimeoutError:
                return None
            if not data:
                return None
            self._http.receive_data(data)
        async with asyncio.timeout(self._limits.receive):
            event = await self._next()
        return event if isinstance(event, h11.Request) else None

    async def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_CHUNK))
        return event

    async def _receive_body(self, headers: Mapping[str, str]) -> bytes:
        """Return the body. Raises HttpError 413 as soon as the body is known to be too large."""
        limit = self._limits.body
        if int(headers.get("content-length", "0")) > limit:
            raise HttpError(413, f"the body exceeds the limit of {limit:,} bytes")
        if self._http.they_are_waiting_for_100_continue:
            self._write(h11.InformationalResponse(status_code=100, headers=[]))
        body = bytearray()
        async with asyncio.timeout(self._limits.receive):
            while isinstance(event := await self._next(), h11.Data):
                body += event.data
                if len(body) > limit:
                    raise HttpError(413, f"the body exceeds the limit of {limit:,} bytes")
        return bytes(body)

    # -- the handler

    async def _handle(self, head: h11.Request) -> Response | Events:
        method = head.method.decode("ascii")
        target = head.target.decode("ascii")
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        if (absolute := _ABSOLUTE.match(target)) is not None:  # then its host counts: RFC 9112, section 3.2.2
            headers["host"], target = absolute[1], target[absolute.end() :]
        path, _, text = target.partition("?")
        path = path or "/"
        query, repeated = _query(text)
        if self._busy:
            raise HttpError(503, "too many connections are open: close one")
        self._guard.check(method, headers, query)
        if repeated is not None:
            raise HttpError(400, f"the query has {repeated[:200]!r} twice: leave one out")
        handler, params = self._site.find(method, path)
        body = await self._receive_body(headers)
        request = Request(method, unquote(path), params, query, headers, body)
        try:
            result = await _call(handler, request)
            return result if isinstance(result, Events) else to_response(result)
        except AbeyantError:
            raise
        except Exception:  # noqa: BLE001  a handler's
            logger("web").exception("%s %s failed", method, path)
            return _error(500, "the handler failed: see the program's log")

    # -- out

    async def _send(self, response: Response, method: str) -> None:
        headers = [*_ALWAYS, *response.headers]
        if response.body or response.status != 204:
            headers.append(("content-type", response.content_type))
            headers.append(("content-length", str(len(response.body))))
        if self._http.their_state is not h11.DONE:
            headers.append(("connection", "close"))  # the rest of the request is not parsed
        self._write(_head(response.status, headers))
        if response.body and method != "HEAD":
            for start in range(0, len(response.body), _CHUNK):
                self._write(h11.Data(data=response.body[start : start + _CHUNK]))
                await self._drain()
        self._write(h11.EndOfMessage())
        await self._drain()

    async def _stream(self, events: Events) -> None:
        """Send events until their source ends, or the client leaves or does not read for `Limits.send` seconds."""
        if self._streams.left <= 0:
            await self._send(_error(503, "too many event streams are open: close one"), "GET")
            return
        self._streams.left -= 1
        disconnect = asyncio.ensure_future(self._reader.read(1))
        next_event: asyncio.Future[Any] | None = None
        try:
            stream_headers = (("content-type", "text/event-stream; charset=utf-8"), ("connection", "close"))
            self._write(_head(200, [*_ALWAYS, *stream_headers]))
            await self._drain()
            while True:
                next_event = asyncio.ensure_future(_following(events))
                await asyncio.wait((disconnect, next_event), return_when=asyncio.FIRST_COMPLETED)
                if disconnect.done():
                    return
                try:
                    event = next_event.result()
                except StopAsyncIteration:
                    break
                self._write(h11.Data(data=b"data: " + dumped(event) + b"\n\n"))
                await self._drain()
            self._write(h11.EndOfMessage())
            await self._drain()
        except Exception as error:  # noqa: BLE001  the source's
            if not isinstance(error, (TimeoutError, OSError)):
                logger("web").exception("an event stream failed")
        finally:
            self._streams.left += 1
            tasks = [task for task in (disconnect, next_event) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            close = getattr(events.source, "aclose", None)
            if close is not None:
                await close()

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)

    async def _drain(self) -> None:
        # Not wait_for, which before Python 3.12 may lose the cancellation that ends this connection at `close`.
        async with asyncio.timeout(self._limits.send):
            await self._writer.drain()

    async def _linger(self) -> None:
        """Read and discard the rest of a request, up to 4 MiB. Else a reset would destroy the response on its way."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        for _ in range(64):
            if not await self._reader.read(_CHUNK):
                return


def _size(head: h11.Request) -> int:
    line = len(head.method) + len(head.target) + len(" ") + len(" HTTP/1.1\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in head.headers) + len("\r\n")


def _query(text: str) -> tuple[dict[str, str], str | None]:
    """Return the query's parameters, and the name of a parameter that occurs twice, or None."""
    query: dict[str, str] = {}
    repeated = None
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name in query:
            repeated = name
        query[name] = value
    return query, repeated


def _head(status: int, headers: list[tuple[str, str]]) -> h11.Response:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    return h11.Response(
        status_code=status, headers=[(n.encode(), v.encode()) for n, v in headers], reason=reason.encode()
    )


def _error(status: int, message: str) -> Response:
    return as_json({"error": message}, status)


def _refused(error: AbeyantError) -> Response:
    response = _error(getattr(error, "status", 400), str(error))
    return response._replace(headers=getattr(error, "headers", ()))


async def _following(events: Events) -> object:
    return await anext(events.source)


async def _call(handler: Handler, request: Request) -> Any:
    if inspect.iscoroutinefunction(handler):
        return await handler(request)
    return await _in_thread(handler, request)


async def _in_thread(handler: Handler, request: Request) -> Any:
    """Run a handler that may block in a daemon thread, for which the interpreter does not wait when it exits."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

    def run() -> None:
        result, raised = None, None
        try:
            result = handler(request)
        except BaseException as error:  # noqa: BLE001  raised where it is awaited
            raised = error
        with suppress(RuntimeError):  # the server has closed meanwhile
            loop.call_soon_threadsafe(settle, result, raised)

    threading.Thread(target=run, name="abeyant-web-handler", daemon=True).start()
    result = await done
    return await result if inspect.isawaitable(result) else result
