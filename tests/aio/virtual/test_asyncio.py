"""What asyncio builds on time, in virtual time: it happens at once, in the order of deadlines, each at its own time."""

import asyncio
import random

import pytest

from aio.virtual.loops import HOUR, RunVirtual, now


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
