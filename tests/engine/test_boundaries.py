"""Times at which arithmetic likes to go wrong: 0, the edges of ticks, buckets and wheels, and of machine integers."""

from __future__ import annotations

import pytest

from abeyant.engine import MAX_TIME, TimingWheel

SHAPES = [(1, 2), (1, 10), (1, 20), (3, 3), (7, 4), (1000, 64), (10**6, 64), (1, 65_536), (2**40, 5), (2**61, 2)]


def edges(tick: int, wheel_size: int, start: int) -> list[int]:
    """A unit to either side of the ticks next to the edges of the buckets and of the reach of every wheel."""
    found = set()
    span = tick
    while span <= MAX_TIME and span < 2**60:
        for multiple in (0, 1, 2, wheel_size - 1, wheel_size, wheel_size + 1):
            for ticks in (-1, 0, 1):
                for units in (-1, 0, 1):
                    found.add((start // span + multiple) * span + ticks * tick + units)
        span *= wheel_size
    for power in (31, 32, 53, 61, 62):
        found |= {2**power - tick, 2**power - 1, 2**power, 2**power + 1}
    return sorted(time for time in found if -MAX_TIME <= time <= MAX_TIME)


def due(deadline: int, tick: int, start: int) -> int:
    """When a task has to come out: at its deadline rounded up, or at once."""
    return max(-(-deadline // tick) * tick, start // tick * tick)


def run_out(wheel: TimingWheel) -> list[tuple[int, object]]:
    """What comes out, and when, if the wheel is driven by its own `next_expiration`."""
    came = []
    steps = 0
    while (upcoming := wheel.next_expiration()) is not None:
        if upcoming > MAX_TIME:  # rounded up past the end of time: it can be removed, and never comes due
            assert wheel.advance(MAX_TIME) == []
            break
        came += [(wheel.clock, item) for item in wheel.advance(upcoming)]
        steps += 1
        assert steps < 1000 * (1 + len(came) + len(wheel)), "no end of steps"
    wheel._check()
    return came


@pytest.mark.parametrize(("tick", "wheel_size"), SHAPES)
@pytest.mark.parametrize("start", [0, 1, 12_345, 2**31 - 1, 2**53 + 1, 2**61 + 5])
def test_t1_t2_each_comes_out_at_its_tick_alone(tick: int, wheel_size: int, start: int) -> None:
    for deadline in edges(tick, wheel_size, start):
        if wheel_size > 1000 and deadline % 5:
            continue  # enough of them: a wheel of 65,536 buckets takes a while to make
        wheel = TimingWheel(tick, min(wheel_size, 1000), start)
        wheel.add(deadline, deadline)
        expected = due(deadline, tick, start)
        assert run_out(wheel) == ([(expected, deadline)] if expected <= MAX_TIME else [])


@pytest.mark.parametrize(("tick", "wheel_size"), SHAPES)
@pytest.mark.parametrize("start", [0, 1, 12_345, 2**31 - 1, 2**53 + 1, 2**61 + 5])
def test_t1_t2_t6_all_of_them_together_come_out_in_order(tick: int, wheel_size: int, start: int) -> None:
    deadlines = edges(tick, wheel_size, start)
    wheel = TimingWheel(tick, wheel_size, start)
    for deadline in reversed(deadlines):
        wheel.add(deadline, deadline)
    wheel._check()
    expected = [(due(deadline, tick, start), deadline) for deadline in reversed(deadlines)]
    expected.sort(key=lambda task: -(-task[1] // tick))  # by tick; stable, so first in, first out
    assert run_out(wheel) == [(time, deadline) for time, deadline in expected if time <= MAX_TIME]


@pytest.mark.parametrize(("tick", "wheel_size"), SHAPES)
def test_the_last_deadline_and_the_last_time_there_are(tick: int, wheel_size: int) -> None:
    wheel = TimingWheel(tick, wheel_size)
    wheel.add(MAX_TIME, "last")
    wheel._check()
    assert wheel.advance(MAX_TIME - tick) == []
    wheel._check()
    if MAX_TIME % tick == 0:
        assert wheel.advance(MAX_TIME) == ["last"]
    else:
        assert wheel.advance(MAX_TIME) == [], "it rounds up past the end of time"
        assert len(wheel) == 1
    wheel._check()


@pytest.mark.parametrize(("tick", "wheel_size"), SHAPES)
def test_a_wheel_that_starts_at_the_end_of_time(tick: int, wheel_size: int) -> None:
    wheel = TimingWheel(tick, wheel_size, MAX_TIME)
    wheel.add(MAX_TIME, "now")
    wheel.add(0, "long ago")
    wheel._check()
    assert wheel.advance(MAX_TIME)[0] == "long ago"
    wheel._check()


@pytest.mark.parametrize(("tick", "wheel_size"), SHAPES)
def test_spans_grow_by_the_wheel_size_even_past_the_largest_machine_integer(tick: int, wheel_size: int) -> None:
    wheel = TimingWheel(tick, wheel_size)
    wheel.add(MAX_TIME, "item")
    spans = wheel.spans()
    assert spans == [tick * wheel_size ** (level + 1) for level in range(len(spans))]
    assert spans[-1] > MAX_TIME - tick, "the last wheel reaches the last deadline"


def test_refreshing_from_one_end_of_time_to_the_other() -> None:
    wheel = TimingWheel(1, 2, start=2**61)
    handle = wheel.add(-MAX_TIME, "item")
    for deadline in (MAX_TIME, -MAX_TIME, 2**61 + 1, MAX_TIME, 2**61 + 1):
        assert wheel.refresh(handle, deadline)
        assert wheel.deadline(handle) == deadline
        wheel._check()
    assert wheel.advance(2**61) == []
    assert wheel.advance(2**61 + 1) == ["item"]


def test_the_tick_after_the_first_wheel_belongs_to_the_second() -> None:
    for wheel_size in (2, 10, 20, 64):
        for clock in (0, 1, wheel_size - 1, wheel_size, 12_345):
            wheel = TimingWheel(1, wheel_size, start=clock)
            wheel.add(clock + wheel_size - 1, "last of the first wheel")
            assert [bucket.level for bucket in wheel.buckets()] == [0]
            wheel.add(clock + wheel_size, "first of the second")
            assert [bucket.level for bucket in wheel.buckets()] == [0, 1]
