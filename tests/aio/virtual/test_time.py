"""Virtual time: what asyncio knows of time happens at once, in the order of deadlines, each at its own time.

The first part follows what trio's tests ask of its MockClock, in our own words; no test looks at a real clock to see
whether time flew: an hour that were waited for would be noticed.
"""

import asyncio
import itertools
import math
import random
import time
from datetime import timedelta

import pytest

from abeyance import aio
from aio.virtual.loops import RunReal, RunVirtual

HOUR = 3600.0
YEAR = 365 * 24 * HOUR


def now() -> float:
    return asyncio.get_running_loop().time()


# What MockClock does


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
    assert repr(clock) == "<VirtualClock at 1s, jumping, on no loop>"


# What asyncio builds on time


def test_t6_deadlines_run_in_order_whatever_the_order_they_were_set_in(run_virtual: RunVirtual) -> None:
    lengths = [round(random.Random(4).uniform(0, HOUR), 3) for _ in range(500)]

    async def main() -> None:
        loop, seen = asyncio.get_running_loop(), list[tuple[float, float]]()
        for length in lengths:
            loop.call_later(length, lambda of: seen.append((of, now())), length)
        await asyncio.sleep(2 * HOUR)
        assert seen == [(length, length) for length in sorted(lengths)]

    run_virtual(main())


def test_t6_equal_deadlines_run_in_the_order_they_were_set_in(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        seen = list[int]()

        async def sleeper(number: int) -> None:
            await asyncio.sleep(1)
            seen.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(sleeper(number))
        assert (seen, now()) == (list(range(100)), 1.0)

    run_virtual(main())


def test_the_same_seed_gives_the_same_trace(run_virtual: RunVirtual) -> None:
    async def trace(seed: int) -> list[tuple[str, float]]:
        dice, seen = random.Random(seed), list[tuple[str, float]]()
        queue = asyncio.Queue[int](3)

        async def producer(name: str) -> None:
            for number in range(20):
                await asyncio.sleep(dice.choice([0, 0.25, 1, dice.random()]))
                await queue.put(number)
                seen.append((f"{name} put {number}", now()))

        async def consumer(name: str) -> None:
            while True:
                try:
                    async with asyncio.timeout(dice.uniform(0.1, 2)):
                        seen.append((f"{name} got {await queue.get()}", now()))
                except TimeoutError:
                    seen.append((f"{name} gave up", now()))
                await asyncio.sleep(dice.random())

        consumers = [asyncio.create_task(consumer(f"consumer {i}")) for i in range(3)]
        await asyncio.gather(*(producer(f"producer {i}") for i in range(4)))
        for task in consumers:
            task.cancel()
        return seen

    first = run_virtual(trace(1))
    assert len(first) > 150
    assert run_virtual(trace(1)) == first
    assert run_virtual(trace(2)) != first


def test_nested_timeouts_fire_the_one_that_is_first(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        for outer, inner in ((5, 10), (10, 5)):
            began, fired = now(), []
            try:
                async with asyncio.timeout(outer):
                    try:
                        async with asyncio.timeout(inner):
                            await asyncio.sleep(HOUR)
                    except TimeoutError:
                        fired.append("inner")
                        raise
            except TimeoutError:
                fired.append("outer")
            assert now() - began == 5
            assert fired == (["outer"] if outer < inner else ["inner", "outer"])

    run_virtual(main())


def test_wait_for_wait_and_retries_with_backoff(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(HOUR), timeout=60)
        assert now() == 60.0

        tasks = [asyncio.create_task(asyncio.sleep(length, length)) for length in (10, 20, 30)]
        done, pending = await asyncio.wait(tasks, timeout=25)
        assert (sorted(task.result() for task in done), len(pending), now()) == ([10, 20], 1, 85.0)
        assert await pending.pop() == 30

        attempts = []
        for attempt in range(10):
            attempts.append(now() - 90)
            await asyncio.sleep(min(2**attempt, 60))
        assert attempts == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]

    run_virtual(main())


def test_cancelling_during_a_sleep_takes_no_time_and_leaves_no_timer(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        cleaned = []

        async def sleeper() -> None:
            try:
                await asyncio.sleep(HOUR)
            finally:
                await asyncio.sleep(1)
                cleaned.append(now())

        task = asyncio.create_task(sleeper())
        await asyncio.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (cleaned, now()) == ([11.0], 11.0)
        await asyncio.sleep(2 * HOUR)  # past where the cancelled sleep would have ended

    run_virtual(main())


def test_a_task_group_is_cancelled_at_the_time_of_the_failure(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        async def fail() -> None:
            await asyncio.sleep(7)
            raise LookupError("at seven")

        async def group() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(HOUR))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup) as caught:
            await group()
        assert caught.group_contains(LookupError, match="at seven")
        assert now() == 7.0

    run_virtual(main())


def test_what_is_cancelled_at_the_end_of_the_run_cleans_up_in_virtual_time(run_virtual: RunVirtual) -> None:
    cleaned, tasks = [], []

    async def main() -> None:
        async def service() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(HOUR)
                cleaned.append(now())

        tasks.append(asyncio.create_task(service()))
        await asyncio.sleep(1)

    run_virtual(main())
    assert cleaned == [HOUR + 1]


# On a loop that runs already


def test_t7_time_goes_on_and_never_back_on_entering_and_leaving(run: RunReal) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        async with aio.virtual_time() as clock:
            entered = loop.time()
            assert before <= entered < before + 1
            assert entered == math.floor(entered) == clock.time()
            await asyncio.sleep(HOUR)
            assert loop.time() == entered + HOUR
        assert entered + HOUR <= loop.time() < entered + HOUR + 60
        left = loop.time()
        await asyncio.sleep(0.01)  # real again
        assert left + 0.01 <= loop.time() < left + 60
        async with aio.virtual_time():
            await asyncio.sleep(HOUR)
        assert loop.time() >= left + HOUR

    run(main())


def test_leaving_gives_the_loop_all_of_its_own_back(run: RunReal) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        before = dict(vars(loop))
        async with aio.virtual_time():
            await asyncio.sleep(1)
            assert vars(loop)["_selector"] is not before["_selector"]
        changed = {name for name, value in vars(loop).items() if value is not before.get(name)}
        assert changed <= {"time", "_timer_cancelled_count"}
        assert vars(loop).keys() - before.keys() <= {"time"}

    run(main())


def test_timers_that_were_pending_before_go_on_after(run: RunReal) -> None:
    async def main() -> None:
        loop, seen = asyncio.get_running_loop(), list[str]()
        loop.call_later(10, seen.append, "before")
        loop.call_later(2 * HOUR, seen.append, "long before")
        async with aio.virtual_time():
            loop.call_later(5, seen.append, "within")
            rest = loop.call_later(2 * HOUR, seen.append, "never")
            await asyncio.sleep(HOUR)
        assert seen == ["within", "before"]
        assert rest.when() > loop.time()
        rest.cancel()

    run(main())


def test_a_start_can_be_given_where_no_timer_is_pending(run: RunReal) -> None:
    async def main() -> None:
        async with aio.virtual_time(start=100):
            assert now() == 100.0
            await asyncio.sleep(5)
        assert 105 <= now() < 165
        handle = asyncio.get_running_loop().call_later(10, print)
        with pytest.raises(ValueError, match=r"start=0\.0 would move the 1 timers .* leave start out here"):
            await aio.virtual_time(start=0).__aenter__()
        handle.cancel()

    run(main())


def test_a_clock_can_be_held_again(run: RunReal) -> None:
    clock = aio.VirtualClock(start=1)

    async def main() -> None:
        for _ in range(2):
            async with clock:
                assert clock.time() == 1.0
                await asyncio.sleep(9)
            assert clock.time() == 10.0

    run(main())


def test_a_fixture_can_enter_in_one_task_and_leave_in_another(run: RunReal) -> None:
    async def main() -> None:
        clock = aio.virtual_time()
        await asyncio.create_task(clock.__aenter__())
        await asyncio.sleep(HOUR)
        await asyncio.create_task(clock.__aexit__(None, None, None))

    run(main())


def test_debug_mode(run: RunReal) -> None:
    async def main() -> None:
        async with aio.virtual_time():
            await asyncio.sleep(HOUR)

    run(main(), debug=True)


# Mistakes


def test_virtual_time_inside_of_virtual_time_is_refused(run: RunReal, run_virtual: RunVirtual) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"virtual time holds on this loop already, by <VirtualClock at"):
            await aio.virtual_time().__aenter__()
        await asyncio.sleep(HOUR)

    async def within() -> None:
        async with aio.virtual_time():
            await main()

    run(within())
    run_virtual(main())


def test_a_clock_is_on_one_loop_at_a_time(run: RunReal) -> None:
    clock = aio.VirtualClock()

    async def main() -> None:
        async with clock:
            with pytest.raises(RuntimeError, match="is in use already"):
                await clock.__aenter__()
            await asyncio.to_thread(elsewhere)

    def elsewhere() -> None:
        async def other() -> None:
            async with clock:
                pass

        with pytest.raises(RuntimeError, match="is in use"):
            asyncio.run(other())
        with pytest.raises(RuntimeError, match="is in use"):
            aio.run_virtual(other(), clock=clock)

    run(main())


def test_a_loop_without_a_selector_is_refused_and_the_mend_is_told() -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"uvloop\.Loop has none .* run this test on asyncio\.SelectorEventLoop"):
            await aio.virtual_time().__aenter__()
        await asyncio.sleep(0.001)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    with pytest.raises(RuntimeError, match=r"uvloop\.Loop has none"):
        aio.run_virtual(main(), loop_factory=uvloop.new_event_loop)


def test_advance_outside_of_the_block_is_refused() -> None:
    with pytest.raises(RuntimeError, match="this clock is on no loop"):
        asyncio.run(aio.VirtualClock().advance(1))


def test_run_virtual_takes_a_coroutine_and_makes_the_loop() -> None:
    with pytest.raises(TypeError, match=r"run_virtual takes a coroutine, .* not <function"):
        aio.run_virtual(test_debug_mode)  # type: ignore[arg-type]

    async def main() -> None:
        aio.run_virtual(asyncio.sleep(1))

    with pytest.raises(RuntimeError, match="inside of one use `async with virtual_time"):
        asyncio.run(main())


@pytest.mark.parametrize("name", ["start", "io_grace", "patience", "limit"])
def test_options_that_are_no_times_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be seconds .*, not 'soon'"):
        aio.virtual_time(**{name: "soon"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"{name} must be seconds .*, not True"):
        aio.virtual_time(**{name: True})
    for wrong in (-1, math.nan, timedelta(seconds=-1)):
        with pytest.raises(ValueError, match=f"{name} must be .*0 or more, not "):
            aio.virtual_time(**{name: wrong})  # type: ignore[arg-type]
    if name in ("start", "io_grace"):
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            aio.virtual_time(**{name: math.inf})  # type: ignore[arg-type]


def test_autojump_is_a_truth_value() -> None:
    with pytest.raises(TypeError, match=r"autojump must be True or False, not 0\.1"):
        aio.virtual_time(autojump=0.1)  # type: ignore[arg-type]
