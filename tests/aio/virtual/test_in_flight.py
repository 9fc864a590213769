"""Between two sockets of one loop the clock waits for what is under way, and for nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import socket
import sys
from collections.abc import Iterator

import pytest

from abeyant.aio.virtual import outside
from abeyant.aio.virtual.sockets import Sockets
from aio.virtual.loops import HOUR, RunVirtual, now

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what has been sent and has come")


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    with one, other:
        one.setblocking(False)
        other.setblocking(False)
        yield one, other


@pytest.fixture
def in_flight(ends: tuple[socket.socket, socket.socket]) -> Iterator[Sockets]:
    """What a loop that reads from both ends knows of them."""
    loop = asyncio.new_event_loop()
    with contextlib.closing(loop), selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        sockets = Sockets(loop)
        assert sockets.look(selector.get_map()) == ([], [], [])
        yield sockets


def comes(receiver: socket.socket, size: int) -> None:
    """Read as much, and wait for it."""
    while size:
        with selectors.DefaultSelector() as selector:
            selector.register(receiver, selectors.EVENT_READ)
            assert selector.select(30), f"{size} bytes never came"
        size -= len(receiver.recv(1 << 20))


def test_nothing_is_in_flight_before_anything_is_sent_and_after_it_has_come(
    ends: tuple[socket.socket, socket.socket], in_flight: Sockets
) -> None:
    one, other = ends
    assert not in_flight.in_flight()
    for sender, receiver in ((one, other), (other, one)):
        for size in (1, 1000, 100_000):
            comes(receiver, sender.send(b"x" * size))
            assert not in_flight.in_flight()


def test_what_the_receiver_has_no_room_for_is_in_flight(
    ends: tuple[socket.socket, socket.socket], in_flight: Sockets
) -> None:
    one, other = ends
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += one.send(b"x" * 65_536)
    assert in_flight.in_flight()
    comes(other, sent)
    assert not in_flight.in_flight()


def test_an_end_that_is_being_closed_may_be_in_flight(
    ends: tuple[socket.socket, socket.socket], in_flight: Sockets
) -> None:
    one, _ = ends
    one.shutdown(socket.SHUT_WR)
    assert in_flight.in_flight()
    one.close()
    assert in_flight.in_flight()


def test_an_idle_connection_costs_no_moment(run_virtual: RunVirtual, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an hour: the test would take a day."""
    monkeypatch.setattr(outside, "_MOMENT", HOUR)

    async def main() -> None:
        accepted = asyncio.Queue[asyncio.StreamWriter]()
        server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        other_end = await accepted.get()
        for number in range(24):
            await asyncio.sleep(HOUR)
            other_end.write(b"%d\n" % number)
            assert await reader.readline() == b"%d\n" % number
        assert now() == 24 * HOUR
        for end in (writer, other_end):
            end.close()
            await end.wait_closed()
        server.close()

    run_virtual(main())
