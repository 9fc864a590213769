"""`call_later` and `call_at` on our loops: the timers' laws, seen through asyncio's interface."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import gc
import math
import random
import socket
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from abeyant import aio
from aio.loops import OURS, LoopFactory, run


@pytest.fixture(params=OURS)
def factory(request: pytest.FixtureRequest) -> LoopFactory:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return OURS[request.param]


@pytest.fixture
def loop(factory: LoopFactory) -> Iterator[asyncio.AbstractEventLoop]:
    loop = factory()
    yield loop
    loop.close()


def turn(loop: asyncio.AbstractEventLoop, seconds: float = 0.0) -> None:
    """Run the loop for so long."""
    loop.run_until_complete(asyncio.sleep(seconds))


class Thing:
    """Can be referred to weakly, and called."""

    def __call__(self, *_: object) -> None:
        pass


def test_t1_no_callback_is_called_before_its_deadline(factory: LoopFactory) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        seeded = random.Random(1)
        left = 400
        done = loop.create_future()

        def check(deadline: float, monotonic: float) -> None:
            nonlocal left
            early.extend(by for by in (deadline - loop.time(), monotonic - time.monotonic()) if by > 0)
            left -= 1
            if not left:
                done.set_result(None)

        early: list[float] = []
        for number in range(left):
            delay = seeded.choice([0.0, 1e-7, 5e-4, seeded.uniform(0, 0.02), seeded.uniform(0, 0.2)])
            if number % 2:
                deadline = loop.time() + delay
                loop.call_at(deadline, check, deadline, deadline)
            else:
                loop.call_later(delay, check, loop.time() + delay, time.monotonic() + delay)
            if not number % 50:
                await asyncio.sleep(0.001)
        await done
        assert early == []

    run(main(), factory)


def test_t2_a_timer_is_not_later_for_the_callback_that_started_it_taking_long(factory: LoopFactory) -> None:
    async def main() -> float:
        await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_later(0.5, done.set_result, None)
        time.sleep(0.55)
        blocked_until = time.monotonic()
        await done
        return time.monotonic() - blocked_until

    assert run(main(), factory) < 0.4


def test_t6_in_order_of_deadlines_and_at_one_deadline_of_adding(loop: asyncio.AbstractEventLoop) -> None:
    ran: list[tuple[float, int]] = []
    deadlines = [round(random.Random(2).uniform(0, 0.02), 3) for _ in range(300)]
    base = loop.time()
    for number, deadline in enumerate(deadlines):
        loop.call_at(base + deadline, lambda *entry: ran.append(entry), deadline, number)
    turn(loop, 0.03)
    assert ran == sorted((deadline, number) for number, deadline in enumerate(deadlines))


def test_t3_a_cancelled_callback_is_not_called_even_if_it_was_due(loop: asyncio.AbstractEventLoop) -> None:
    ran: list[str] = []
    base = loop.time() + 0.01

    def first() -> None:
        ran.append("first")
        second.cancel()

    loop.call_at(base, first)
    second = loop.call_at(base, ran.append, "second")
    third = loop.call_at(base + 0.005, ran.append, "third")
    third.cancel()
    third.cancel()
    turn(loop, 0.03)
    assert ran == ["first"]
    assert second.cancelled()
    assert third.cancelled()


def test_t4_what_is_cancelled_is_freed_at_once(loop: asyncio.AbstractEventLoop) -> None:
    gc.disable()  # nothing here may need the collector
    try:
        for deadline in (30.0, 0.0):
            callback, argument = Thing(), Thing()
            gone = [weakref.ref(callback), weakref.ref(argument)]
            handle = loop.call_later(deadline, callback, argument)
            handle.cancel()
            del callback, argument
            assert [reference() for reference in gone] == [None, None]
            handle_gone = weakref.ref(handle)
            del handle
            assert handle_gone() is None
    finally:
        gc.enable()


def test_what_has_been_called_is_freed(loop: asyncio.AbstractEventLoop) -> None:
    callback = Thing()
    handle = weakref.ref(loop.call_later(0.001, callback))
    assert handle() is not None
    gone = weakref.ref(callback)
    del callback
    turn(loop, 0.01)
    turn(loop)
    assert gone() is None
    assert handle() is None


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_is_collected_with_its_pending_timers(factory: LoopFactory, closed: bool) -> None:
    if not closed and factory is OURS["uvloop"]:
        pytest.skip("uvloop itself keeps an unclosed loop")
    loop = factory()
    thing: Any = Thing()
    thing.handle = loop.call_later(30, thing, thing, loop)  # a cycle through the handle, and through the loop
    turn(loop)
    gone = [weakref.ref(thing), weakref.ref(thing.handle), weakref.ref(loop)]
    if closed:
        loop.close()
    del thing, loop
    gc.collect()
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3


def test_t5_a_past_deadline_is_called_in_the_next_turn_and_not_by_call_at(loop: asyncio.AbstractEventLoop) -> None:
    ran: list[str] = []
    for deadline in (loop.time() - 5, loop.time(), -1e300, -math.inf):
        loop.call_at(deadline, ran.append, "past")
    loop.call_later(-1, ran.append, "past")
    loop.call_later(0, ran.append, "past")
    assert ran == []
    turn(loop, 0.005)
    assert ran == ["past"] * 6


def test_a_deadline_that_never_comes_can_be_cancelled(loop: asyncio.AbstractEventLoop) -> None:
    handles = [loop.call_at(deadline, pytest.fail) for deadline in (math.inf, 1.7e308, 1e15, loop.time() + 1e10)]
    turn(loop, 0.002)
    for handle in handles:
        handle.cancel()


def test_t8_what_a_callback_raises_goes_to_the_exception_handler(loop: asyncio.AbstractEventLoop) -> None:
    failures: list[dict[str, Any]] = []
    ran: list[str] = []
    error = OSError("broken")

    def fail(*_: object) -> None:
        raise error

    loop.set_exception_handler(lambda _, failure: failures.append(failure))
    handle = loop.call_later(0.001, fail, 1)
    loop.call_later(0.001, ran.append, "the next one")
    turn(loop, 0.01)
    assert ran == ["the next one"]
    (failure,) = failures
    assert failure["exception"] is error
    assert failure["handle"] is handle
    assert failure["message"].startswith("Exception in callback test_t8_what_a_callback_raises")
    assert "source_traceback" not in failure


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_ends_the_run_and_loses_no_timer(
    loop: asyncio.AbstractEventLoop, kind: type[BaseException]
) -> None:
    ran: list[int] = []

    def interrupt() -> None:
        raise kind

    base = loop.time() + 0.001
    loop.call_at(base, ran.append, 1)
    loop.call_at(base, interrupt)
    loop.call_at(base, ran.append, 2)
    with pytest.raises(kind):
        loop.run_forever()
    turn(loop, 0.01)
    assert ran == [1, 2]


def test_context_variables_are_those_of_the_call(loop: asyncio.AbstractEventLoop) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    seen: list[object] = []
    mine = contextvars.copy_context()
    mine.run(variable.set, "mine")

    class Other:
        """Not a Context: whatever has `run` will do, as in asyncio."""

        def run(self, callback: Any, *args: Any) -> None:
            seen.append(("other", callback, args))

    def look() -> None:
        seen.append(variable.get())
        variable.set("changed by the callback")

    def start() -> None:
        variable.set("when it was started")
        loop.call_later(0.001, look)
        loop.call_later(0.001, look)
        variable.set("later")

    contextvars.copy_context().run(start)
    loop.call_later(0.002, look, context=mine)
    loop.call_later(0.003, look, context=Other())  # type: ignore[arg-type]
    turn(loop, 0.02)
    assert seen == ["when it was started", "when it was started", "mine", ("other", look, ())]
    assert variable.get() == "unset"
    assert mine[variable] == "changed by the callback"


@pytest.mark.parametrize(
    ("method", "value", "error"),
    [
        ("call_later", None, TypeError),
        ("call_at", None, TypeError),
        ("call_later", "1", TypeError),
        ("call_at", "1", TypeError),
        ("call_later", math.nan, ValueError),
        ("call_at", math.nan, ValueError),
    ],
)
def test_what_is_no_time_is_refused(
    loop: asyncio.AbstractEventLoop, method: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        getattr(loop, method)(value, pytest.fail)
    turn(loop, 0.002)


def test_a_closed_loop_takes_no_timer_and_its_handles_are_harmless(factory: LoopFactory) -> None:
    loop = factory()
    callback = Thing()
    handle = loop.call_later(30, callback)
    loop.close()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, pytest.fail)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_at(1, pytest.fail)
    assert "Thing" in repr(handle)
    handle.cancel()
    assert handle.cancelled()


def test_debug_mode_refuses_other_threads(factory: LoopFactory) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(RuntimeError, match="Non-thread-safe"):
            await asyncio.to_thread(lambda: loop.call_later(1, pytest.fail))

    run(main(), factory, debug=True)


def test_debug_mode_tells_where_a_timer_was_made_and_warns_of_a_slow_one(
    factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        failure = loop.create_future()
        loop.set_exception_handler(lambda _, failed: failure.set_result(failed))
        loop.slow_callback_duration = 0.05
        loop.call_later(0, time.sleep, 0.06)
        loop.call_later(0, time.sleep, 0.0)
        loop.call_later(0, divmod, 1, 0)
        handle = loop.call_later(30, divmod, 1, 0)
        assert repr(handle).endswith(f"created at {__file__}:{handle._source_traceback[-1].lineno}>")  # type: ignore[attr-defined]
        handle.cancel()
        assert "divmod(1, 0) created at" in repr(handle)
        return await failure  # type: ignore[no-any-return]

    failure = run(main(), factory, debug=True)
    assert failure["source_traceback"][-1].name == "main"
    assert failure["source_traceback"][-1].filename == __file__
    slow = [record.getMessage() for record in caplog.records if "Executing <TimerHandle" in record.getMessage()]
    assert [text for text in slow if "sleep(0.06)" in text or "_turn" not in text] == slow[:1]
    assert "sleep(0.06)" in slow[0]


def test_handles_are_made_by_loops_only(loop: asyncio.AbstractEventLoop) -> None:
    handle = loop.call_later(30, pytest.fail)
    with pytest.raises(TypeError, match="call_later"):
        type(handle)()  # type: ignore[call-arg]


def test_a_storm_of_timers_interleaves_with_sockets(factory: LoopFactory) -> None:
    async def main() -> tuple[int, list[int]]:
        loop = asyncio.get_running_loop()
        ran = 0
        between = [0]

        def count() -> None:
            nonlocal ran
            ran += 1
            between[-1] += 1

        def read() -> None:
            between.append(0)
            writer.send(reader.recv(1))

        reader, writer = socket.socketpair()
        with reader, writer:
            reader.setblocking(False)
            loop.add_reader(reader, read)
            writer.send(b"x")
            now = loop.time()
            for _ in range(20_000):
                loop.call_at(now + 0.01, count)
            time.sleep(0.02)
            while ran < 20_000:
                await asyncio.sleep(0)
            loop.remove_reader(reader)
        return ran, between

    ran, between = run(main(), factory)
    assert ran == 20_000
    assert max(between) <= 2 * 512  # what one turn hands out, and a turn that found the socket not yet ready
    assert len(between) > 20


def test_asyncios_own_time_outs_ride_the_wheel(factory: LoopFactory) -> None:
    async def main() -> None:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(30)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(30), 0.01)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + 0.01):
                await asyncio.sleep(30)
        await asyncio.sleep(0.0005)
        assert 0.0305 <= time.monotonic() - began < 15

    run(main(), factory)


def test_another_thread_wakes_a_loop_that_waits_for_a_timer(factory: LoopFactory) -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(30, pytest.fail)
        began = time.monotonic()
        woken = loop.create_future()
        await asyncio.to_thread(lambda: loop.call_soon_threadsafe(woken.set_result, None))
        await woken
        return time.monotonic() - began

    assert run(main(), factory) < 15


def test_t6_a_deadline_that_was_past_when_added_runs_before_one_of_a_later_tick() -> None:
    """A tick is 2**-20 s. One whose tick has begun, and whose deadline has not come, waits aside for it."""
    tick = 2.0**-20
    now = [1000.0]
    loop = aio.EventLoop()
    loop.time = lambda: now[0]  # type: ignore[method-assign]
    ran: list[str] = []

    def late_in_the_turn() -> None:
        now[0] = 1000.0 + 0.75 * tick
        loop.call_at(1000.0 - 5 * tick, ran.append, "past")
        loop.call_at(1000.0 + 0.25 * tick, ran.append, "same tick")
        loop.call_soon(loop.call_soon, loop.stop)

    loop.call_at(1000.0 + 0.5 * tick, ran.append, "near")
    loop.call_at(1000.0, late_in_the_turn)
    loop.run_forever()
    loop.close()
    assert ran == ["past", "near", "same tick"]


@pytest.mark.parametrize("make_loop", [asyncio.SelectorEventLoop, aio.EventLoop])
def test_a_copy_of_a_handle_is_as_asyncios(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        ran: list[int] = []
        handle = asyncio.get_running_loop().call_later(0.01, ran.append, 1)
        copied = copy.copy(handle)
        assert (copied == handle, copied is handle, copied.when()) == (True, False, handle.when())
        assert isinstance(copied, asyncio.TimerHandle)
        copied._run()
        assert ran == [1]
        copied.cancel()
        assert (copied.cancelled(), handle.cancelled()) == (True, False)
        await asyncio.sleep(0.05)
        assert ran == [1, 1]

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
