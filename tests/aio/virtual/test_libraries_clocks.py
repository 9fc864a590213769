"""With `clocks=True` libraries that measure by Python's clocks are right in virtual time; without, they are not."""

import asyncio
import datetime
import itertools

import pytest

from abeyant import aio
from aio.virtual.loops import HOUR, RunVirtual

pytest.importorskip("time_machine")


def virtual(limit: float = 24 * HOUR) -> aio.VirtualClock:
    return aio.VirtualClock(clocks=True, limit=limit)


async def fails() -> None:
    raise ConnectionError("down")


def test_tenacity_gives_up_after_its_delay(run_virtual: RunVirtual) -> None:
    tenacity = pytest.importorskip("tenacity")

    async def main() -> float:
        retrying = tenacity.AsyncRetrying(stop=tenacity.stop_after_delay(300), wait=tenacity.wait_fixed(10))
        with pytest.raises(tenacity.RetryError):
            await retrying(fails)
        return asyncio.get_running_loop().time()

    assert run_virtual(main(), virtual()) == 300


def test_stamina_gives_up_after_its_timeout(run_virtual: RunVirtual) -> None:
    stamina = pytest.importorskip("stamina")

    async def main() -> float:
        retrying = stamina.AsyncRetryingCaller(attempts=None, timeout=120.0, wait_initial=7, wait_max=7, wait_jitter=0)
        with pytest.raises(ConnectionError):
            await retrying(ConnectionError, fails)
        return asyncio.get_running_loop().time()

    assert 110 <= run_virtual(main(), virtual()) <= 130


def test_aiobreaker_closes_again_after_its_timeout(run_virtual: RunVirtual) -> None:
    aiobreaker = pytest.importorskip("aiobreaker")

    async def works() -> str:
        return "up"

    async def main() -> None:
        breaker = aiobreaker.CircuitBreaker(fail_max=1, timeout_duration=datetime.timedelta(minutes=5))
        with pytest.raises(aiobreaker.CircuitBreakerError):
            await breaker.call_async(fails)
        await asyncio.sleep(299)
        with pytest.raises(aiobreaker.CircuitBreakerError):
            await breaker.call_async(works)
        await asyncio.sleep(2)
        assert await breaker.call_async(works) == "up"

    run_virtual(main(), virtual())


def test_apscheduler_runs_its_jobs_when_they_are_due(run_virtual: RunVirtual) -> None:
    schedulers = pytest.importorskip("apscheduler.schedulers.asyncio")

    async def main() -> None:
        ran, loop = list[float](), asyncio.get_running_loop()

        async def job() -> None:
            ran.append(round(loop.time() - began))

        scheduler = schedulers.AsyncIOScheduler(timezone=datetime.UTC)
        scheduler.add_job(job, "interval", minutes=10)
        scheduler.start()
        began = loop.time()
        await asyncio.sleep(HOUR + 1)
        scheduler.shutdown()
        assert ran == [600, 1200, 1800, 2400, 3000, 3600]

    run_virtual(main(), virtual())


def test_textuals_intervals_keep_their_pace(run_virtual: RunVirtual) -> None:
    app = pytest.importorskip("textual.app")

    async def main() -> None:
        ran, loop = list[float](), asyncio.get_running_loop()

        class Clock(app.App[None]):  # type: ignore[misc,name-defined]
            def on_mount(self) -> None:
                self.set_interval(60, lambda: ran.append(loop.time()))

        async with Clock().run_test():
            await asyncio.sleep(10 * 60 + 1)
        pauses = [later - earlier for earlier, later in itertools.pairwise(ran)]
        assert len(ran) == 10
        assert pauses == [pytest.approx(60, abs=0.1)] * 9

    run_virtual(main(), virtual())


def test_tornados_periodic_callback_keeps_its_pace(run_virtual: RunVirtual) -> None:
    ioloop = pytest.importorskip("tornado.ioloop")

    async def main() -> None:
        ran, loop = list[float](), asyncio.get_running_loop()
        callback = ioloop.PeriodicCallback(lambda: ran.append(loop.time()), 60_000)
        callback.start()
        await asyncio.sleep(10 * 60 + 1)
        callback.stop()
        assert ran == [pytest.approx(60 * (nth + 1), abs=0.01) for nth in range(10)]

    run_virtual(main(), virtual())
