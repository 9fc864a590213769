"""K9: of a turn of the loop nobody takes more than a part, however much has come."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from struct import Struct

from abeyant.broker import Cluster
from broker.clients import PATIENCE

_HEADER = Struct(">hhih")
REQUESTS, CLIENTS = 400, 60
REQUESTS_A_TURN, CLIENTS_A_TURN = 16, 8


@contextmanager
def turns() -> Iterator[list[int]]:
    """A list of one number: how many turns the loop has made."""
    loop, count, over = asyncio.get_running_loop(), [0], False

    def turn() -> None:
        count[0] += 1
        if not over:
            loop.call_soon(turn)

    turn()
    try:
        yield count
    finally:
        over = True


def test_k9_k10_requests_that_come_all_at_once_are_begun_a_few_in_a_turn_and_in_order() -> None:
    async def main() -> None:
        async with Cluster() as kafka:
            begun: list[int] = []
            host, _, port = kafka.bootstrap.rpartition(":")
            with turns() as count:

                def note(_: object) -> bool:
                    begun.append(count[0])
                    return False

                kafka._gate = note
                reader, writer = await asyncio.open_connection(host, int(port))
                # ApiVersions 0 with a long client id: more than is read at once
                frames = [_HEADER.pack(18, 0, number, 2000) + bytes(2000) for number in range(REQUESTS)]
                writer.write(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
                for number in range(REQUESTS):
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    answer = await reader.readexactly(size)
                    assert int.from_bytes(answer[:4], "big") == number
                writer.close()
            assert len(begun) == REQUESTS
            # Twice as many where a turn ends what had been read and reads more.
            assert max(Counter(begun).values()) <= 2 * REQUESTS_A_TURN

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_k9_clients_that_come_all_at_once_are_let_in_a_few_in_a_turn() -> None:
    async def main() -> None:
        async with Cluster() as kafka:
            host, _, port = kafka.bootstrap.rpartition(":")
            with ExitStack() as held, turns() as count:
                for _ in range(CLIENTS):
                    held.enter_context(socket.create_connection((host, int(port))))
                there = {count[0]: 0}
                while there[count[0]] < CLIENTS:
                    await asyncio.sleep(0)
                    there[count[0]] = len(kafka.brokers[1].connections)
                known = [there[turn] for turn in sorted(there)]
                came = [after - before for before, after in pairwise(known)]
                assert max(came) <= CLIENTS_A_TURN

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
