"""Measure event loops in use: time-out scopes, time-outs of connections that become idle, an HTTP server."""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from lab.benchmarks.effort import Effort
from lab.benchmarks.measurement import Sample
from lab.benchmarks.rounds import Rounds, clock
from lab.peers.loops import AsyncioRival
from lab.peers.rival import noop

IDLE = 30.0  # seconds: time-out of an idle connection
PARTS = 100  # of a second, each with packets from its share of the connections
CONNECTIONS = 64  # of the HTTP client
ROOT = Path(__file__).resolve().parents[2]


async def timeout_scope(rival: AsyncioRival, size: int, effort: Effort) -> Sample:
    """Measure `async with asyncio.timeout(30)` around one step of the loop in ns, with `size` pending timers."""
    source = random.Random(1)
    handles = [rival.call(source.uniform(120, 240), noop) for _ in range(size)]
    count = max(1, min(effort.most, round(effort.seconds * 1e9 / 10_000)))

    async def scoped() -> None:
        for _ in range(count):
            async with asyncio.timeout(30):
                await asyncio.sleep(0)

    async def bare() -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    rounds: list[float] = []
    empty: list[float] = []
    rounds_left = Rounds(effort)
    await scoped()
    while rounds_left.another():
        rounds.append(await _spent(scoped) / count)
        empty.append(await _spent(bare) / count)
    for handle in handles:
        handle.cancel()
    deducted = statistics.median(empty)
    return Sample([figure - deducted for figure in rounds], count, {"empty": empty})


async def _spent(work: Callable[[], Awaitable[None]]) -> float:
    began = clock()
    await work()
    return float(clock() - began)


async def idle(rival: AsyncioRival, size: int, effort: Effort) -> Sample:
    """Measure the CPU of time-outs of `size` connections, each with a packet per second, in percent of a core.

    The CPU of the loop's bare wake-ups, in the same second without packets, is deducted.
    """
    restart = rival.idle_connections(size, IDLE)
    order = list(range(size))
    random.Random(2).shuffle(order)
    share = max(1, size // PARTS)
    parts = [order[begin : begin + share] for begin in range(0, size, share)]
    rounds: list[float] = []
    empty: list[float] = []
    rounds_left = Rounds(effort)
    await _second(restart, parts, effort)
    while rounds_left.another():
        rounds.append(await _second(restart, parts, effort))
        empty.append(await _second(_restart_none, parts, effort))
    deducted = statistics.median(empty)
    return Sample([max(0.0, figure - deducted) for figure in rounds], size, {"empty": empty})


async def _second(restart: Callable[[list[int]], None], parts: list[list[int]], effort: Effort) -> float:
    """Return the CPU in percent of a core over one second of packets (over less than a second with a small effort)."""
    length = min(1.0, effort.seconds * 10)
    began, spent = time.monotonic(), time.process_time()
    for number, part in enumerate(parts):
        restart(part)
        pause = began + length * (number + 1) / len(parts) - time.monotonic()
        await asyncio.sleep(max(0.0, pause))
    return (time.process_time() - spent) * 100  # of a second's work, however long it took


def _restart_none(part: list[int]) -> None:
    for _ in part:
        pass


async def http(rival: AsyncioRival, size: int, effort: Effort) -> Sample:
    """Measure requests per second of aiohttp's server, which has a time-out for every kept-alive connection."""
    from aiohttp import web

    del rival

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, keepalive_timeout=30.0, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(_, port)] = [address[:2] for address in runner.addresses]
    count = max(CONNECTIONS, round(size * min(1.0, effort.seconds * 10)))
    rounds: list[float] = []
    rounds_left = Rounds(effort)
    try:
        await _requests(port, count)
        while rounds_left.another():
            rounds.append(await _requests(port, count))
    finally:
        await runner.cleanup()
    return Sample(rounds, count)


async def _requests(port: int, count: int) -> float:
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lab.benchmarks.http_client", str(port), str(count), str(CONNECTIONS),
        cwd=ROOT, stdout=subprocess.PIPE,
    )  # fmt: skip
    output, _ = await client.communicate()
    return float(output)
