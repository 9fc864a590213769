"""`EventLoop` itself: asyncio's selector loop, turn by turn, and its clock."""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant import aio
from aio.loops import JumpingSelector, virtual_loop


@pytest.fixture
def loop() -> Iterator[aio.EventLoop]:
    loop = aio.EventLoop()
    yield loop
    loop.close()


def turn(loop: asyncio.AbstractEventLoop) -> None:
    """One turn."""
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_it_is_asyncios_selector_loop(loop: aio.EventLoop) -> None:
    assert isinstance(loop, asyncio.SelectorEventLoop)
    assert repr(loop) == "<EventLoop running=False closed=False debug=False>"


def test_it_takes_a_selector() -> None:
    selector = selectors.SelectSelector()
    loop = aio.EventLoop(selector)
    loop.run_until_complete(asyncio.sleep(0.001))
    loop.close()
    with pytest.raises((RuntimeError, KeyError)):
        selector.get_key(0)  # closed with it


def test_a_turn_runs_call_soon_then_timers_and_what_they_add_in_the_next(loop: aio.EventLoop) -> None:
    ran: list[str] = []

    def timer() -> None:
        ran.append("timer")
        loop.call_soon(ran.append, "soon, of the timer")
        loop.call_later(0, ran.append, "timer, of the timer")

    loop.call_later(0, timer)
    loop.call_soon(ran.append, "soon")
    turn(loop)
    assert ran == ["soon", "timer"]
    turn(loop)
    assert ran == ["soon", "timer", "soon, of the timer", "timer, of the timer"]


def test_t10_an_idle_loop_wakes_for_buckets_only() -> None:
    class Counting(selectors.DefaultSelector):
        waits: ClassVar[list[float | None]] = []

        def select(self, timeout: float | None = None) -> Any:
            self.waits.append(timeout)
            return super().select(timeout)

    loop = aio.EventLoop(Counting())
    cancelled = [loop.call_later(0.001 * number, pytest.fail) for number in range(1, 200)]
    for handle in cancelled:
        handle.cancel()
    loop.run_until_complete(asyncio.sleep(0.3))
    loop.close()
    # A bucket for each wheel on the way, and a few turns for the coroutine; the cancelled timers wake nobody.
    assert len(Counting.waits) < 15


def test_a_wait_is_for_a_day_at_most() -> None:
    class Counting(selectors.DefaultSelector):
        waits: ClassVar[list[float | None]] = []

        def select(self, timeout: float | None = None) -> Any:
            self.waits.append(timeout)
            return super().select(0)

    loop = aio.EventLoop(Counting())
    handle = loop.call_later(1e9, pytest.fail)
    loop._run_once()
    handle.cancel()
    loop._run_once()
    loop.close()
    assert Counting.waits == [24 * 3600, None]


def test_pending_timers_can_be_looked_at_where_asyncio_has_its_heap(loop: aio.EventLoop) -> None:
    handles = [loop.call_later(delay, pytest.fail) for delay in (3.0, 1.0, 2.0)]
    assert loop._scheduled == [handles[1], handles[2], handles[0]]
    assert all(handle._scheduled for handle in handles)  # type: ignore[attr-defined]
    handles[1].cancel()
    assert loop._scheduled == [handles[2], handles[0]]
    assert not handles[1]._scheduled  # type: ignore[attr-defined]


@pytest.mark.parametrize("debug", [False, True])
def test_a_handle_looks_and_compares_as_asyncios_does(debug: bool) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def callback(*_: object) -> None:
            pass

        for arguments in ((), (1, "two")):
            ours = loop.call_at(loop.time() + 30, callback, *arguments)
            stock = asyncio.TimerHandle(ours.when(), callback, arguments, loop)
            if debug:
                stock._source_traceback[-1] = ours._source_traceback[-1]  # type: ignore[attr-defined]
            assert repr(ours) == repr(stock)
            assert isinstance(ours, asyncio.TimerHandle)
            assert isinstance(ours, asyncio.Handle)
            assert ours == stock
            assert stock == ours
            assert hash(ours) == hash(stock)
            assert not ours < stock <= ours <= stock
            later = loop.call_at(loop.time() + 31, callback)
            assert ours < later > stock
            assert ours != later >= stock
            for handle in (ours, stock, later):
                handle.cancel()
            assert repr(ours) == repr(stock)
            assert ours.cancelled()
            assert ours == stock

    aio.run(main(), debug=debug)


def test_a_deadline_that_was_given_as_an_int_stays_one(loop: aio.EventLoop) -> None:
    ours, stock = loop.call_at(30, int), asyncio.TimerHandle(30, int, (), loop)
    assert repr(ours) == repr(stock)
    assert type(ours.when()) is int
    assert ours == stock
    assert type(loop.call_at(30.0, int).when()) is float


@pytest.mark.parametrize("debug", [False, True])
def test_a_traceback_keeps_no_handle_alive(debug: bool) -> None:
    """So that a task whose error nobody retrieved is reported as soon as its last step is done."""

    async def fails() -> None:
        raise ValueError

    async def main() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        asyncio.tasks._PyTask(fails())  # type: ignore[attr-defined]  # whose step is a frame in the traceback
        await asyncio.sleep(0)
        assert [type(error) for error in reported] == [ValueError]

    aio.run(main(), debug=debug)


# -- the clock ---------------------------------------------------------------------------------------------------


def test_the_clock_is_the_machines(loop: aio.EventLoop) -> None:
    before, now, after = time.monotonic(), loop.time(), time.monotonic()
    assert before <= now <= after
    handle = loop.call_later(5, pytest.fail)
    assert after + 5 <= handle.when() <= time.monotonic() + 5


@pytest.mark.parametrize("by", ["attribute", "hook"])
def test_a_clock_that_is_put_in_place_is_followed_and_may_lie_before_the_last(loop: aio.EventLoop, by: str) -> None:
    """T7: a wheel's time never goes back, so another clock gets another wheel; deadlines keep their meaning."""
    ran: list[str] = []
    now = 50.0
    real = loop.time()
    loop.call_at(100.0, ran.append, "100")
    loop.call_at(60.0, ran.append, "60, first")
    loop.call_at(real + 1000, ran.append, "far")
    if by == "hook":
        loop._use_clock(lambda: now)
    else:
        loop.time = lambda: now  # type: ignore[method-assign]
    assert loop.time() == 50.0
    assert loop.call_later(10, ran.append, "60, second").when() == 60.0
    turn(loop)
    assert ran == []
    now = math.nextafter(60.0, 0.0)
    turn(loop)
    assert ran == []
    now = 60.0
    turn(loop)
    assert ran == ["60, first", "60, second"]
    if by == "hook":
        loop._use_clock(None)
    else:
        del loop.time
    assert loop.time() >= real
    turn(loop)
    assert ran == ["60, first", "60, second", "100"]  # long past on the machine's clock
    assert [handle.when() for handle in loop._scheduled] == [real + 1000]


def test_a_subclass_may_have_a_clock_of_its_own() -> None:
    class Own(aio.EventLoop):
        def __init__(self) -> None:
            super().__init__()
            self.now = 7.0

        def time(self) -> float:
            return self.now

    loop = Own()
    ran: list[float] = []
    assert loop.call_later(0.3, lambda: ran.append(loop.now)).when() == 7.3
    loop.now = math.nextafter(7.3, 0.0)
    turn(loop)
    assert ran == []
    loop.now = 7.3
    turn(loop)
    assert ran == [7.3]
    loop.close()


def test_a_subclass_may_build_its_clock_on_ours() -> None:
    class Ahead(aio.EventLoop):
        def time(self) -> float:
            return super().time() + 5000.0

    loop = Ahead()
    assert time.monotonic() + 5000 <= loop.time() <= time.monotonic() + 5000 + 60
    ran: list[float] = []
    deadline = loop.call_later(0.001, lambda: ran.append(loop.time())).when()
    loop.run_until_complete(asyncio.sleep(0.002))
    assert ran[0] >= deadline
    loop.close()


def test_a_clock_that_is_put_in_place_of_a_subclasss_own_is_followed() -> None:
    class Own(aio.EventLoop):
        now = 7.0

        def time(self) -> float:
            return self.now

    loop = Own()
    ran: list[str] = []
    loop.call_at(7.5, ran.append, "7.5")
    loop.call_at(3.0, ran.append, "3")
    turn(loop)
    assert ran == ["3"]
    now = 2.0  # before its own
    loop.time = lambda: now  # type: ignore[method-assign]
    loop.call_later(1.5, ran.append, "3.5")
    turn(loop)
    assert ran == ["3"]
    now = 3.5
    turn(loop)
    assert ran == ["3", "3.5"]
    now = 7.5
    turn(loop)
    assert ran == ["3", "3.5", "7.5"]
    loop.close()


@pytest.mark.parametrize("begin", [-3.0, -1e9, 0.0])
def test_a_clock_may_be_below_zero(begin: float) -> None:
    """T1, T2, with nothing else than the timers to wake the loop, and through zero."""
    loop = virtual_loop(lambda selector: _started(selector, begin))
    delays = [0.1, 1.0, 2.5, 1.0, 4.5]

    async def main() -> list[float]:
        times = []
        for delay in delays:
            await asyncio.sleep(delay)
            times.append(loop.time())
        return times

    times = loop.run_until_complete(main())
    expected, now = [], begin
    for delay in delays:
        now += delay
        expected.append(now)
    assert times == expected
    loop.close()


def _started(selector: JumpingSelector, begin: float) -> asyncio.AbstractEventLoop:
    selector.now = begin
    return aio.EventLoop(selector)


def test_a_clock_that_goes_back_keeps_every_timer_from_being_early(loop: aio.EventLoop) -> None:
    now = 100.0
    loop.time = lambda: now  # type: ignore[method-assign]
    ran: list[str] = []
    loop.call_later(1, ran.append, "101")
    turn(loop)
    now = 50.0
    loop.call_later(1, ran.append, "51")
    turn(loop)
    now = 50.9
    turn(loop)
    assert ran == []
    now = 51.0
    turn(loop)
    assert ran == ["51"]
    now = 101.0
    turn(loop)
    assert ran == ["51", "101"]


def test_a_subclass_sees_every_timer_in_its_call_at() -> None:
    class Watching(aio.EventLoop):
        seen: ClassVar[list[float]] = []

        def call_at(self, when: float, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
            self.seen.append(when)
            return super().call_at(when, *args, **kwargs)

    loop = Watching()
    handle = loop.call_later(5, pytest.fail)
    assert Watching.seen == [handle.when()]
    loop.close()


def test_a_timer_on_a_virtual_clock_runs_at_its_deadline_to_the_bit() -> None:
    loop = virtual_loop(aio.EventLoop)

    async def main() -> list[float]:
        times = []
        for delay in (0.1, 0.1, 0.1, 3600.0, 1e-9, 1 / 3):
            await asyncio.sleep(delay)
            times.append(loop.time())
        return times

    times = loop.run_until_complete(main())
    loop.close()
    expected, now = [], 0.0
    for delay in (0.1, 0.1, 0.1, 3600.0, 1e-9, 1 / 3):
        now += delay
        expected.append(now)
    assert times == expected


# Moments in units of 2**-22 s, a quarter of a tick and far more than the nanosecond by which asyncio's loop is early.
moments = st.integers(0, 1 << 12) | st.integers(0, 1 << 40) | st.integers(0, 40)
starts = st.sampled_from(["later", "at", "soon"])
programs = st.lists(
    st.tuples(starts, moments, st.lists(st.tuples(starts | st.just("cancel"), moments), max_size=3)), max_size=25
)


@given(programs)
def test_on_a_virtual_clock_it_does_what_asyncios_loop_does(program: list[Any]) -> None:
    assert history(aio.EventLoop, program) == history(asyncio.SelectorEventLoop, program)


def history(make: Callable[[Any], asyncio.AbstractEventLoop], program: list[Any]) -> list[tuple[float, str]]:
    """What ran when. The order of timers with one deadline is open in asyncio, so those of one time are sorted.

    For the same reason a step cancels another only if that is a tick or more away.
    """
    loop = virtual_loop(make)
    handles: list[asyncio.Handle] = []
    ran: list[tuple[float, str]] = []

    def start(kind: str, moment: int, then: list[Any], name: str) -> asyncio.Handle:
        seconds = moment / (1 << 22)
        if kind == "soon":
            return loop.call_soon(call, then, name)
        return (loop.call_later if kind == "later" else loop.call_at)(seconds, call, then, name)

    def call(then: list[Any], name: str) -> None:
        ran.append((loop.time(), name))
        for number, (kind, moment) in enumerate(then):
            if kind == "cancel":
                cancel(handles[moment % len(handles)])
            else:
                start(kind, moment, [], f"{name}.{number}")

    def cancel(handle: asyncio.Handle) -> None:
        if isinstance(handle, asyncio.TimerHandle) and handle.when() > loop.time() + 2**-20:
            handle.cancel()

    for number, (kind, moment, then) in enumerate(program):
        handles.append(start(kind, moment, then, str(number)))
    loop.call_at(float(1 << 20), loop.stop)
    loop.run_forever()
    loop.close()
    assert [at for at, _ in ran] == sorted(at for at, _ in ran)
    return sorted(ran)
