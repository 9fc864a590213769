"""What idle time-outs cost a server in the classic case: 100,000 connections, 30 s, each seen once a second.

    python -m benchmarks.idle_connections

Every way runs in a process of its own, in an event loop that stands for a server: every 10 ms a hundredth of the
connections have a packet, in random order. CPU is that of the process over that of the same loop doing nothing with
them; memory is what the time-outs take before the first second, connections themselves not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from abeyance import IdleDetector, SystemTimer
from abeyance.aio import Timer

TIMEOUT = 30.0
ROUND = 0.01  # seconds

Seen = Callable[[int], None]


def nobody(_: int) -> None:
    """The floor: the loop, the batches and the call."""


def drop(_: int) -> None:
    """Never called."""
    raise AssertionError("a connection that is seen every second was dropped")


def call_later() -> Seen:
    """What servers do: a timer of the loop's for each connection, cancelled and started again at each packet."""
    loop = asyncio.get_running_loop()
    timers: dict[int, asyncio.TimerHandle] = {}

    def seen(connection: int) -> None:
        before = timers.get(connection)
        if before is not None:
            before.cancel()
        timers[connection] = loop.call_later(TIMEOUT, drop, connection)

    return seen


WAYS: dict[str, Callable[[], Seen]] = {
    "nothing": lambda: nobody,
    "call_later": call_later,
    "IdleDetector on aio.Timer": lambda: IdleDetector(TIMEOUT, drop, Timer()).seen,
    "IdleDetector on SystemTimer": lambda: IdleDetector(TIMEOUT, drop, SystemTimer()).seen,
}
LOOPS = ("asyncio", "uvloop")


async def serve(way: str, connections: int, seconds: float) -> dict[str, float]:
    """Watch them all, then give each its packets for so many seconds."""
    numbers = list(range(connections))
    tracemalloc.start()
    seen = WAYS[way]()
    for number in numbers:
        seen(number)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    random.Random(1).shuffle(numbers)
    batch = round(connections * ROUND)
    position = 0
    longest = 0.0
    began, used = time.perf_counter(), time.process_time()
    for number in range(round(seconds / ROUND)):
        before = time.perf_counter()
        for connection in numbers[position : position + batch]:
            seen(connection)
        position = (position + batch) % connections
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - before)
        await asyncio.sleep(began + (number + 1) * ROUND - time.perf_counter())
    cpu = (time.process_time() - used) / (time.perf_counter() - began)
    return {"cpu": cpu, "bytes": memory / connections, "stall": longest}


def measure(way: str, loop: str, connections: int, seconds: float) -> dict[str, float]:
    """In a process of its own."""
    command = [sys.executable, "-m", "benchmarks.idle_connections", "--one", way, "--loop", loop]
    command += ["--connections", str(connections), "--seconds", str(seconds)]
    measured: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return measured


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="What idle time-outs cost a server.")
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=40.0, help="longer than the time-out shows its cascades")
    parser.add_argument("--loop", choices=LOOPS, help="only on this one")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        factory: Any = asyncio.SelectorEventLoop
        if arguments.loop == "uvloop":
            import uvloop

            factory = uvloop.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            measured = runner.run(serve(arguments.one, arguments.connections, arguments.seconds))
        print(json.dumps(measured))
        return
    for loop in [arguments.loop] if arguments.loop else LOOPS:
        floor = measure("nothing", loop, arguments.connections, arguments.seconds)
        print(f"{loop}: the loop itself {floor['cpu']:.1%} of a core")
        for way in WAYS:
            if way != "nothing":
                one = measure(way, loop, arguments.connections, arguments.seconds)
                print(
                    f"  {way:28} {one['cpu'] - floor['cpu']:6.2%} of a core, "
                    f"{one['bytes'] - floor['bytes']:4.0f} bytes each, longest round {one['stall'] * 1e3:.1f} ms"
                )


if __name__ == "__main__":
    main()
