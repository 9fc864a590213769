"""The network in memory behaves as TCP does, and killed processes as the system's do."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest

from abeyant import simulation


def run(main: Callable[[], Any], seed: int = 1, **options: Any) -> Any:
    result = simulation.run(main, seed=seed, any_hashes=True, **options)
    if result.error is not None:
        raise result.error
    return result.value


@pytest.mark.parametrize("seed", range(5))
def test_bytes_arrive_in_order_and_whole(seed: int) -> None:
    async def main() -> list[int]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while number := await reader.readexactly(4):
                writer.write(number)

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            for number in range(300):
                writer.write(number.to_bytes(4, "big"))
            return [int.from_bytes(await reader.readexactly(4), "big") for _ in range(300)]

    assert run(main, seed) == list(range(300))


def test_a_slow_reader_pauses_the_writer() -> None:
    sent = 0

    async def main() -> int:
        async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            while True:
                writer.write(bytes(100_000))
                await writer.drain()
                sent += 100_000

        async with await asyncio.start_server(flood, "127.0.0.1", 9000):
            reader, _ = await asyncio.open_connection("127.0.0.1", 9000)
            await asyncio.sleep(60)
            stalled = sent
            await reader.readexactly(3_000_000)
            await asyncio.sleep(60)
            return stalled

    assert 0 < run(main) < 1_000_000
    assert 3_000_000 < sent < 4_000_000


def test_the_end_of_a_connection() -> None:
    async def main() -> list[Any]:
        async def one_line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = await reader.readline()
            writer.write(line)
            if line == b"abort\n":
                writer.transport.abort()
            else:
                writer.close()

        seen: list[Any] = []
        async with await asyncio.start_server(one_line, "127.0.0.1", 9000) as server:
            for word in (b"close\n", b"abort\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", 9000)
                writer.write(word)
                try:
                    seen.append(await reader.read())
                except OSError as error:
                    seen.append(type(error))
            server.close()
        try:
            await asyncio.open_connection("127.0.0.1", 9000)
        except ConnectionRefusedError as error:
            seen.append(str(error))
        return seen

    assert run(main) == [
        b"close\n",
        ConnectionResetError,
        "[Errno 111] Connect call failed ('127.0.0.1', 9000)",
    ]


def test_a_port_is_taken_once() -> None:
    async def main() -> None:
        async def none(*_: Any) -> None: ...

        await asyncio.start_server(none, "127.0.0.1", 9000)
        await asyncio.start_server(none, "0.0.0.0", 9001)
        with pytest.raises(OSError, match="address already in use"):
            await asyncio.start_server(none, "localhost", 9000)
        with pytest.raises(OSError, match="address already in use"):
            await asyncio.start_server(none, "0.0.0.0", 9000)
        first = await asyncio.start_server(none, "localhost", 0)
        port = first.sockets[0].getsockname()[1]
        await asyncio.start_server(none, "localhost", port + 1)
        later = await asyncio.start_server(none, "localhost", 0)
        assert later.sockets[0].getsockname()[1] == port + 2

    run(main)


def test_what_a_killed_process_has_sent_arrives_and_nothing_of_it_runs_again() -> None:
    log: list[str] = []

    async def serve() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while line := await reader.readline():
                    writer.write(line)
                    log.append("answered")
                    await asyncio.sleep(1)
            finally:
                log.append("cleaned up")

        try:
            await (await asyncio.start_server(answer, "127.0.0.1", 9000)).serve_forever()
        finally:
            log.append("cleaned up")

    async def main() -> tuple[bytes, list[str]]:
        server = simulation.current().process("server", serve)
        server.start()
        await asyncio.sleep(1)
        reader, writer = await asyncio.open_connection("127.0.0.1", 9000)
        writer.write(b"hello\n")
        while not log:
            await asyncio.sleep(0.0001)
        server.kill()
        answer = await reader.read()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", 9000)
        server.start()
        await asyncio.sleep(5)
        reader, writer = await asyncio.open_connection("127.0.0.1", 9000)
        assert server.starts == 2
        return answer, list(log)

    assert run(main) == (b"hello\n", ["answered"])


def test_a_killed_process_forgets_what_it_waited_for() -> None:
    ticks: list[float] = []

    async def tick(shared: asyncio.Queue[int]) -> None:
        asyncio.get_running_loop().call_later(5, ticks.append, -1.0)
        while True:
            ticks.append(await shared.get())

    async def main() -> None:
        shared: asyncio.Queue[int] = asyncio.Queue()
        process = simulation.current().process("ticker", tick, shared)
        process.start()
        await asyncio.sleep(0.1)
        shared.put_nowait(1)
        await asyncio.sleep(0.1)
        process.kill()
        shared.put_nowait(2)
        await asyncio.sleep(10)
        with pytest.raises(simulation.SimulationError, match="'ticker' was killed"):
            await process.wait()

    run(main)
    assert ticks == [1]


def test_the_error_that_ends_a_process_is_kept() -> None:
    async def fail() -> None:
        raise ValueError("of its own")

    async def main() -> list[str]:
        process = simulation.current().process("failing", fail)
        process.start()
        with pytest.raises(ValueError, match="of its own"):
            await process.wait()
        return [f"{one.name}: {error}" for one, error in simulation.current().failures]

    assert run(main) == ["failing: of its own"]


def test_a_clogged_link_delivers_late_and_in_order() -> None:
    async def main() -> tuple[float, bytes]:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(100):
                writer.write(data)

        async with await asyncio.start_server(echo, "127.0.0.1", 9000):
            reader, writer = await asyncio.open_connection("127.0.0.1", 9000)
            loop = simulation.current()
            loop.network.clog(9000, 7.0)
            writer.write(b"one ")
            writer.write(b"two ")
            answer = await reader.readexactly(8)
            return loop.now, answer

    when, answer = run(main)
    assert answer == b"one two "
    assert 7.0 < when < 8.0


def test_two_orders_are_found_by_seeds() -> None:
    async def main() -> str:
        arrived: list[str] = []

        async def note(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            arrived.append((await reader.readline()).decode())

        async with await asyncio.start_server(note, "127.0.0.1", 9000):
            writers = [(await asyncio.open_connection("127.0.0.1", 9000))[1] for _ in range(2)]
            for writer, word in zip(writers, (b"a\n", b"b\n"), strict=True):
                writer.write(word)
            await asyncio.sleep(1)
        return "".join(arrived).replace("\n", "")

    found = {run(main, seed, latency=simulation.Latency(0.001, 0.1, slowest=0.1)) for seed in range(12)}
    assert found == {"ab", "ba"}


def test_latencies_must_make_sense() -> None:
    with pytest.raises(simulation.SimulationError, match="least <= most <= slowest"):
        simulation.Latency(least=2.0)


def test_aiohttp_takes_part() -> None:
    web = pytest.importorskip("aiohttp.web")
    aiohttp = pytest.importorskip("aiohttp")

    async def serve() -> None:
        numbers = itertools.count(1)

        async def order(request: Any) -> Any:
            return web.json_response({"number": next(numbers), "item": await request.text()})

        app = web.Application()
        app.router.add_post("/orders", order)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "shop", 80).start()
        await asyncio.Event().wait()

    async def main() -> list[Any]:
        simulation.current().process("shop", serve).start()
        await asyncio.sleep(1)
        async with aiohttp.ClientSession() as session:
            answers = []
            for item in ("tea", "milk"):
                async with session.post("http://shop/orders", data=item) as response:
                    answers.append(await response.json())
            return answers

    assert run(main) == [{"number": 1, "item": "tea"}, {"number": 2, "item": "milk"}]


def test_a_process_killed_before_its_first_step_leaves_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: left.append(repr(unraisable.exc_value)))

    async def main() -> int:
        async def program() -> None:
            raise AssertionError("it never runs")

        process = simulation.current().process("program", program)
        for _ in range(2):
            process.start()
            process.kill()
        await asyncio.sleep(1)
        return process.starts

    assert run(main) == 2
    gc.collect()
    assert left == []
