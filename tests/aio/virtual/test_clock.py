"""The virtual clock by itself and by hand: what trio's tests ask of its MockClock, in our own words.

No test looks at a real clock to see whether time flew: an hour that were waited for would be noticed.
"""

import asyncio
import itertools
import time
from datetime import timedelta

import pytest

from abeyant import aio
from aio.virtual.loops import HOUR, RunVirtual, now

YEAR = 365 * 24 * HOUR


def test_the_clock_starts_at_nought_and_stands_still_while_code_runs(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        assert now() == 0.0
        time.sleep(0.01)
        for _ in range(100):
            await asyncio.sleep(0)
        assert now() == 0.0

    run_virtual(main())


def test_t1_t2_sleeps_take_their_exact_time_and_no_other(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        for length in (0.0, 1e-9, 0.1, 1.0, HOUR, YEAR, 100 * YEAR):
            before = now()
            await asyncio.sleep(length)
            assert now() == before + length

    run_virtual(main())


def test_a_clock_that_was_set_up_before_the_loop_is_used_from_its_start(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock(start=1000)
    assert clock.time() == 1000.0

    async def main() -> float:
        begin = now()
        await asyncio.sleep(10)
        assert clock.time() == now()
        return begin

    assert run_virtual(main(), clock) == 1000.0
    assert clock.time() == 1010.0


def test_a_clock_by_hand_moves_in_advance_only(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock(autojump=False)
    seen = []

    async def sleeper(length: float) -> None:
        await asyncio.sleep(length)
        seen.append((length, now()))

    async def main() -> None:
        tasks = [asyncio.create_task(sleeper(length)) for length in (3, 1, 2)]
        await clock.advance(0)
        assert (seen, now()) == ([], 0.0)
        await clock.advance(1.5)
        assert (seen, now()) == ([(1, 1.0)], 1.5)
        await clock.advance(timedelta(seconds=0.5))  # to the very deadline: what is due there has run
        assert (seen, now()) == ([(1, 1.0), (2, 2.0)], 2.0)
        await clock.advance(HOUR)
        assert (seen, now()) == ([(1, 1.0), (2, 2.0), (3, 3.0)], HOUR + 2)
        assert all(task.done() for task in tasks)

    run_virtual(main(), clock)


def test_advance_returns_when_nothing_more_can_run_at_its_end(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock(autojump=False)

    async def main() -> None:
        seen = []

        async def chain() -> None:
            await asyncio.sleep(5)
            for step in range(20):
                await asyncio.sleep(0)
                seen.append(step)
            await asyncio.sleep(0.5)

        task = asyncio.create_task(chain())
        await clock.advance(5)
        assert (seen, now()) == (list(range(20)), 5.0)
        task.cancel()

    run_virtual(main(), clock)


def test_advances_at_once_end_each_at_its_own_time(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock(autojump=False)

    async def main() -> None:
        async def advance(length: float) -> float:
            await clock.advance(length)
            return now()

        dropped = asyncio.create_task(clock.advance(1))
        await asyncio.sleep(0)
        dropped.cancel()
        assert list(await asyncio.gather(advance(3), advance(1), advance(2))) == [3.0, 1.0, 2.0]
        assert now() == 3.0

    run_virtual(main(), clock)


def test_autojump_can_be_turned_on_and_off_on_the_way(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock(autojump=False)

    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(HOUR))
        await clock.advance(10)
        assert not task.done()
        clock.autojump = True
        await task
        assert now() == HOUR
        clock.autojump = False
        await clock.advance(1)
        assert now() == HOUR + 1

    run_virtual(main(), clock)


def test_advancing_a_jumping_clock_lets_what_is_due_on_the_way_go_first(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock()

    async def main() -> None:
        ticks = []

        async def ticker() -> None:
            for _ in itertools.count():
                await asyncio.sleep(1)
                ticks.append(now())

        task = asyncio.create_task(ticker())
        await clock.advance(3)
        assert (ticks, now()) == ([1.0, 2.0, 3.0], 3.0)
        task.cancel()

    run_virtual(main(), clock)


def test_advance_by_nought_waits_until_nothing_else_can_run_before_the_clock_jumps(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock()

    async def main() -> None:
        record = []

        async def sleeper() -> None:
            await asyncio.sleep(100)
            record.append("slept")

        async def waiter() -> None:
            await clock.advance(0)
            record.append("waited")
            await asyncio.sleep(1000)
            record.append("slept longer")

        await asyncio.gather(sleeper(), waiter())
        assert (record, now()) == (["waited", "slept", "slept longer"], 1000.0)

    run_virtual(main(), clock)


def test_time_is_never_told_to_go_back(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock()

    async def main() -> None:
        await asyncio.sleep(1)
        with pytest.raises(ValueError, match=r"seconds must be finite, and 0 or more, not -1"):
            await clock.advance(-1)
        assert now() == 1.0

    run_virtual(main(), clock)
    assert repr(clock) == "<VirtualClock at 1s, autojump, not in use>"


def test_a_step_to_the_next_deadline_runs_what_is_due_there(run_virtual: RunVirtual) -> None:
    clock = aio.VirtualClock(autojump=False)

    async def main() -> None:
        seen = []

        async def sleeper(length: float) -> None:
            await asyncio.sleep(length)
            for _ in range(3):
                await asyncio.sleep(0)
            seen.append(length)

        assert await clock.advance_to_next() is None
        tasks = [asyncio.create_task(sleeper(length)) for length in (7.5, 3600.25, 3600.25)]
        assert (await clock.advance_to_next(), seen) == (7.5, [7.5])
        assert list(await asyncio.gather(clock.advance_to_next(), clock.advance_to_next())) == [3592.75, 3592.75]
        assert (seen, now()) == ([7.5, 3600.25, 3600.25], 3600.25)
        assert await clock.advance_to_next() is None
        assert all(task.done() for task in tasks)
        asyncio.get_running_loop().call_later(10, seen.append, 10)
        assert list(await asyncio.gather(clock.advance_to_next(), clock.advance(4))) == [10.0, None]
        assert now() == 3610.25

    run_virtual(main(), clock)
    with pytest.raises(RuntimeError, match="not in use"):
        asyncio.run(clock.advance_to_next())


def count_stops(clock: aio.VirtualClock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    stops, move = list[float](), clock._move

    def moved(to: float, deadline: float | None) -> None:
        stops.append(to)
        move(to, deadline)

    monkeypatch.setattr(clock, "_move", moved)
    return stops


@pytest.mark.parametrize("others", [0, 1, 100])
def test_the_clock_stops_at_deadlines_and_nowhere_on_the_way(
    run_virtual: RunVirtual, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """Not where the wheel cascades: each stop costs a grace where something is open to the outside."""
    clock = aio.VirtualClock()
    stops = count_stops(clock, monkeypatch)

    async def main() -> None:
        for number in range(others):
            asyncio.get_running_loop().call_later(1e6 + number, print)
        for length in (0.1, 60, 3600.5, 1e-7, 1 / 3, 1e5):
            await asyncio.sleep(length)

    run_virtual(main(), clock)
    assert len(stops) == 6


def test_the_clock_does_not_stop_for_what_a_timer_no_longer_waits_for(
    run_virtual: RunVirtual, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = aio.VirtualClock()
    stops = count_stops(clock, monkeypatch)

    async def main() -> None:
        timer, ran = aio.Timer(), []
        timer.call_later(3600.5, lambda: ran.append(now()))
        cancelled, refreshed = timer.call_later(60, print), timer.call_later(100, lambda: ran.append(now()))
        await asyncio.sleep(50)
        cancelled.cancel()
        refreshed.refresh()
        await asyncio.sleep(7200)
        assert ran == [150.0, 3600.5]
        timer.call_later(60, print).cancel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await asyncio.Event().wait()

    run_virtual(main(), clock)
    assert stops == [50.0, 150.0, 3600.5, 7250.0, 7350.0]
