"""Virtual time tells when nothing can run any more, and what every task waits for, rather than hanging."""

import asyncio
import contextlib
import pickle
import socket
import time
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import pytest

from abeyant import aio
from aio.virtual.loops import HOUR, Main, RunReal, RunVirtual


def deadlock(run_virtual: RunVirtual, main: Main[object], clock: aio.VirtualClock | None = None) -> aio.DeadlockError:
    with pytest.raises(aio.DeadlockError) as caught:
        run_virtual(main, clock)
    return caught.value


def test_it_is_raised_at_the_time_at_which_nothing_more_could_run(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        await asyncio.sleep(HOUR)
        await asyncio.Event().wait()

    error = deadlock(run_virtual, main())
    assert error.reason == (
        "nothing can run any more at 3600 s: no callback is ready, no timer pending, nothing open to the outside"
    )
    assert str(error).startswith(f"{error.reason}. 1 task waits:\nTask-")


@pytest.mark.parametrize("options", [{"autojump": False}, {"limit": 3000}])
def test_it_names_the_deadline_itself(run_virtual: RunVirtual, options: dict[str, Any]) -> None:
    async def main() -> None:
        aio.Timer().call_later(3600.375, print)
        asyncio.get_running_loop().call_later(3600.25, print)
        await asyncio.sleep(3600.5)

    assert "at 3600.25 s" in deadlock(run_virtual, main(), aio.VirtualClock(**options)).reason


def test_each_task_is_told_with_its_place_and_what_it_waits_for(run_virtual: RunVirtual) -> None:
    class Store:
        async def take(self, queue: asyncio.Queue[int]) -> int:
            return await queue.get()  # here

    async def locked(lock: asyncio.Lock) -> AsyncIterator[int]:
        async with lock:  # here
            yield 1

    async def read_all(lock: asyncio.Lock) -> None:
        async for _ in locked(lock):
            pass

    async def bare() -> None:
        await asyncio.get_running_loop().create_future()  # here

    async def main() -> None:
        queue, lock = asyncio.Queue[int](), asyncio.Lock()
        await lock.acquire()
        taker = asyncio.create_task(Store().take(queue), name="taker")
        locker = asyncio.create_task(read_all(lock), name="locker")
        other = asyncio.create_task(bare(), name="bare")
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.wait_for(taker, None), name="waiter")
            group.create_task(asyncio.wait([locker, taker]), name="several")
            await asyncio.gather(taker, locker, other)  # here

    error = deadlock(run_virtual, main())
    told = {waiting.task: waiting for waiting in error.waiting}
    assert error.waiting[0].coroutine.endswith("main")  # who entered is first, the others follow by name
    assert [waiting.task for waiting in error.waiting[1:]] == ["bare", "locker", "several", "taker", "waiter"]
    assert str(error).count("\n  at ") == 6

    with open(__file__) as source:
        lines = source.read().splitlines()
    for waiting in (error.waiting[0], told["taker"], told["locker"], told["bare"]):
        path, number = waiting.place.rsplit(":", 1)
        assert path.endswith("tests/aio/virtual/test_deadlock.py")
        assert lines[int(number) - 1].strip() == waiting.source
        assert waiting.source.endswith("# here")

    assert told["taker"].coroutine.endswith("Store.take")
    assert told["taker"].awaits.startswith("Queue.get of <Queue at ")
    assert told["locker"].coroutine.endswith("read_all")
    assert told["locker"].awaits.startswith("Lock.__aenter__ of <asyncio.locks.Lock object at ")
    assert told["bare"].awaits.startswith("<Future pending")
    assert error.waiting[0].on_tasks == ("bare", "locker", "taker")
    assert told["waiter"].on_tasks == ("taker",)
    assert told["several"].on_tasks == ("locker", "taker")
    assert told["taker"].on_tasks == ()


def test_tasks_that_wait_for_one_another_show_the_circle(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        tasks = list[asyncio.Task[object]]()

        async def join(number: int) -> object:
            return await tasks[number]

        tasks += [asyncio.create_task(join(1), name="a"), asyncio.create_task(join(0), name="b")]
        await asyncio.sleep(HOUR)
        async with asyncio.TaskGroup() as group:
            for number in (9, 10):
                group.create_task(asyncio.Event().wait(), name=f"Task-x{number}")

    error = deadlock(run_virtual, main())
    assert [(waiting.task, waiting.on_tasks) for waiting in error.waiting[1:]] == [
        ("Task-x9", ()),
        ("Task-x10", ()),
        ("a", ("b",)),
        ("b", ("a",)),
    ]
    assert error.waiting[0].on_tasks == ("Task-x9", "Task-x10")


def test_a_repr_that_raises_hides_nothing(run_virtual: RunVirtual) -> None:
    class Broken(asyncio.Event):
        def __repr__(self) -> NoReturn:
            raise LookupError("no repr")

    error = deadlock(run_virtual, Broken().wait())
    assert "Broken, whose repr raised LookupError('no repr')>" in error.waiting[0].awaits


def test_many_tasks_are_counted_not_all_shown(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(asyncio.Event().wait())

    error = deadlock(run_virtual, main())
    assert len(error.waiting) == 201
    assert str(error).endswith("\nand 151 tasks more")


def test_it_goes_from_one_process_to_another(run_virtual: RunVirtual) -> None:
    error = deadlock(run_virtual, asyncio.Event().wait())
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.waiting) == (str(error), error.waiting)


# Who is told


def test_the_task_that_entered_is_told_at_the_end_of_its_block(run: RunReal) -> None:
    async def main() -> None:
        cleaned = []

        async def block() -> None:
            async with aio.virtual_time():
                try:
                    async with asyncio.timeout(None), asyncio.TaskGroup() as group:
                        group.create_task(asyncio.Event().wait())
                finally:
                    await asyncio.sleep(HOUR)  # in virtual time still
                    cleaned.append(True)

        with pytest.raises(aio.DeadlockError, match="nothing can run any more"):
            await block()
        assert cleaned == [True]
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0.001)

    run(main())


def test_an_error_on_the_way_out_is_kept_as_the_cause(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("on the way out")

    assert isinstance(deadlock(run_virtual, main()).__cause__, LookupError)


def test_a_task_that_does_not_hear_cannot_hide_it(run_virtual: RunVirtual) -> None:
    async def once() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def never() -> None:
        for _ in range(100):
            await once()
            heard.append(True)

    heard = list[bool]()
    deadlock(run_virtual, once())
    deadlock(run_virtual, never())
    assert len(heard) < 10


def test_it_comes_out_of_the_run_where_no_task_is_left_to_be_told(run: RunReal) -> None:
    clock = aio.virtual_time()

    async def main() -> None:
        await asyncio.create_task(clock.__aenter__())
        await asyncio.Event().wait()

    with pytest.raises(aio.DeadlockError):
        run(main())


def test_it_comes_out_of_the_run_when_the_clean_up_hangs(run_virtual: RunVirtual) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(stubborn(), name="stubborn")
        await asyncio.sleep(1)
        return task

    assert [waiting.task for waiting in deadlock(run_virtual, main()).waiting] == ["stubborn"]


# What is none, and what is one after a while


def test_a_timer_that_never_ends_is_no_timer(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        try:
            await asyncio.sleep(float("inf"))
        finally:
            assert asyncio.get_running_loop().time() == 0.0

    assert deadlock(run_virtual, main()).waiting[0].awaits == "sleep(inf)"


def test_a_clock_by_hand_that_nobody_moves(run_virtual: RunVirtual) -> None:
    error = deadlock(run_virtual, asyncio.sleep(5), aio.VirtualClock(autojump=False))
    assert error.reason == (
        "the clock stands still at 0 s: a timer is due at 5 s, but autojump is off and no task is in "
        "`await clock.advance()`"
    )


def test_a_ticker_that_runs_for_ever_comes_to_the_limit(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        async def tick() -> None:
            while True:
                await asyncio.sleep(1)

        ticker = asyncio.create_task(tick(), name="ticker")
        await asyncio.Event().wait()
        ticker.cancel()

    error = deadlock(run_virtual, main(), aio.VirtualClock(start=50, limit=100.5))
    assert error.reason == "the clock has reached its limit: at 150 s the next deadline is at 151 s"
    assert [waiting.task for waiting in error.waiting][1:] == ["ticker"]


def test_a_socket_that_stays_silent_is_told_when_patience_ends(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
        _, port = server.sockets[0].getsockname()
        with socket.create_connection(("127.0.0.1", port)):
            async with server:
                try:
                    await server.serve_forever()
                finally:
                    writers[0].close()

    writers = list[asyncio.StreamWriter]()
    began = time.monotonic()
    error = deadlock(run_virtual, main(), aio.VirtualClock(patience=0.1))
    assert time.monotonic() - began >= 0.1
    assert (
        "nothing happened for 0.1 s of real time, the clock's patience, at 0 s of virtual time, while waiting for the "
        in error.reason
    )
    assert "the socket 127.0.0.1:" in error.reason
    assert "the listening socket 127.0.0.1:" in error.reason
    assert error.waiting[0].awaits.startswith("Server.serve_forever of <Server sockets=")


def test_a_job_that_never_ends_is_told_when_patience_ends(run_virtual: RunVirtual) -> None:
    def job() -> None:
        time.sleep(0.5)

    async def main() -> None:
        await asyncio.wait_for(asyncio.to_thread(job), HOUR)

    error = deadlock(run_virtual, main(), aio.VirtualClock(patience=0.1))
    assert "of virtual time, while waiting for the executor job " in error.reason
    assert "test_a_job_that_never_ends_is_told_when_patience_ends.<locals>.job" in error.reason


def test_sockets_whose_both_ends_wait_are_a_deadlock_at_once(run_virtual: RunVirtual) -> None:
    """However long the patience: the test would take an hour."""

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await asyncio.sleep(1)
        server.close()
        with contextlib.closing(writer):
            await reader.read()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.read()

    error = deadlock(run_virtual, main(), aio.VirtualClock(patience=HOUR))
    assert [waiting.awaits.split(" of ")[0] for waiting in error.waiting] == ["StreamReader.read"] * 2
