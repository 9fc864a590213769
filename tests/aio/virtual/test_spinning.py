"""A program that spins, since each of its waits is too short to move the clock, ends as it does in real time."""

import asyncio

import pytest

from abeyant import aio
from aio.virtual.loops import HOUR, LOOPS, RunVirtual, now
from seeds import with_slow


def test_sleeping_for_half_of_what_is_left_ends(run_virtual: RunVirtual) -> None:
    async def main() -> float:
        until = now() + 1 / 3
        while (left := until - now()) > 0:
            await asyncio.sleep(left / 2)
        return now()

    assert run_virtual(main()) == 1 / 3, "by the clock's smallest step"


def test_a_timer_that_sets_itself_for_now_does_not_keep_the_clock_from_moving(run_virtual: RunVirtual) -> None:
    """And what comes due meanwhile is neither early nor late."""

    async def main() -> None:
        loop, seen = asyncio.get_running_loop(), []

        def again() -> None:
            if not done.done():
                loop.call_later(0, again)

        done = loop.create_future()
        for deadline in (1e-9, 1e-9, 0.011, 0.0123, 0.2):
            loop.call_at(deadline, lambda: seen.append(now()))
        loop.call_at(0.25, done.set_result, None)
        again()
        await done
        assert (seen, now()) == ([1e-9, 1e-9, 0.011, 0.0123, 0.2], 0.25)

    run_virtual(main())


def test_what_runs_without_waiting_takes_no_time_however_much_it_is(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(1e-9, print)
        for _ in range(50_000):
            await asyncio.sleep(0)
        assert now() == 0.0

    run_virtual(main())


def test_some_hundred_waits_for_nothing_take_no_time(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        for _ in range(1_500):
            await asyncio.sleep(1e-20)
        assert now() == 1.0

    run_virtual(main())


@pytest.mark.parametrize(
    "waits",
    with_slow([(5e-324,), (1e-20,), (1e-10,), (1e-20, 1.5e-20), (1e-20, 0)], [(1e-10,), (1e-20, 1.5e-20)]),
    ids=str,
)
def test_waits_that_move_the_clock_by_less_than_a_nanosecond_end(
    run_virtual: RunVirtual, waits: tuple[float, ...]
) -> None:
    """At 0 a float can tell apart far more moments than a program ever gets through."""

    async def main() -> None:
        loop, seen = asyncio.get_running_loop(), []
        for deadline in (0.0005, 0.0007):
            loop.call_at(deadline, lambda: seen.append(now()))

        async def spin(wait: float) -> None:
            end = loop.create_future()
            rearm(wait, end)
            await end

        def rearm(wait: float, end: asyncio.Future[None]) -> None:
            if now() < 1e-3:
                loop.call_later(wait, rearm, wait, end)
            else:
                end.set_result(None)

        await asyncio.gather(*map(spin, waits))
        assert seen == [0.0005, 0.0007], "the deadlines of others are kept"

    run_virtual(main())


def test_some_thousand_waits_of_a_nanosecond_are_exact(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        for number in range(5_000):
            until = (number + 1) * 2.0**-29
            await asyncio.sleep(until - now())
            assert now() == until

    run_virtual(main())


def test_a_spinning_program_comes_to_the_limit(run_virtual: RunVirtual) -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(1e-20)

    with pytest.raises(aio.DeadlockError, match=r"limit.*\n.*spin"):
        run_virtual(spin(), aio.VirtualClock(start=1000, limit=0.01))


def test_inside_a_block_too() -> None:
    async def main() -> None:
        async with aio.virtual_time(start=HOUR):
            until = now() + 1 / 3
            while (left := until - now()) > 0:
                await asyncio.sleep(left / 2)

    for make_loop in LOOPS.values():
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(main())
