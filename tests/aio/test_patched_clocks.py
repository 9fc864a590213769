"""Our loops follow whoever patches `time.monotonic`, as asyncio's do; what sleeps in a thread of its own does not."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import abeyant
from abeyant import aio
from abeyant.timer.units import machine_time

freezegun = pytest.importorskip("freezegun")

NEW_YEAR = "2030-01-01"
THEN = 1893456000.0  # that day, in seconds

Factory = Callable[[], asyncio.AbstractEventLoop]
LOOPS: dict[str, Factory] = {"asyncio": asyncio.SelectorEventLoop, "abeyant": aio.EventLoop}


@pytest.fixture(params=LOOPS)
def make(request: pytest.FixtureRequest) -> Factory:
    return LOOPS[request.param]


@pytest.fixture
def loop(make: Factory) -> Iterator[asyncio.AbstractEventLoop]:
    made = make()
    yield made
    made.close()


def turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self, *_: object) -> float:
        return self.now


def _asyncios_module(hand: Hand) -> Any:
    return SimpleNamespace(monotonic=hand, get_clock_info=time.get_clock_info)


def _method(cls: type, hand: Hand) -> AbstractContextManager[Any]:
    return mock.patch.object(cls, "time", new_callable=lambda: lambda _: hand.now)


PATCHES: dict[str, Callable[[Hand], AbstractContextManager[Any]]] = {
    "time.monotonic": lambda hand: mock.patch("time.monotonic", hand),
    "asyncio's module": lambda hand: mock.patch("asyncio.base_events.time", _asyncios_module(hand)),
    "the method of asyncio's loops": lambda hand: _method(asyncio.BaseEventLoop, hand),
    "that of its selector loops": lambda hand: _method(asyncio.SelectorEventLoop, hand),
}


@pytest.fixture(params=PATCHES)
def patch(request: pytest.FixtureRequest) -> Callable[[Hand], AbstractContextManager[Any]]:
    return PATCHES[request.param]


def test_t1_a_loop_made_before_or_after_the_patch_follows_it(
    make: Factory, patch: Callable[[Hand], AbstractContextManager[Any]]
) -> None:
    hand, ran = Hand(), list[str]()
    before = make()
    assert abs(before.time() - machine_time()) < 60
    with patch(hand):
        after = make()
        for loop in before, after:
            assert loop.time() == 1000.0
            assert loop.call_later(5, ran.append, "due").when() == 1005.0
            turn(loop)
            assert ran == []
            hand.now = 1005.5
            turn(loop)
            assert ran == ["due"]
            ran.clear()
            hand.now = 1000.0
            turn(loop)
    for loop in before, after:
        assert abs(loop.time() - machine_time()) < 60
        assert abs(loop.call_later(5, ran.append, "real").when() - loop.time() - 5) < 60
        turn(loop)
        assert ran == []
        loop.close()


def test_a_bound_method_that_was_kept_follows_too(loop: asyncio.AbstractEventLoop) -> None:
    read = loop.time
    with mock.patch("time.monotonic", Hand()):
        assert read() == 1000.0
    assert abs(read() - machine_time()) < 60


def test_t7_a_loop_made_frozen_goes_on_when_time_is_let_go_of(make: Factory) -> None:
    ran = list[str]()
    with freezegun.freeze_time(NEW_YEAR) as frozen:
        loop = make()
        assert loop.time() == THEN
        loop.call_later(3600, ran.append, "an hour")
        loop.call_later(7200, ran.append, "two")
        turn(loop)
        frozen.tick(timedelta(hours=1.1))
        turn(loop)
        assert ran == ["an hour"]
        frozen.move_to("2029-12-31")  # a clock that goes back
        assert loop.call_later(1, ran.append, "the day before").when() == THEN - 86_400 + 1
        frozen.tick(timedelta(seconds=2))
        turn(loop)
        assert ran == ["an hour", "the day before"]
    loop.run_until_complete(asyncio.wait_for(asyncio.sleep(0.01), 30))
    assert ran == ["an hour", "the day before"]  # the deadline in 2030 is far off again
    loop.close()


def test_timeouts_fire_under_a_clock_that_ticks(make: Factory) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.Event().wait()
        timer = aio.Timer()
        done = asyncio.Event()
        timer.call_later(0.02, done.set)
        await asyncio.wait_for(done.wait(), 30)

    with freezegun.freeze_time(NEW_YEAR, tick=True), asyncio.Runner(loop_factory=make) as runner:
        runner.run(asyncio.wait_for(main(), 30))


def test_each_look_at_a_clock_that_ticks_by_itself_is_one_of_asyncios(loop: asyncio.AbstractEventLoop) -> None:
    """`auto_tick_seconds`: the clock goes on by being looked at, so the loop looks as often as asyncio's, not more."""
    hand, looks = Hand(), list[float]()

    def look() -> float:
        looks.append(hand.now)
        return hand.now

    with mock.patch("time.monotonic", look):
        loop.call_later(50, int)
        turn(loop)
        looks.clear()
        turn(loop)
    assert len(looks) == 6, "once a turn"


def test_freezegun_spares_asyncio_where_it_is_told_to(make: Factory) -> None:
    loop = make()
    with freezegun.freeze_time(NEW_YEAR, real_asyncio=True):
        assert abs(loop.time() - machine_time()) < 60
        loop.run_until_complete(asyncio.wait_for(asyncio.sleep(0.01), 30))
    assert abs(loop.time() - machine_time()) < 60
    loop.close()


def test_time_machine_leaves_loops_alone(loop: asyncio.AbstractEventLoop) -> None:
    time_machine = pytest.importorskip("time_machine")
    with time_machine.travel(NEW_YEAR, tick=False):
        assert abs(loop.time() - machine_time()) < 60
        loop.run_until_complete(asyncio.wait_for(asyncio.sleep(0.01), 30))


def test_on_uvloop_time_is_the_machines_as_uvloops_own() -> None:
    pytest.importorskip("uvloop")
    with freezegun.freeze_time(NEW_YEAR), asyncio.Runner(loop_factory=aio.uvloop_factory) as runner:
        assert abs(runner.get_loop().time() - machine_time()) < 60
        runner.run(asyncio.wait_for(asyncio.sleep(0.01), 30))


@pytest.mark.parametrize("tick", [False, True])
def test_what_sleeps_in_a_thread_goes_by_the_machines_clock(tick: bool) -> None:
    """T2: a thread's sleep is real, frozen or not, as that of `threading.Timer`."""
    ran, idle = threading.Event(), threading.Event()
    with abeyant.SystemTimer("before") as before, freezegun.freeze_time(NEW_YEAR, tick=tick):
        assert abs(before.time() - machine_time()) < 60
        before.call_later(0.02, ran.set)
        assert ran.wait(30)
        ran.clear()
        with abeyant.SystemTimer("within") as within, abeyant.IdleDetector(0.02, lambda _: idle.set(), within) as peers:
            within.call_later(0.02, ran.set)
            peers.seen("peer")
            assert ran.wait(30)
            assert idle.wait(30)


_IMPORTED_FROZEN = """
import asyncio, freezegun
with freezegun.freeze_time("2030-01-01"):
    import abeyant
    from abeyant import aio
    loop = aio.EventLoop()
    print(loop.time() == 1893456000.0, abeyant.SystemTimer().time() < 1e9)
print(loop.time() < 1e9, loop.call_later(1, int).when() < 1e9)
loop.run_until_complete(asyncio.sleep(0.01))
loop.close()
"""


def test_it_may_be_imported_while_time_is_frozen() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTED_FROZEN], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True"] * 4, done.stderr


def test_a_closed_loop_still_tells_the_time(make: Factory) -> None:
    loop = make()
    loop.close()
    assert abs(loop.time() - time.monotonic()) < 60
