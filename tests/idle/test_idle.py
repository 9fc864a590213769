"""The idle time-outs on a virtual clock: when `on_idle` is called, and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from abeyant import IdleDetector, IdleStats, ManualTimer, SystemTimer, TimerClosedError, aio
from timer.guard import threads_named
from waiting import wait_until


@pytest.fixture
def timer() -> Iterator[ManualTimer]:
    with ManualTimer() as timer:
        yield timer


@pytest.fixture
def told() -> list[tuple[float, object]]:
    return []


@pytest.fixture(name="idle")
def make_idle(timer: ManualTimer, told: list[tuple[float, object]]) -> Iterator[IdleDetector]:
    idle = IdleDetector(30.0, lambda peer: told.append((timer.time(), peer)), timer)
    yield idle
    idle._check()


# -- when ----------------------------------------------------------------------------------------------------


def test_t1_t3_silence_is_told_of_once_and_not_early(
    timer: ManualTimer, idle: IdleDetector, told: list[tuple[float, object]]
) -> None:
    idle.seen("a")
    timer.advance(29.999999999)
    assert told == []
    timer.advance(0.000000001)
    assert told == [(30.0, "a")]
    timer.advance(1e6)
    assert told == [(30.0, "a")]


def test_each_packet_starts_the_time_out_again(
    timer: ManualTimer, idle: IdleDetector, told: list[tuple[float, object]]
) -> None:
    for second in range(100):
        idle.seen("busy")
        if second < 10:
            idle.seen("fades")
        timer.advance(1)
    assert told == [(39.0, "fades")]
    timer.advance(100)
    assert told == [(39.0, "fades"), (129.0, "busy")]


def test_after_its_end_it_is_forgotten_and_begins_anew_when_seen(
    timer: ManualTimer, idle: IdleDetector, told: list[tuple[float, object]]
) -> None:
    idle.seen("a")
    timer.advance(30)
    assert "a" not in idle
    assert len(idle) == 0
    timer.advance(12)
    idle.seen("a")
    timer.advance(30)
    assert told == [(30.0, "a"), (72.0, "a")]


def test_seen_from_within_on_idle_begins_anew(timer: ManualTimer) -> None:
    told: list[float] = []

    def again(peer: object) -> None:
        assert peer not in idle
        told.append(timer.time())
        idle.seen(peer)

    idle = IdleDetector(10, again, timer)
    idle.seen(1)
    timer.advance(35)
    assert told == [10.0, 20.0, 30.0]
    assert len(idle) == 1


def test_t2_at_most_one_tick_late_and_never_early_whatever_the_tick() -> None:
    timer = ManualTimer(tick=0.25)
    told: list[tuple[float, float]] = []
    idle = IdleDetector(1.0, lambda peer: told.append((timer.time(), peer)), timer)
    for step in range(40):
        idle.seen(timer.time())
        timer.advance(0.1 + step * 0.01)
    timer.advance(10)
    assert len(told) == 40
    assert all(1.0 <= when - peer <= 1.25 for when, peer in told)


def test_t6_those_silent_longest_are_told_of_first(
    timer: ManualTimer, idle: IdleDetector, told: list[tuple[float, object]]
) -> None:
    order = [7, 3, 9, 1, 4]
    for peer in order:
        idle.seen(peer)
        timer.advance(1)
    for peer in (3, 1):
        idle.seen(peer)
        timer.advance(1)
    timer.advance(100)
    assert [peer for _, peer in told] == [7, 9, 4, 3, 1]


def test_t7_a_jump_of_the_clock_tells_of_all_of_thousands(
    timer: ManualTimer, idle: IdleDetector, told: list[tuple[float, object]]
) -> None:
    for peer in range(5000):
        idle.seen(peer)
    timer.advance(1e7)
    assert [peer for _, peer in told] == list(range(5000))
    assert {when for when, _ in told} == {30.0}


def test_others_tasks_have_their_turn_in_a_storm(timer: ManualTimer) -> None:
    """An `on_idle` for everybody is not one task: what else is due runs in between (T7)."""
    ran: list[object] = []
    idle = IdleDetector(10, ran.append, timer)
    for peer in range(1000):
        idle.seen(peer)
    timer.call_later(10, ran.append, "other")
    timer.advance(10)
    assert ran.index("other") < 100
    assert len(ran) == 1001


# -- forgetting, counting ------------------------------------------------------------------------------------


def test_t3_forget_is_true_exactly_when_it_prevented_a_call(
    timer: ManualTimer, idle: IdleDetector, told: list[tuple[float, object]]
) -> None:
    assert not idle.forget("a")
    idle.seen("a")
    idle.seen("a")
    assert idle.forget("a")
    assert not idle.forget("a")
    idle.seen("b")
    timer.advance(30)
    assert not idle.forget("b")
    assert told == [(30.0, "b")]


def test_t9_counts_and_times_are_exact(timer: ManualTimer, idle: IdleDetector) -> None:
    assert idle.idle_for("a") is None
    idle.seen("a")
    timer.advance(3)
    idle.seen("b")
    timer.advance(4)
    assert (idle.idle_for("a"), idle.idle_for("b")) == (7.0, 4.0)
    assert len(idle) == 2
    assert "a" in idle
    assert "c" not in idle
    idle.seen("a")
    assert idle.idle_for("a") == 0.0
    assert idle.timeout == 30.0
    assert repr(idle) == "<IdleDetector of 30s, 2 watched>"
    assert idle
    idle.forget("b")
    assert idle.stats() == IdleStats(watched=1, started=2, expired=0, forgotten=1)
    timer.advance(30)
    assert idle.stats() == IdleStats(watched=0, started=2, expired=1, forgotten=1)


def test_t10_with_nobody_watched_the_timer_has_nothing_to_do(timer: ManualTimer, idle: IdleDetector) -> None:
    for peer in range(3):
        idle.seen(peer)
    assert len(timer) == 1, "one task for all of them"
    for peer in range(3):
        assert idle.forget(peer)
    assert len(timer) == 0
    assert timer.next_expiration() is None


def test_p8_one_timer_serves_many(timer: ManualTimer, told: list[tuple[float, object]]) -> None:
    detectors = [IdleDetector(seconds, lambda peer: told.append((timer.time(), peer)), timer) for seconds in (1, 2, 3)]
    for number, idle in enumerate(detectors):
        idle.seen(number)
    timer.advance(10)
    assert told == [(1.0, 0), (2.0, 1), (3.0, 2)]


# -- errors, closing -----------------------------------------------------------------------------------------


def test_t8_an_error_goes_to_the_timers_on_error_and_harms_nobody() -> None:
    reported: list[tuple[str, object]] = []
    timer = ManualTimer(on_error=lambda error, callback: reported.append((str(error), callback)))
    told: list[int] = []

    def drop(peer: int) -> None:
        told.append(peer)
        if peer % 2:
            raise LookupError(f"peer {peer}")

    idle = IdleDetector(30, drop, timer)
    for peer in range(4):
        idle.seen(peer)
    timer.advance(30)
    assert told == [0, 1, 2, 3]
    assert reported == [("peer 1", drop), ("peer 3", drop)]
    assert timer.stats().failed == 2
    idle._check()


def test_t8_without_on_error_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    timer = ManualTimer()
    idle = IdleDetector(1, {}.__getitem__, timer)
    idle.seen("nobody")
    with caplog.at_level(logging.ERROR, "abeyant.timer"):
        timer.advance(1)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert repr(record.exc_info[1]) == "KeyError('nobody')"


def test_an_interrupt_out_of_on_idle_loses_nobody(timer: ManualTimer) -> None:
    told: list[int] = []

    def drop(peer: int) -> None:
        told.append(peer)
        if peer == 1:
            raise KeyboardInterrupt

    idle = IdleDetector(30, drop, timer)
    for peer in range(4):
        idle.seen(peer)
    with pytest.raises(KeyboardInterrupt):
        timer.advance(30)
    idle._check()
    timer.advance(0)
    assert told == [0, 1, 2, 3]


def test_it_is_generic_in_its_peers_for_annotations(timer: ManualTimer) -> None:
    kind = IdleDetector[str]
    assert repr(kind) == "abeyant.idle.detector.IdleDetector[str]"
    assert type(kind(30, print, timer)) is IdleDetector

    class Mine(IdleDetector[str]):
        pass

    assert Mine.__mro__[1] is IdleDetector


def test_t9_close_hands_back_who_was_watched_and_refuses_what_comes_after(timer: ManualTimer, told: list[Any]) -> None:
    idle = IdleDetector(30, told.append, timer)
    for peer in "abc":
        idle.seen(peer)
        timer.advance(1)
    idle.seen("a")
    assert idle.close() == ["b", "c", "a"]
    assert idle.closed
    assert idle.close() == []
    assert (len(idle), len(timer)) == (0, 0)
    assert "a" not in idle
    assert not idle.forget("a")
    with pytest.raises(TimerClosedError, match="'d'"):
        idle.seen("d")
    timer.advance(100)
    assert told == []
    assert repr(idle) == "<IdleDetector of 30s, closed>"


def test_closing_within_on_idle_ends_it(timer: ManualTimer) -> None:
    told: list[object] = []

    def drop(peer: object) -> None:
        told.append(peer)
        told.append(idle.close())

    idle = IdleDetector(1, drop, timer)
    for peer in "abc":
        idle.seen(peer)
    timer.advance(10)
    assert told == ["a", ["b", "c"]]
    assert len(timer) == 0


@pytest.mark.parametrize("watched", [True, False])
def test_p7_nobody_is_watched_who_could_never_be_told_of(watched: bool) -> None:
    timer = ManualTimer()
    idle = IdleDetector(1, print, timer)
    if watched:
        idle.seen("a")
    timer.close()
    for peer in ("a", "b"):
        with pytest.raises(TimerClosedError, match=f"'{peer}'"):
            idle.seen(peer)
    assert len(idle) == watched


@pytest.mark.parametrize("timeout", [0, -1.0, math.inf, 1e10, timedelta(0)])
def test_a_time_out_must_be_positive_and_must_end(timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout must be more than zero"):
        IdleDetector(timeout, print, ManualTimer())


def test_bad_arguments_are_named() -> None:
    async def drop(peer: object) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="on_idle must be callable, not 5"):
        IdleDetector(1.0, 5, ManualTimer())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"plain function, not .*drop"):
        IdleDetector(1.0, drop, ManualTimer())
    with pytest.raises(TypeError, match="not 'timer'"):
        IdleDetector(1.0, print, "timer")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timeout must be seconds"):
        IdleDetector("30", print, ManualTimer())  # type: ignore[arg-type]
    assert IdleDetector(timedelta(minutes=1), print, ManualTimer()).timeout == 60.0


# -- without a timer -----------------------------------------------------------------------------------------


def test_without_a_timer_it_has_a_thread_of_its_own_that_begins_late_and_ends_with_it() -> None:
    told: list[object] = []
    with IdleDetector(timeout=0.02, on_idle=told.append) as idle:
        assert threads_named("idle-timer") == []
        idle.seen("a")
        assert len(threads_named("idle-timer")) == 1
        wait_until(lambda: told == ["a"])
    assert threads_named("idle-timer") == []


def test_without_a_timer_inside_a_loop_it_says_what_to_pass() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"timer=abeyant\.aio\.Timer\(\)"):
            IdleDetector(30.0, print)

    asyncio.run(main())


def test_it_imports_no_asyncio() -> None:
    code = "import abeyant, sys; abeyant.IdleDetector(1, print).close(); print('asyncio' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


# -- what is left behind -------------------------------------------------------------------------------------


class Peer:
    """Can be watched by a weak reference."""


@pytest.mark.parametrize("how", ["idle", "forget", "close", "idle raising"])
def test_p4_an_ended_peer_is_let_go_of_at_once(how: str) -> None:
    def drop(peer: Peer) -> None:
        if how == "idle raising":
            raise LookupError

    timer = ManualTimer(on_error=lambda *_: None)
    idle: IdleDetector[Any] = IdleDetector(30, drop, timer)
    peer = Peer()
    dead = weakref.ref(peer)
    gc.disable()
    try:
        idle.seen(peer)
        if how == "forget":
            idle.forget(peer)
        elif how == "close":
            idle.close()
        else:
            idle.seen("another")
        del peer
        if how.startswith("idle"):
            timer.advance(30)
        assert dead() is None
    finally:
        gc.enable()


def test_a_cycle_through_a_peer_is_collected() -> None:
    timer = ManualTimer()
    peer: Any = Peer()
    peer.server = IdleDetector(30, lambda _: None, timer)
    peer.server.seen(peer)
    dead = weakref.ref(peer)
    del peer, timer
    gc.collect()
    assert dead() is None


def test_dropped_with_nobody_watched_it_is_freed_though_its_timer_lives() -> None:
    timer = ManualTimer()
    idle = IdleDetector(30, print, timer)
    idle.seen("a")
    idle.forget("a")
    dead = weakref.ref(idle)
    del idle
    gc.collect()
    assert dead() is None


def test_dropped_with_its_own_timer_its_thread_ends() -> None:
    told: list[object] = []
    IdleDetector(0.01, told.append).seen("a")
    wait_until(lambda: told == ["a"])
    gc.collect()
    wait_until(lambda: threads_named("idle-timer") == [])


def test_the_collector_does_not_see_who_is_watched_one_by_one() -> None:
    idle = IdleDetector(30, print, ManualTimer())
    gc.collect()
    before = len(gc.get_objects())
    for peer in range(10_000):
        idle.seen(peer)
    assert len(gc.get_objects()) - before < 100


def test_coming_and_going_leaves_no_memory_behind() -> None:
    timer = ManualTimer()
    idle = IdleDetector(30, lambda _: None, timer)

    def come_and_go() -> None:
        for peer in range(20_000):
            idle.seen(peer)
            idle.forget(peer - 100)
            if peer % 1000 == 0:
                timer.advance(100)

    come_and_go()
    tracemalloc.start()
    try:
        come_and_go()
        assert tracemalloc.get_traced_memory()[0] < 30_000
    finally:
        tracemalloc.stop()


def test_on_a_system_timer_it_goes_on_though_nobody_refers_to_it() -> None:
    told: list[object] = []
    with SystemTimer() as timer:
        IdleDetector(0.02, told.append, timer).seen("a")
        gc.collect()
        wait_until(lambda: told == ["a"])


def test_t9_a_detector_on_a_loop_that_was_closed_accepts_nobody() -> None:
    loop = asyncio.new_event_loop()
    detector = IdleDetector(30, print, aio.Timer(loop))
    detector.seen("before")
    loop.close()
    for peer in ("before", "after"):
        with pytest.raises(TimerClosedError, match="its timer or event loop is closed"):
            detector.seen(peer)
    assert detector.close() == ["before"]
