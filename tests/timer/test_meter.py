"""Lateness and callback time, measured where switched on: what is counted, and that nothing is where it is off."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from abeyant import SystemTimer, aio
from abeyant.timer.meter import BOUNDS, Durations, Meter
from waiting import wait_until


def at_least(durations: Durations, seconds: float) -> int:
    """How many of them were longer than a bound below so many seconds."""
    return sum(count for bound, count in zip((0.0, *BOUNDS), durations.counts, strict=True) if bound >= seconds)


def measured(timer: SystemTimer) -> int:
    found = timer.latencies()
    return 0 if found is None else sum(found.callback.counts)


def test_nothing_is_counted_where_it_is_off() -> None:
    with SystemTimer() as timer:
        timer.call_later(0, lambda: None)
        wait_until(lambda: timer.stats().expired == 1)
        assert timer.latencies() is None


def test_each_callback_with_every_1() -> None:
    with SystemTimer() as timer:
        timer.measure(every=1)
        timer.call_later(0, time.sleep, 0.02)
        for _ in range(9):
            timer.call_later(0.001, lambda: None)  # late, because of the first
        timer.call_later(0.001, lambda: 1 / 0)  # measured too
        wait_until(lambda: measured(timer) == 11)
        found = timer.latencies()
    assert found is not None
    assert sum(found.callback.counts) == sum(found.lateness.counts) == 11
    assert at_least(found.callback, 0.016) >= 1
    assert found.callback.total >= 0.02
    assert at_least(found.lateness, 0.008) >= 10
    assert found.lateness.total >= 10 * 0.018


def test_a_sample_is_one_in_so_many() -> None:
    with SystemTimer() as timer:
        timer.measure(every=10)
        for _ in range(100):
            timer.call_later(0, lambda: None)
        wait_until(lambda: timer.stats().expired == 100)
        wait_until(lambda: measured(timer) == 10)
        timer.measure(every=1)
        for _ in range(20):
            timer.call_later(0, lambda: None)
        wait_until(lambda: measured(timer) == 30)


def test_in_a_loop() -> None:
    async def main() -> None:
        timer = aio.Timer()
        timer.measure(every=1)
        timer.call_later(0.001, time.sleep, 0.02)
        timer.call_later(0.002, lambda: None)
        await asyncio.sleep(0.06)
        found = timer.latencies()
        assert found is not None
        assert sum(found.callback.counts) == 2
        assert at_least(found.callback, 0.016) == 1
        timer.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("nanoseconds", "bucket"), [(0, 0), (1024, 0), (1025, 1), (2048, 1), (2049, 2), (1 << 34, 24), ((1 << 34) + 1, 25)]
)
def test_a_duration_is_in_the_first_bucket_that_reaches_it(nanoseconds: int, bucket: int) -> None:
    bounds = [*BOUNDS, float("inf")]
    assert nanoseconds / 1e9 <= bounds[bucket]
    assert bucket == 0 or nanoseconds / 1e9 > bounds[bucket - 1]
    assert len(BOUNDS) + 1 == len(Meter(1).read().lateness.counts)


@pytest.mark.parametrize("every", [0, -1, 1.5, True, 10**9])
def test_bad_input(every: object) -> None:
    with SystemTimer() as timer, pytest.raises(ValueError, match="every must be from 1 to 1000000"):
        timer.measure(every)  # type: ignore[arg-type]


def test_not_with_an_executor() -> None:
    with (
        ThreadPoolExecutor(1) as executor,
        SystemTimer(executor=executor) as timer,
        pytest.raises(TypeError, match="runs callbacks in its executor"),
    ):
        timer.measure()
