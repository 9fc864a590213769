"""The worked example of the design, to the bucket and the clock step."""

from __future__ import annotations

import pytest

from abeyant.engine import Bucket, TimingWheel

DEADLINES = (9, 88, 222, 520, 521, 522)


@pytest.fixture
def wheel() -> TimingWheel:
    wheel = TimingWheel(tick=1, wheel_size=10, start=0)
    for deadline in DEADLINES:
        wheel.add(deadline, deadline)
    wheel._check()
    return wheel


def test_each_task_is_filed_in_the_lowest_wheel_that_reaches_it(wheel: TimingWheel) -> None:
    assert wheel.buckets() == [
        Bucket(level=0, index=9, expiration=9, deadlines=[9]),
        Bucket(level=1, index=8, expiration=80, deadlines=[88]),
        Bucket(level=2, index=2, expiration=200, deadlines=[222]),
        Bucket(level=2, index=5, expiration=500, deadlines=[520, 521, 522]),
    ]
    assert wheel.spans() == [10, 100, 1000]
    assert wheel.stats().queued_buckets == 4, "the delay queue holds buckets, not tasks"


def test_the_items_of_what_is_pending_can_be_listed(wheel: TimingWheel) -> None:
    wheel.advance(100)
    assert set(wheel.items()) == {222, 520, 521, 522}
    wheel.drain()
    assert wheel.items() == []


def test_the_clock_steps_from_bucket_to_bucket_and_each_task_is_due_at_its_deadline(wheel: TimingWheel) -> None:
    steps = []
    due = {}
    while (upcoming := wheel.next_expiration()) is not None:
        steps.append(upcoming)
        for item in wheel.advance(upcoming):
            due[item] = wheel.clock
        wheel._check()
    assert steps == [9, 80, 88, 200, 220, 222, 500, 520, 521, 522]
    assert due == {deadline: deadline for deadline in DEADLINES}


def test_a_far_task_cascades_through_every_wheel_before_it_runs(wheel: TimingWheel) -> None:
    journey: list[Bucket] = []
    while len(wheel):
        where = [bucket for bucket in wheel.buckets() if 222 in bucket.deadlines]
        if where and (not journey or journey[-1] != where[0]):
            journey += where
        wheel.advance(wheel.next_expiration() or 0)
    assert journey == [
        Bucket(level=2, index=2, expiration=200, deadlines=[222]),
        Bucket(level=1, index=2, expiration=220, deadlines=[222]),
        Bucket(level=0, index=2, expiration=222, deadlines=[222]),
    ]


def test_one_jump_of_the_clock_runs_all_of_it_in_order(wheel: TimingWheel) -> None:
    assert wheel.advance(1000) == list(DEADLINES)
    assert wheel.next_expiration() is None
    assert wheel.buckets() == []
    wheel._check()


def test_with_twenty_buckets_a_tick_of_one_makes_wheels_of_20_of_400_and_of_8000() -> None:
    wheel = TimingWheel(tick=1, wheel_size=20, start=0)
    filed = {}
    for deadline in (1, 19, 20, 399, 400, 7999, 8000):
        handle = wheel.add(deadline, deadline)
        filed[deadline] = wheel.buckets()[-1].level
        if deadline == 7999:
            assert wheel.spans() == [20, 400, 8000]
        wheel.remove(handle)
    assert filed == {1: 0, 19: 0, 20: 1, 399: 1, 400: 2, 7999: 2, 8000: 3}
    assert wheel.spans() == [20, 400, 8000, 160_000]


def test_overflow_wheels_are_made_when_first_needed() -> None:
    wheel = TimingWheel(tick=1, wheel_size=10, start=0)
    assert wheel.spans() == [10]
    wheel.add(9, "near")
    assert wheel.stats().levels == 1
    wheel.add(10, "a bucket further")
    assert wheel.stats().levels == 2
    wheel.add(100_000, "far")
    assert wheel.spans() == [10, 100, 1000, 10_000, 100_000, 1_000_000]
