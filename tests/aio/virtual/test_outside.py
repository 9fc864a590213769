"""Virtual time notices what goes on outside of the loop: sockets, executor jobs, subprocesses, threads, signals.

The clock must not move before what is under way out there has come in. An hour's time-out is pending in each of these
tests; where it fired, the clock would be an hour on.
"""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from abeyant import aio
from abeyant.aio.virtual.threads import has_job
from aio.virtual.loops import HOUR, LOOPS, RunReal, RunVirtual, now

LATER = 0.2  # real seconds: longer than any grace, so only what is known to be under way is waited for


def slow(result: str, delay: float = LATER) -> str:
    time.sleep(delay)
    return result


@contextlib.contextmanager
def in_thread(function: Callable[..., object], *args: object) -> Iterator[None]:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    try:
        yield
    finally:
        thread.join()


# Executor jobs


def test_an_executor_job_comes_before_the_clock_moves(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(HOUR):
            assert await asyncio.to_thread(slow, "thread") == "thread"
            assert await loop.run_in_executor(None, slow, "default") == "default"
            with concurrent.futures.ThreadPoolExecutor() as pool:
                assert await loop.run_in_executor(pool, slow, "own pool") == "own pool"
        assert now() == 0.0
        await asyncio.sleep(HOUR)  # idle workers do not keep the clock from moving
        assert now() == HOUR

    run_virtual(main())


def test_a_job_given_to_a_pool_directly_is_noticed(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            jobs = [pool.submit(slow, "direct", 0.1), pool.submit(slow, "behind it", 0.1)]
            async with asyncio.timeout(HOUR):
                assert await asyncio.wrap_future(jobs[1]) == "behind it"
        assert now() == 0.0

    run_virtual(main())


def test_a_worker_that_was_idle_before_is_watched_and_one_with_work_of_its_own_is_not(run_virtual: RunVirtual) -> None:
    async def main(pool: concurrent.futures.Executor) -> None:
        async with asyncio.timeout(HOUR):
            assert await asyncio.wrap_future(pool.submit(slow, "direct")) == "direct"
        assert now() == 0.0
        await asyncio.sleep(HOUR)

    def hold() -> None:
        started.set()
        stop.wait()

    workers, started, stop = list[threading.Thread](), threading.Event(), threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as idle, concurrent.futures.ThreadPoolExecutor(1) as busy:
        idle.submit(lambda: workers.append(threading.current_thread())).result()
        busy.submit(hold)
        assert started.wait(60)
        while has_job(workers[0]):  # its job is done before the worker knows
            time.sleep(0.001)
        try:
            run_virtual(main(idle), aio.VirtualClock(patience=60))
        finally:
            stop.set()


def test_a_job_in_another_process_is_waited_for(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            async with asyncio.timeout(HOUR):
                assert await loop.run_in_executor(pool, slow, "process") == "process"
        assert now() == 0.0

    run_virtual(main())


def test_a_job_whose_awaiter_gave_up_is_waited_for_too(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        ended = threading.Event()

        def job() -> None:
            time.sleep(LATER)
            ended.set()

        task = asyncio.create_task(asyncio.to_thread(job))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(HOUR)
        assert ended.is_set()

    run_virtual(main())


def test_the_executors_shutdown_is_waited_for(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(None, slow, "late")
        job.cancel()
        async with asyncio.timeout(HOUR):
            await loop.shutdown_default_executor()
        assert now() == 0.0

    run_virtual(main())


def test_a_name_is_resolved_in_real_time(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        async with asyncio.timeout(HOUR):
            assert await asyncio.get_running_loop().getaddrinfo("localhost", 80)
        assert now() == 0.0

    run_virtual(main())


# Subprocesses


@pytest.mark.parametrize("stdout", [None, asyncio.subprocess.PIPE])
def test_a_subprocess_is_waited_for(run_virtual: RunVirtual, stdout: int | None) -> None:
    async def main() -> None:
        code = f"import time; time.sleep({LATER}); raise SystemExit(7)"
        async with asyncio.timeout(HOUR):
            process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", code, stdout=stdout)
            assert await process.wait() == 7
            process = await asyncio.create_subprocess_shell("read line; exit $line", stdin=asyncio.subprocess.PIPE)
            await process.communicate(b"8\n")
            assert process.returncode == 8
        assert now() == 0.0
        await asyncio.sleep(HOUR)
        assert now() == HOUR

    run_virtual(main())


# Sockets


def test_an_echo_on_the_same_loop_comes_before_the_timeout(run_virtual: RunVirtual) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while line := await reader.readline():
                if line == b"slowly\n":
                    await asyncio.sleep(60)
                writer.write(line)
                await writer.drain()

    async def main() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(host, port)
        async with server, asyncio.timeout(HOUR):
            for number in range(100):
                writer.write(b"%d\n" % number)
                assert await reader.readline() == b"%d\n" % number
            assert now() == 0.0
            writer.write(b"slowly\n")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readline(), 30)
            assert (await reader.readline(), now()) == (b"slowly\n", 60.0)
            writer.close()
            await writer.wait_closed()
            await asyncio.sleep(1)  # the server's side notices

    run_virtual(main())


def test_an_echo_from_a_thread_comes_before_the_timeout(run_virtual: RunVirtual) -> None:
    def echo(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(100):
                time.sleep(0.01)
                connection.sendall(data)

    async def main(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(10):
            async with asyncio.timeout(HOUR):
                writer.write(b"%d\n" % number)
                assert await reader.readline() == b"%d\n" % number
        assert now() == 0.0
        await asyncio.sleep(HOUR)
        assert now() == HOUR
        writer.close()
        await writer.wait_closed()

    # A busy machine may well keep the echo's thread waiting for a while.
    clock = aio.VirtualClock(io_grace=1)
    with socket.create_server(("127.0.0.1", 0)) as listener, in_thread(echo, listener):
        run_virtual(main(listener.getsockname()[1]), clock)


def test_a_silent_socket_holds_the_clock_up_for_the_grace_only(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.get_running_loop().sock_recv(ours, 1), HOUR)
            assert time.monotonic() - began >= 0.15
            assert now() == HOUR

    run_virtual(main(), aio.VirtualClock(io_grace=0.15))


def test_sockets_both_of_whose_ends_are_on_the_loop_need_no_grace(run_virtual: RunVirtual) -> None:
    """However long the grace: the test would take an hour."""

    async def main() -> None:
        accepted = asyncio.Queue[asyncio.StreamWriter]()
        server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        other_end = await accepted.get()
        for _ in range(20):
            await asyncio.sleep(HOUR)
        assert now() == 20 * HOUR
        writer.close()
        other_end.close()
        server.close()

    run_virtual(main(), aio.VirtualClock(io_grace=HOUR))


@pytest.mark.parametrize("clients", [2, 8])
def test_connections_beyond_the_backlog_are_waited_for(run_virtual: RunVirtual, clients: int) -> None:
    """The kernel drops what a full backlog cannot take, and tries again: to connect, or to send what was written."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def ask(address: tuple[str, int]) -> bytes:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"hello\n")
        with contextlib.closing(writer):
            return await reader.readline()

    async def main() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0, backlog=1)
        async with server, asyncio.timeout(HOUR):
            answers = await asyncio.gather(*(ask(server.sockets[0].getsockname()) for _ in range(clients)))
        assert (set(answers), now()) == ({b"hello\n"}, 0.0)

    run_virtual(main())


@pytest.mark.slow  # sleeps
def test_a_server_elsewhere_with_a_full_backlog_is_given_the_time_to_take_the_connection(
    run_virtual: RunVirtual,
) -> None:
    def serve(listener: socket.socket) -> None:
        time.sleep(0.5)
        for _ in range(4):
            listener.accept()[0].close()

    async def main(address: tuple[str, int]) -> None:
        async with asyncio.timeout(HOUR):
            for _ in range(4):
                _, writer = await asyncio.open_connection(*address)
                writer.close()
        assert now() == 0.0

    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, in_thread(serve, listener):
        run_virtual(main(listener.getsockname()))


@pytest.mark.slow  # sleeps
def test_a_server_that_never_takes_a_connection_is_given_up_in_virtual_time(run_virtual: RunVirtual) -> None:
    async def main(address: tuple[str, int]) -> None:
        async def tick() -> None:
            while True:
                await asyncio.sleep(0.1)

        async def connect(stack: contextlib.ExitStack) -> None:
            for _ in range(10):
                _, writer = await asyncio.open_connection(*address)
                stack.callback(writer.close)

        ticker = asyncio.create_task(tick())
        with contextlib.ExitStack() as stack, pytest.raises(TimeoutError):
            await asyncio.wait_for(connect(stack), 60)
        assert now() == 60.0
        ticker.cancel()

    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        run_virtual(main(listener.getsockname()), aio.VirtualClock(io_grace=0.001))


def test_a_reader_on_a_pipe_is_noticed(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        loop, (ours, theirs), ready = asyncio.get_running_loop(), os.pipe(), asyncio.Event()
        loop.add_reader(ours, ready.set)

        def write() -> None:
            time.sleep(0.02)
            os.write(theirs, b"x")

        with in_thread(write):
            await asyncio.wait_for(ready.wait(), HOUR)
        loop.remove_reader(ours)
        os.close(ours)
        os.close(theirs)
        assert now() == 0.0

    run_virtual(main(), aio.VirtualClock(io_grace=5))


# Threads and signals


def test_a_thread_that_calls_in_is_waited_for(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        loop, called = asyncio.get_running_loop(), asyncio.Event()

        def call_in() -> None:
            time.sleep(0.02)
            loop.call_soon_threadsafe(called.set)

        with in_thread(call_in):
            await asyncio.wait_for(called.wait(), HOUR)
        assert now() == 0.0
        await asyncio.sleep(HOUR)
        assert now() == HOUR

    run_virtual(main(), aio.VirtualClock(io_grace=5))


def test_the_main_thread_may_talk_to_a_loop_in_another(run_virtual: RunVirtual) -> None:
    running, loops, stopped = threading.Event(), [], []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        stop = asyncio.Event()
        stopped.append(stop)
        running.set()
        await stop.wait()

    async def sleep() -> float:
        await asyncio.sleep(HOUR)
        return now()

    with in_thread(run_virtual, main()):
        assert running.wait(60)
        time.sleep(0.05)
        assert asyncio.run_coroutine_threadsafe(sleep(), loops[0]).result(60) == HOUR
        loops[0].call_soon_threadsafe(stopped[0].set)


def test_threads_that_were_there_before_do_not_hold_the_clock_up(run_virtual: RunVirtual) -> None:
    """Those of a test runner, say. However long the grace: the test would take an hour."""
    stop = threading.Event()

    async def main() -> None:
        await asyncio.sleep(HOUR)

    with in_thread(stop.wait):
        try:
            run_virtual(main(), aio.VirtualClock(io_grace=HOUR))
        finally:
            stop.set()


def test_a_signal_comes_before_the_clock_moves(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        loop, got = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, got.set)
        loop.call_soon(os.kill, os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(got.wait(), HOUR)
        assert now() == 0.0
        loop.remove_signal_handler(signal.SIGUSR1)

    run_virtual(main())


@contextlib.contextmanager
def alarm_in(seconds: float, handler: Callable[..., object]) -> Iterator[None]:
    """A handler of the Python kind, `signal.signal`, and one signal for it after `seconds` of real time."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("threadsafe", [True, False])
def test_a_handler_of_signal_signal_is_waited_for(run_virtual: RunVirtual, threadsafe: bool) -> None:
    async def main() -> None:
        loop, got = asyncio.get_running_loop(), asyncio.Event()
        handle = (lambda *_: loop.call_soon_threadsafe(got.set)) if threadsafe else (lambda *_: got.set())
        with alarm_in(0.02, handle):
            await got.wait()
        assert now() == 0.0

    run_virtual(main())


def test_a_signal_handler_that_stood_before_is_named_and_not_waited_for(run_virtual: RunVirtual) -> None:
    """A test runner's, say, for its time-outs. Its hour of patience would be the test's."""

    async def main() -> None:
        await asyncio.Event().wait()

    with (
        alarm_in(HOUR, print),
        pytest.raises(aio.DeadlockError, match=r"nothing open to the outside \(the handler of SIGALRM was set before"),
    ):
        run_virtual(main(), aio.VirtualClock(patience=HOUR))


def test_a_signal_without_a_name_is_told_by_its_number(run_virtual: RunVirtual) -> None:
    number = signal.SIGRTMIN + 3

    async def main() -> None:
        asyncio.get_running_loop().add_signal_handler(number, print)
        await asyncio.Event().wait()

    with pytest.raises(aio.DeadlockError, match=f"while waiting for a handler of signal {number}"):
        run_virtual(main(), aio.VirtualClock(patience=0.05))


def test_neither_pythons_ctrl_c_nor_the_runners_is_waited_for(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # the runner has put its own there
        await asyncio.Event().wait()

    with pytest.raises(aio.DeadlockError, match=r"nothing open to the outside\. 1 task"):
        run_virtual(main(), aio.VirtualClock(patience=HOUR))


# Other people's threads


def test_a_job_in_anyios_threads_is_waited_for(loop_name: str) -> None:
    anyio = pytest.importorskip("anyio", reason="anyio is not installed")

    async def main() -> None:
        async with aio.virtual_time() as clock:
            began = clock.time()
            with anyio.fail_after(HOUR):
                assert await anyio.to_thread.run_sync(slow, "anyio") == "anyio"
            assert clock.time() == began
            await anyio.sleep(HOUR)
            assert clock.time() == began + HOUR

    anyio.run(main, backend_options={"loop_factory": LOOPS[loop_name]})


def test_leaving_while_a_job_runs_does_not_lose_it(run: RunReal) -> None:
    async def main() -> None:
        async with aio.virtual_time():
            job = asyncio.create_task(asyncio.to_thread(slow, "done"))
            await asyncio.sleep(0)
        assert await job == "done"

    run(main())
