"""Virtual time on a loop that runs already: entering and leaving, and what of the loop is given back."""

import asyncio
import math

import pytest

import abeyant
from abeyant import aio
from aio.virtual.loops import HOUR, RunReal, now


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


def test_entering_is_no_slow_callback(run: RunReal, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        before = loop.slow_callback_duration
        async with aio.virtual_time(start=loop.time() + HOUR):
            pass
        await asyncio.sleep(0)
        assert loop.slow_callback_duration == before
        async with aio.virtual_time(start=loop.time() + HOUR):
            loop.slow_callback_duration = 2 * HOUR
            await asyncio.sleep(HOUR)
        assert loop.slow_callback_duration == 2 * HOUR

    with caplog.at_level("WARNING", "asyncio"):
        run(main(), debug=True)
    assert caplog.messages == []


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


def test_timers_that_are_pending_keep_their_delays_on_entering(run: RunReal) -> None:
    """T1: with one pending, time goes on from where it is, and is not rounded up past its deadline."""

    async def main() -> None:
        loop, seen = asyncio.get_running_loop(), list[str]()
        began = loop.time()
        loop.time = lambda: began  # type: ignore[method-assign]
        for left in (0.5, 0.45, 0.25):
            loop.call_at(began + left, seen.append, f"{left} s left")
        loop.call_at(began + 0.05, seen.append, "cancelled").cancel()
        async with aio.virtual_time() as clock:
            assert clock.time() == began
            await asyncio.sleep(0.1)
            assert seen == []
            await asyncio.sleep(0.3)
            assert seen == ["0.25 s left"]
        assert seen == ["0.25 s left"]
        await asyncio.sleep(0.15)
        assert seen == ["0.25 s left", "0.45 s left", "0.5 s left"]

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


def test_t1_t2_timers_made_before_go_by_a_clock_that_starts_behind_the_last_one(run: RunReal) -> None:
    async def main() -> None:
        timer, purgatory = aio.Timer(), aio.Purgatory("p")
        idle: list[tuple[str, float]] = []
        detector = abeyant.IdleDetector(5, lambda peer: idle.append((peer, now())), timer)
        ran: list[float] = []
        for start in (1000, 0, 500, 3):
            async with aio.virtual_time(start=start):
                timer.call_later(4, lambda: ran.append(now()))
                detector.seen("one")
                await asyncio.sleep(1)
                detector.seen("other")
                await asyncio.sleep(2)
                detector.seen("one")
                detector._check()
                assert not await purgatory.wait(["k"], timeout=2)
                assert (now(), ran, idle) == (start + 5, [start + 4], [])
                await asyncio.sleep(10)
                assert idle == [("other", start + 6), ("one", start + 8)]
                ran.clear()
                idle.clear()
                await asyncio.sleep(100)

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


@pytest.mark.parametrize("tick", [False, True])
@pytest.mark.parametrize("entered", ["before", "within"])
def test_t7_virtual_time_ends_well_whatever_holds_the_clock_then(run: RunReal, entered: str, tick: bool) -> None:
    freezegun = pytest.importorskip("freezegun")

    async def main() -> None:
        loop, frozen = asyncio.get_running_loop(), freezegun.freeze_time("2030-01-01", tick=tick)
        for _ in range(2):  # a loop that serves one test after another
            if entered == "before":
                frozen.start()
            async with aio.virtual_time() as clock:
                if entered == "within":
                    frozen.start()
                await asyncio.sleep(HOUR)
            left = loop.time()
            assert left >= clock.time()
            frozen.stop()
            assert left <= loop.time() < left + 60
            await asyncio.wait_for(asyncio.sleep(0.01), 30)
            assert left + 0.01 <= loop.time() < left + 60

    run(main())


def test_time_that_stands_still_after_the_block_moves_with_who_holds_it(run: RunReal) -> None:
    freezegun = pytest.importorskip("freezegun")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with freezegun.freeze_time("2030-01-01") as frozen:
            async with aio.virtual_time():
                await asyncio.sleep(HOUR)
            left = loop.time()
            assert loop.time() == left
            frozen.tick(5)
            assert loop.time() == left + 5

    run(main())
