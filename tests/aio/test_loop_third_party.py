"""Unmodified third-party software on our loops: each program's results equal those on asyncio's own loop.

Real servers and real sockets on the loopback, hundreds of requests at once, and every kind of time-out that these
libraries put on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import anyio
import anyio.to_thread
import httpx
import pytest
import uvicorn
from aiohttp import web
from anyio.abc import SocketStream
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from aio.loops import OURS, LoopFactory, run
from seeds import with_slow

REQUESTS = 300


@contextlib.asynccontextmanager
async def serving(application: web.Application, keepalive: float) -> AsyncIterator[tuple[str, int]]:
    """Serve an aiohttp application; yields where. Each connection has a time-out of `keepalive` seconds."""
    runner = web.AppRunner(application, keepalive_timeout=keepalive, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0]
    finally:
        await runner.cleanup()


async def aiohttp_under_load() -> Counter[object]:
    """aiohttp's server and client: plain, slow, streamed, and ones that the client's time-out gives up."""

    async def plain(request: web.Request) -> web.Response:
        return web.Response(text=request.match_info["name"])

    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(0.03)
        return web.Response(text="slow")

    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response(text="never")

    async def echo(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        async for chunk in request.content.iter_chunked(1000):
            await response.write(chunk)
        await response.write_eof()
        return response

    application = web.Application()
    application.add_routes(
        [
            web.get("/plain/{name}", plain),
            web.get("/slow", slow),
            web.get("/never", never),
            web.post("/echo", echo),
        ]
    )
    outcomes: Counter[object] = Counter()

    async def fetch(session: aiohttp.ClientSession, number: int) -> None:
        try:
            match number % 6:
                case 0:
                    async with session.get("/never", timeout=aiohttp.ClientTimeout(0.1)) as response:
                        outcomes["not given up", response.status] += 1
                case 1:
                    async with session.get("/slow") as response:
                        outcomes[response.status, await response.text()] += 1
                case 2:
                    async with session.post("/echo", data=b"x" * 20_000) as response:
                        outcomes[response.status, len(await response.read())] += 1
                case _:
                    async with session.get(f"/plain/{number}") as response:
                        outcomes[response.status, await response.text()] += 1
        except TimeoutError as error:
            outcomes[type(error).__name__] += 1

    async with (
        serving(application, keepalive=60) as address,
        aiohttp.ClientSession("http://{}:{}".format(*address), connector=aiohttp.TCPConnector(limit=100)) as session,
    ):
        await asyncio.gather(*[fetch(session, number) for number in range(REQUESTS)])
    return outcomes


async def aiohttp_drops_idle_connections() -> Counter[object]:
    """aiohttp's server again: a connection that is kept alive has a time-out, after which the server hangs up."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="kept")

    application = web.Application()
    application.add_routes([web.get("/", answer)])
    outcomes: Counter[object] = Counter()

    async def stay(address: tuple[str, int]) -> None:
        answer = b""
        while not answer:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):  # on a machine that stalls it hangs up before it has read
                answer = await reader.read()  # to the end
            writer.close()
            with contextlib.suppress(ConnectionResetError):
                await writer.wait_closed()
        outcomes[answer.partition(b"\r\n")[0], answer[-4:]] += 1

    async with serving(application, keepalive=0.05) as address:
        await asyncio.gather(*[stay(address) for _ in range(50)])
    return outcomes


async def uvicorn_and_httpx_under_load() -> Counter[object]:
    """uvicorn with a starlette application, and httpx: plain, streamed, and ones that time out in the client."""
    outcomes: Counter[object] = Counter()

    async def plain(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.path_params["name"])

    async def stream(_: Request) -> StreamingResponse:
        async def chunks() -> Any:
            for number in range(5):
                await asyncio.sleep(0.002)
                yield f"{number};"

        return StreamingResponse(chunks())

    async def never(_: Request) -> PlainTextResponse:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            outcomes["cancelled in the server"] += 1
            raise
        return PlainTextResponse("never")

    application = Starlette(routes=[Route("/plain/{name}", plain), Route("/stream", stream), Route("/never", never)])
    config = uvicorn.Config(
        application, log_level="critical", timeout_keep_alive=60, timeout_graceful_shutdown=0, http="h11", ws="none"
    )
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.005)
    url = "http://{}:{}".format(*listening.getsockname())

    async def fetch(client: httpx.AsyncClient, number: int) -> None:
        try:
            match number % 6:
                case 0:
                    response = await client.get("/never", timeout=httpx.Timeout(30, read=0.1))
                case 1:
                    response = await client.get("/stream")
                case _:
                    response = await client.get(f"/plain/{number}")
            outcomes[response.status_code, response.text] += 1
        except httpx.TimeoutException as error:
            outcomes[type(error).__name__] += 1

    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30, trust_env=False) as client:
        await asyncio.gather(*[fetch(client, number) for number in range(REQUESTS // 3)])
    server.should_exit = True
    await serving
    return outcomes


async def anyio_all_over() -> Counter[object]:
    """anyio's asyncio backend: cancel scopes and deadlines, task groups, threads and sockets."""
    outcomes: Counter[object] = Counter()
    with anyio.move_on_after(0.02) as scope:
        await anyio.sleep(30)
    outcomes["moved on", scope.cancelled_caught] += 1
    with contextlib.suppress(TimeoutError), anyio.fail_after(0.02):
        await anyio.sleep(30)
        outcomes["not given up"] += 1
    with anyio.CancelScope(deadline=anyio.current_time() + 30) as outer:
        with anyio.CancelScope(shield=True) as shielded:
            outer.deadline = anyio.current_time() + 0.01
            await anyio.sleep(0.03)
            outcomes["shielded", shielded.cancel_called] += 1
        await anyio.sleep(30)
    outcomes["outer", outer.cancelled_caught] += 1

    async def converse(stream: SocketStream) -> None:
        async with stream:
            async for data in stream:
                await stream.send(data.upper())

    async def ask(port: int, number: int) -> None:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"question %d" % number)
            outcomes[await stream.receive()] += 1

    async with anyio.create_task_group() as group:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, converse)
        async with anyio.create_task_group() as askers:
            for number in range(100):
                askers.start_soon(ask, port, number)
                askers.start_soon(partial(anyio.sleep, number / 10_000))
        for number in range(20):
            outcomes[await anyio.to_thread.run_sync(pow, number, 2)] += 1
        group.cancel_scope.cancel()
    await listener.aclose()
    return outcomes


PROGRAMS: dict[str, Callable[[], Awaitable[Counter[object]]]] = {
    "aiohttp": aiohttp_under_load,
    "aiohttp idle": aiohttp_drops_idle_connections,
    "uvicorn": uvicorn_and_httpx_under_load,
    "anyio": anyio_all_over,
}


@pytest.mark.parametrize("program", with_slow(PROGRAMS, ["aiohttp idle", "uvicorn"]))
def test_unmodified_software_does_on_our_loops_what_it_does_on_asyncios(program: str) -> None:
    stock = run(_collected(program), asyncio.SelectorEventLoop)
    assert sum(stock.values()) >= 20
    for name, factory in OURS.items():
        if name == "uvloop":
            pytest.importorskip("uvloop")
        assert run(_collected(program), factory) == stock, name


async def _collected(program: str) -> Counter[object]:
    async with asyncio.timeout(60):
        return await PROGRAMS[program]()


def test_anyio_takes_our_loop_as_its_loop_factory() -> None:
    factory: LoopFactory = OURS["selector"]

    async def main() -> str:
        await anyio.sleep(0.001)
        return type(asyncio.get_running_loop()).__name__

    assert anyio.run(main, backend_options={"loop_factory": factory}) == "EventLoop"
