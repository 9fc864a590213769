"""A program with clients, a server that is killed, and most sources of chance; run by the tests, here and in others.

python tests/simulation/programs.py FIRST COUNT: the seeds and the hashes of their traces.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import random
import sys
import time
import uuid
from time import monotonic, time_ns  # bound at import
from typing import Any

from abeyant import simulation


async def serve() -> None:
    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(upper, "shop", 8000)
    await server.serve_forever()


async def client(number: int, said: list[str]) -> None:
    for attempt in range(4):
        try:
            reader, writer = await asyncio.open_connection("shop", 8000)
            writer.write(f"client {number} attempt {attempt}\n".encode())
            said.append((await reader.readline()).decode())
            writer.close()
        except OSError as error:
            said.append(type(error).__name__)
        await asyncio.sleep(random.expovariate(5.0))


async def main() -> list[Any]:
    server = simulation.current().process("server", serve)
    server.start()
    said: list[Any] = []
    clients = {asyncio.create_task(client(number, said), name=f"client {number}") for number in range(5)}
    await asyncio.sleep(0.3)
    server.kill()
    await asyncio.sleep(0.3)
    server.start()
    while clients:
        done, clients = await asyncio.wait(clients, return_when=asyncio.FIRST_COMPLETED)
        said += [task.get_name() for task in done]
    said += [time.time(), time_ns(), monotonic(), datetime.datetime.now(), uuid.uuid1(), uuid.uuid4(), os.urandom(6)]
    said += [random.Random().random(), random.SystemRandom().random(), await asyncio.to_thread(time.perf_counter)]
    for word in {"orders", "payments", "refunds", "stock"}:
        simulation.current().trace.add(0.0, word)
    simulation.current().trace.add(0.0, repr(said))
    return said


if __name__ == "__main__":
    simulation.fix_hashes()
    for seed in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
        print(seed, simulation.run(main, seed=seed).hash)
