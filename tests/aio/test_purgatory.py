"""Waiting in coroutines: one end each (P1), no change missed (P2), nothing left over (P4), errors to their own (P6)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any, Literal

import pytest

from abeyant import ManualTimer, PurgatoryClosedError, SystemTimer
from abeyant.aio import Outcome, Purgatory, Timer, run_virtual
from aio.any_loop import LOOPS, LoopFactory, run
from purgatory.waits import in_thread

each_loop = pytest.mark.parametrize("factory", LOOPS.values(), ids=LOOPS)


class Level:
    """Something that rises, and what waits for it to."""

    def __init__(self) -> None:
        self.value = 0
        self.looks = 0

    def reaches(self, value: int) -> Callable[[], bool]:
        def until() -> bool:
            self.looks += 1
            return self.value >= value

        return until


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def is_empty(purgatory: Purgatory) -> bool:
    stats = purgatory.stats()
    return stats.watched == stats.watched_keys == stats.delayed == len(purgatory) == 0


# -- completed or expired ------------------------------------------------------------------------------------


def test_a_condition_that_holds_already_completes_at_once() -> None:
    async def main() -> None:
        purgatory = Purgatory("p")
        others: list[int] = []
        asyncio.get_running_loop().call_soon(others.append, 1)
        outcome = await purgatory.wait(["k"], until=lambda: True, timeout=30.0)
        assert outcome is Outcome.COMPLETED
        assert others == [], "without a turn of the loop"
        assert is_empty(purgatory)
        assert purgatory.stats().completed == 1

    run_virtual(main())


def test_o1_it_completes_at_the_check_at_which_its_condition_holds() -> None:
    async def main() -> None:
        purgatory, level = Purgatory("p"), Level()
        one = asyncio.create_task(purgatory.wait(["a", "b"], level.reaches(1), timeout=30))
        two = asyncio.create_task(purgatory.wait(["b"], level.reaches(2), timeout=30))
        await settle()
        assert len(purgatory) == 2
        assert purgatory.check("a") == purgatory.check("b") == purgatory.check("c") == 0
        level.value = 1
        assert purgatory.check("b") == 1
        assert await one is Outcome.COMPLETED
        assert not two.done()
        level.value = 2
        assert purgatory.check("a") == 0, "nobody waits on that any more"
        assert purgatory.check("b") == 1
        assert await two
        assert is_empty(purgatory)

    run_virtual(main())


@each_loop
def test_o2_else_it_expires_and_is_false(factory: LoopFactory) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        purgatory = Purgatory("p")
        began = loop.time()
        outcome = await purgatory.wait(["k"], until=lambda: False, timeout=0.03)
        assert loop.time() >= began + 0.03
        assert outcome is Outcome.EXPIRED
        assert not outcome
        assert [outcome, Outcome.COMPLETED] == ["expired", "completed"]
        assert Outcome.COMPLETED
        assert is_empty(purgatory)

    run(main(), factory)


def test_without_a_condition_the_first_check_completes_it() -> None:
    async def main() -> None:
        purgatory = Purgatory("p")
        purgatory.check("k")
        waits = [asyncio.create_task(purgatory.wait(["k"], timeout=10)) for _ in range(3)]
        late = asyncio.create_task(purgatory.wait(["other"], timeout=10))
        await settle()
        assert purgatory.check("k") == 3
        assert await asyncio.gather(*waits) == ["completed"] * 3
        assert await late == "expired"

    run_virtual(main())


def test_p1_thousands_wait_and_each_ends_once() -> None:
    async def main() -> None:
        purgatory, level, rng = Purgatory("p"), Level(), random.Random(1)
        expected: list[str] = []
        waits: list[asyncio.Task[Outcome]] = []
        for number in range(5000):
            value, timeout = rng.randrange(1, 200), rng.randrange(1, 200) - 0.5
            expected.append("completed" if value <= timeout else "expired")
            waits.append(asyncio.create_task(purgatory.wait([number % 50], level.reaches(value), timeout=timeout)))
        completed = 0
        for _ in range(200):
            await asyncio.sleep(1)
            level.value += 1
            completed += sum(purgatory.check(key) for key in range(50))
        assert await asyncio.gather(*waits) == expected
        assert completed == expected.count("completed")
        stats = purgatory.stats()
        assert (stats.completed, stats.expired, stats.cancelled) == (completed, 5000 - completed, 0)
        assert is_empty(purgatory)

    run_virtual(main())


def test_p2_a_change_between_the_first_look_and_the_watching_is_not_missed() -> None:
    async def main() -> None:
        purgatory = Purgatory("p")
        await purgatory.wait(["k"], until=lambda: True, timeout=1)
        ready = False

        def change() -> None:
            nonlocal ready
            ready = True
            assert purgatory.check("k") == 0  # nobody is on the list yet

        def until() -> bool:
            seen = ready
            if not seen:
                in_thread(change)  # just after the look
            return seen

        assert await purgatory.wait(["k"], until, timeout=30)

    run_virtual(main())


def test_p8_one_timer_serves_many_and_any_of_the_package_will_do() -> None:
    async def main() -> None:
        manual = ManualTimer()
        purgatories = [Purgatory(f"p{number}", manual) for number in range(3)]
        waits = [asyncio.create_task(purgatory.wait(["k"], timeout=5)) for purgatory in purgatories]
        await settle()
        assert len(manual) == 3
        purgatories[0].check("k")
        manual.advance(5)
        assert await asyncio.gather(*waits) == ["completed", "expired", "expired"]
        with SystemTimer() as system:
            assert await Purgatory("p", system).wait(["k"], timeout=0.01) is Outcome.EXPIRED
        shared = Timer()
        assert await Purgatory("p", shared).wait(["k"], timeout=0.01) is Outcome.EXPIRED
        assert shared.stats().expired == 1

    run(main())


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [LookupError("x"), asyncio.CancelledError("x"), StopIteration("x")])
def test_p6_what_the_condition_raises_reaches_its_awaiter_and_no_neighbour(error: BaseException) -> None:
    async def main() -> None:
        purgatory, level = Purgatory("p"), Level()

        def until() -> bool:
            if level.value:
                raise error
            return False

        kind = RuntimeError if isinstance(error, StopIteration) else type(error)
        waits = [asyncio.create_task(purgatory.wait(["k"], level.reaches(1), timeout=30)) for _ in range(3)]
        await settle()
        bad = asyncio.create_task(purgatory.wait(["k", "j"], until, timeout=30))
        await settle()
        waits += [asyncio.create_task(purgatory.wait(["k"], level.reaches(1), timeout=30)) for _ in range(3)]
        await settle()
        level.value = 1
        assert purgatory.check("k") == 6
        assert await asyncio.gather(*waits) == ["completed"] * 6
        with pytest.raises(kind, match="x"):
            await bad
        assert is_empty(purgatory)
        assert purgatory.stats().cancelled == 1
        with pytest.raises(kind, match="x"):  # and at the first look
            await purgatory.wait(["k"], until, timeout=30)
        assert is_empty(purgatory)

    run_virtual(main())


def test_a_coroutine_function_is_no_condition() -> None:
    async def until() -> bool:
        raise AssertionError

    async def main() -> None:
        with pytest.raises(TypeError, match=r"until must be a plain function, not .*until"):
            await Purgatory("p").wait(["k"], until, timeout=30)

    run(main())


def test_bad_arguments_are_named_and_leave_nothing() -> None:
    async def main() -> None:
        purgatory = Purgatory("p")
        for error, words, keys, until, timeout in [
            (TypeError, r"pass \['key'\]", "key", None, 1),
            (ValueError, "at least one key", [], None, 1),
            (TypeError, "unhashable", [[]], None, 1),
            (TypeError, "until must be callable, not True", ["k"], True, 1),
            (ValueError, "hundred years", ["k"], None, float("inf")),
            (TypeError, "timeout must be seconds", ["k"], None, "1"),
        ]:
            with pytest.raises(error, match=words):
                await purgatory.wait(keys, until, timeout=timeout)  # type: ignore[arg-type]
            assert is_empty(purgatory)
        with pytest.raises(TypeError, match="unhashable"):
            purgatory.check([])  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="unhashable"):
            in_thread(lambda: purgatory.check([]))  # type: ignore[arg-type]

    run(main())
    with pytest.raises(TypeError, match="unhashable"):
        Purgatory("p").check([])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timer must be"):
        Purgatory("p", 5)  # type: ignore[arg-type]


# -- cancelling, closing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timer", [True, False])
def test_p4_a_cancelled_wait_leaves_its_keys_and_the_timer_at_once(timer: bool) -> None:
    async def main() -> None:
        manual = ManualTimer()
        purgatory = Purgatory("p", manual if timer else None)
        level = Level()
        dead = weakref.ref(level)
        wait = asyncio.create_task(purgatory.wait(["a", "b", "c"], level.reaches(1), timeout=30))
        del level
        await settle()
        assert purgatory.stats().watched == 3
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert is_empty(purgatory)
        assert len(manual) == 0
        del wait
        await settle()  # the loop itself holds on to what it ran last
        gc.collect()
        assert dead() is None
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(purgatory.wait(["k"], timeout=30), 0.01)
        assert is_empty(purgatory)

    run(main())


@pytest.mark.parametrize("completing", [True, False])
@pytest.mark.parametrize("cancelled_first", [True, False])
def test_p1_cancelled_in_the_moment_of_its_end_it_ends_once_and_silently(
    completing: bool, cancelled_first: bool
) -> None:
    async def main() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        purgatory, level = Purgatory("p"), Level()

        def until() -> bool:
            if level.value and not completing:
                raise LookupError
            return level.value > 0

        wait = asyncio.create_task(purgatory.wait(["k"], until, timeout=30))
        await settle()
        level.value = 1
        if cancelled_first:
            wait.cancel()  # the task hears of it at its next step
        purgatory.check("k")
        if not cancelled_first:
            wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        del wait
        gc.collect()
        assert reported == []
        stats = purgatory.stats()
        assert stats.completed + stats.expired + stats.cancelled == 1
        assert stats.errors == 0

    run_virtual(main())


def test_a_loop_that_shuts_down_cancels_what_waits() -> None:
    purgatory = Purgatory("p")
    waits: list[asyncio.Task[Outcome]] = []

    async def main() -> None:
        waits.extend(asyncio.create_task(purgatory.wait(["k"], timeout=30)) for _ in range(10))
        await settle()
        assert len(purgatory) == 10

    run(main())
    assert all(wait.cancelled() for wait in waits)
    assert is_empty(purgatory)
    assert purgatory.check("k") == 0, "in a closed loop nobody waits"
    in_thread(lambda: purgatory.check("k"))
    assert purgatory.close() == 0


def test_a_coroutine_that_is_closed_leaves_too() -> None:
    loop = asyncio.SelectorEventLoop()
    purgatory = Purgatory("p")

    async def begin() -> Any:
        waiting = purgatory.wait(["k"], timeout=30)
        waiting.send(None)
        return waiting

    waiting = loop.run_until_complete(begin())
    assert len(purgatory) == 1
    loop.close()
    waiting.close()
    assert is_empty(purgatory)


@pytest.mark.parametrize("how", ["expire", "cancel"])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_p7_close_ends_what_waits_and_refuses_what_comes_after(
    how: Literal["expire", "cancel"], elsewhere: bool
) -> None:
    async def main() -> None:
        ended: list[int] = []
        with Purgatory("p") as purgatory:
            waits = [asyncio.create_task(purgatory.wait(["k"], timeout=30)) for _ in range(3)]
            await settle()
            assert repr(purgatory) == "<aio.Purgatory 'p', 3 waiting>"
            close: Callable[[], object] = lambda: ended.append(purgatory.close(how))  # noqa: E731
            in_thread(close) if elsewhere else close()
            assert ended == [3]
            assert purgatory.close(how) == 0
            for wait in waits:
                if how == "expire":
                    assert await wait is Outcome.EXPIRED
                else:
                    with pytest.raises(PurgatoryClosedError, match="'p', closed> was closed during the wait"):
                        await wait
            with pytest.raises(PurgatoryClosedError, match="accepts no wait"):
                await purgatory.wait(["k"], until=lambda: True, timeout=1)
        assert purgatory.closed

    run(main())


def test_p7_closed_before_anybody_waited() -> None:
    purgatory = Purgatory("p")
    with pytest.raises(ValueError, match='"expire" or "cancel"'):
        purgatory.close("now")  # type: ignore[arg-type]
    assert purgatory.close() == 0
    with pytest.raises(PurgatoryClosedError):
        run(purgatory.wait(["k"], timeout=1))
    assert purgatory.stats().completed == 0
    assert purgatory
    assert purgatory.name == "p"


def test_one_purgatory_is_one_loops() -> None:
    purgatory = Purgatory("p")
    run(purgatory.wait(["k"], timeout=0))
    with pytest.raises(RuntimeError, match="different event loop"):
        run(purgatory.wait(["k"], timeout=0))


# -- threads, context ----------------------------------------------------------------------------------------


@each_loop
@pytest.mark.parametrize("system", [True, False])
def test_p2_changes_from_other_threads_are_never_missed(factory: LoopFactory, system: bool) -> None:
    async def main() -> None:
        timer = SystemTimer() if system else None
        purgatory = Purgatory("p", timer)
        here = threading.get_ident()
        levels = [Level() for _ in range(4)]

        def until(level: Level, value: int) -> Callable[[], bool]:
            def look() -> bool:
                assert threading.get_ident() == here
                return level.value >= value

            return look

        def work(number: int) -> None:
            for value in range(1, 501):
                levels[number].value = value
                purgatory.check(number)

        async def follow(number: int) -> None:
            for value in range(1, 501):
                assert await purgatory.wait([number], until(levels[number], value), timeout=60)

        followers = [asyncio.create_task(follow(number)) for number in range(4) for _ in range(5)]
        workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
        for worker in workers:
            worker.start()
        await asyncio.wait_for(asyncio.gather(*followers), 50)
        for worker in workers:
            await asyncio.to_thread(worker.join, 30)
        stats = purgatory.stats()
        assert (stats.completed, stats.expired, stats.cancelled) == (4 * 5 * 500, 0, 0)
        assert is_empty(purgatory)
        if timer is not None:
            timer.close()

    run(main(), factory)


def test_p1_checks_time_outs_and_cancels_race_and_each_wait_ends_once() -> None:
    async def main() -> None:
        with SystemTimer(tick=0.0005) as timer:
            purgatory = Purgatory("p", timer)
            stop = threading.Event()

            def work() -> None:
                while not stop.is_set():
                    purgatory.check(1)
                    stop.wait(0.0005)

            worker = threading.Thread(target=work, daemon=True)
            worker.start()
            rng = random.Random(2)
            waits = []
            for _ in range(2000):
                waits.append(asyncio.create_task(purgatory.wait([1, 2], timeout=rng.uniform(0, 0.002))))
                if rng.random() < 0.2:
                    rng.choice(waits).cancel()
                if rng.random() < 0.3:
                    await asyncio.sleep(0)
            results = await asyncio.gather(*waits, return_exceptions=True)
            stop.set()
            await asyncio.to_thread(worker.join, 30)
            assert {type(result) for result in results} <= {Outcome, asyncio.CancelledError}
            stats = purgatory.stats()
            assert is_empty(purgatory)
            assert len(timer) == 0
        begun = stats.completed + stats.expired + stats.cancelled
        never_began = 2000 - begun  # cancelled before their first step
        assert 0 <= never_began <= sum(isinstance(result, asyncio.CancelledError) for result in results)

    run(main())


def test_the_condition_runs_in_its_awaiters_context() -> None:
    word: contextvars.ContextVar[str] = contextvars.ContextVar("word")

    async def wait(purgatory: Purgatory, mine: str) -> Outcome:
        word.set(mine)
        looks: list[str] = []

        def until() -> bool:
            looks.append(word.get())
            return len(looks) == 3

        outcome = await purgatory.wait(["k"], until, timeout=30)
        assert looks == [mine] * 3
        return outcome

    async def main() -> None:
        word.set("the checker's")
        purgatory = Purgatory("p")
        waits = [asyncio.create_task(wait(purgatory, mine)) for mine in ("a", "b")]
        await settle()
        assert purgatory.check("k") == 2
        assert await asyncio.gather(*waits) == ["completed"] * 2

    run_virtual(main())


def test_a_condition_may_check_other_keys() -> None:
    async def main() -> None:
        purgatory = Purgatory("p")
        done: list[int] = []

        def step(number: int) -> Callable[[], bool]:
            def until() -> bool:
                if len(done) != number or number == 0:
                    return len(done) > number
                done.append(number)
                purgatory.check(number + 1)
                return True

            return until

        waits = [asyncio.create_task(purgatory.wait([number], step(number), timeout=30)) for number in range(1, 200)]
        await settle()
        done.append(0)
        assert purgatory.check(1) == 1
        assert await asyncio.gather(*waits) == ["completed"] * 199
        assert done == list(range(200))

    run_virtual(main())


def test_many_checks_from_a_thread_wake_the_loop_once() -> None:
    class Counting(asyncio.SelectorEventLoop):
        wakes = 0

        def call_soon_threadsafe(self, *args: Any, **named: Any) -> asyncio.Handle:  # type: ignore[override]
            self.wakes += 1
            return super().call_soon_threadsafe(*args, **named)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Counting)
        purgatory = Purgatory("p")
        waits = [asyncio.create_task(purgatory.wait([key], timeout=30)) for key in range(1000)]
        await settle()
        in_thread(lambda: [purgatory.check(key) for key in range(1000)])  # while the loop is held up
        assert await asyncio.gather(*waits) == ["completed"] * 1000
        assert loop.wakes == 1

    run(main(), Counting)


def test_a_key_whose_comparison_raises_does_not_keep_others_from_being_looked_for() -> None:
    class Odd:
        def __hash__(self) -> int:
            return hash("k")

        def __eq__(self, other: object) -> bool:
            raise LookupError("odd")

    async def main() -> None:
        reported: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        purgatory = Purgatory("p")
        wait = asyncio.create_task(purgatory.wait(["k"], timeout=30))
        await settle()
        in_thread(lambda: [purgatory.check(Odd()), purgatory.check("k")])
        assert await wait
        assert [str(error) for error in reported] == ["odd"]

    run(main())


def test_checks_that_never_stop_coming_leave_the_loop_its_turns() -> None:
    async def main() -> None:
        purgatory = Purgatory("p")
        looks = 0

        def never() -> bool:  # by the time it has been looked at, another thread has changed it again
            nonlocal looks
            looks += 1
            if looks < 1000:
                in_thread(lambda: purgatory.check("k"))
            return False

        wait = asyncio.create_task(purgatory.wait(["k"], never, timeout=30))
        await settle()
        asyncio.get_running_loop().call_soon(wait.cancel)
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert looks < 100

    run(main())


def test_checks_of_one_key_from_threads_are_one_look() -> None:
    async def main() -> None:
        purgatory = Purgatory("p")
        looks: list[int] = []
        wait = asyncio.create_task(purgatory.wait(["k"], lambda: looks.append(0), timeout=30))
        await settle()
        looks.clear()
        in_thread(lambda: [purgatory.check("k") for _ in range(1000)])
        await settle()
        assert len(looks) == 1
        wait.cancel()

    run(main())


def test_checks_after_the_loop_is_closed_are_not_kept() -> None:
    purgatory = Purgatory("p")
    loop = asyncio.new_event_loop()
    with pytest.raises(TimeoutError):
        loop.run_until_complete(asyncio.wait_for(purgatory.wait(["k"], timeout=30), 0.01))
    in_thread(lambda: purgatory.check("k"))  # asks the loop, which does not run any more
    loop.close()
    key = type("Key", (), {})()
    kept = weakref.ref(key)
    assert purgatory.check(key) == 0
    del key
    gc.collect()
    assert kept() is None
