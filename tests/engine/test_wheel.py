"""The wheel, behaviour by behaviour."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import weakref
from collections.abc import Callable

import pytest

from abeyant.engine import MAX_TIME, TimingWheel, is_compiled
from oracle import Oracle

YEAR = 365 * 24 * 3600 * 10**9


class Thing:
    """An item that can be watched by a weak reference."""


def everything(wheel: TimingWheel, now: int, budget: int) -> list[object]:
    """What comes due by `now`, in turns of `budget`; every turn has to get somewhere."""
    out: list[object] = []
    turns = 2 + len(wheel) * (wheel.stats().levels + 3)
    while (upcoming := wheel.next_expiration()) is not None and upcoming <= now:
        items = wheel.advance(now, budget)
        wheel._check()
        assert len(items) <= budget
        out += items
        turns -= 1
        assert turns >= 0, "no progress"
    return out


# -- coming due ----------------------------------------------------------------------------------------------


def test_a_new_wheel_has_nothing_to_do() -> None:
    wheel = TimingWheel()
    assert len(wheel) == 0
    assert wheel.next_expiration() is None
    assert wheel.advance(10**18) == []
    assert wheel.poll(10**18) is None
    assert wheel.drain() == []
    assert wheel.buckets() == []
    wheel._check()


@pytest.mark.parametrize(("tick", "deadline", "due"), [(1, 5, 5), (10, 1, 10), (10, 10, 10), (10, 11, 20), (7, 0, 0)])
def test_t1_deadlines_round_up_to_a_tick(tick: int, deadline: int, due: int) -> None:
    wheel = TimingWheel(tick, 10)
    handle = wheel.add(deadline, "item")
    assert wheel.deadline(handle) == due
    if due:
        assert wheel.advance(due - 1) == []
    assert wheel.advance(due) == ["item"]


def test_t1_the_clock_rounds_down_to_a_tick() -> None:
    wheel = TimingWheel(10, 10)
    wheel.add(20, "item")
    assert wheel.advance(19) == []
    assert wheel.clock == 10
    assert wheel.advance(20) == ["item"]


@pytest.mark.parametrize("start", [0, 1, 7, 13, 99, 1234, 10**9 + 7, 2**53 + 1])
@pytest.mark.parametrize("tick", [1, 7, 13, 1000])
def test_t1_t2_a_start_that_is_not_a_multiple_of_the_tick(tick: int, start: int) -> None:
    wheel = TimingWheel(tick, 4, start)
    assert wheel.clock == start // tick * tick
    for delay in range(4 * tick + 2):
        wheel.add(start + delay, start + delay)
    for now in range(start, start + 6 * tick):
        for item in wheel.advance(now):
            assert isinstance(item, int)
            assert item <= now, "never early"
            assert now - item < tick, "less than a tick late, seen from each unit of time"
    assert len(wheel) == 0


def test_t5_a_deadline_that_is_past_comes_out_at_the_next_turn_and_not_before() -> None:
    wheel = TimingWheel(start=100)
    for deadline in (100, 99, 0, -5, -MAX_TIME):
        wheel.add(deadline, deadline)
    assert len(wheel) == 5
    assert wheel.next_expiration() == 100
    assert wheel.advance(100) == [-MAX_TIME, -5, 0, 99, 100]


def test_t6_overdue_tasks_come_before_due_ones_and_in_order_of_their_deadlines() -> None:
    wheel = TimingWheel(start=100)
    wheel.add(100, "due")
    wheel.add(50, "overdue")
    wheel.add(20, "longer overdue")
    wheel.add(50, "overdue, added later")
    assert wheel.advance(100) == ["longer overdue", "overdue", "overdue, added later", "due"]


@pytest.mark.parametrize("wheel_size", [2, 3, 4, 10])
@pytest.mark.parametrize("budget", [1, 2, 3, 10**6])
def test_t6_within_a_tick_first_in_first_out_wherever_the_tasks_were_filed(wheel_size: int, budget: int) -> None:
    # One task for the same tick from every earlier tick: they sit in every wheel there is when it comes up.
    for deadline in range(1, 70):
        wheel = TimingWheel(1, wheel_size)
        for now in range(deadline + 1):
            assert everything(wheel, now - 1, budget) == []
            wheel.advance(now, 1)  # may stop midway through a cascade
            wheel.add(deadline, now)
        assert everything(wheel, deadline, budget) == list(range(deadline + 1))


@pytest.mark.parametrize("wheel_size", [2, 5, 64])
def test_t6_random_deadlines_come_out_sorted_and_stable(wheel_size: int) -> None:
    rng = random.Random(wheel_size)
    wheel = TimingWheel(3, wheel_size)
    deadlines = [rng.randrange(10 ** rng.randint(1, 7)) for _ in range(5000)]
    for number, deadline in enumerate(deadlines):
        wheel.add(deadline, number)
    assert wheel.advance(10**7 + 3) == sorted(range(5000), key=lambda n: -(-deadlines[n] // 3))


def test_t7_time_does_not_go_back() -> None:
    wheel = TimingWheel(start=1000)
    wheel.add(1500, "item")
    assert wheel.advance(1200) == []
    for earlier in (1199, 0, -1, -(2**62)):
        assert wheel.advance(earlier) == []
        assert wheel.poll(earlier) is None
        assert wheel.clock == 1200
        wheel._check()
    assert wheel.advance(1500) == ["item"]


def test_t7_a_clock_that_goes_back_still_gets_what_was_due_already() -> None:
    wheel = TimingWheel()
    wheel.add(10, "item")
    wheel.add(10, "another")
    while not wheel.advance(10, 1):
        pass
    assert wheel.advance(3) == ["another"]


def test_items_may_be_anything_even_none_or_equal_to_one_another() -> None:
    wheel = TimingWheel()
    items: list[object] = [None, 0, "", (), "same", "same", wheel]
    for item in items:
        wheel.add(5, item)
    assert wheel.advance(5) == items


# -- removing ------------------------------------------------------------------------------------------------


def test_t3_a_removed_task_is_handed_back_once_and_never_comes_due() -> None:
    wheel = TimingWheel()
    handle = wheel.add(5, "item")
    assert wheel.remove(handle) == "item"
    assert wheel.remove(handle) is None
    assert not wheel.is_pending(handle)
    assert wheel.deadline(handle) is None
    assert not wheel.refresh(handle, 9)
    assert wheel.advance(100) == []
    assert len(wheel) == 0


def test_t3_a_task_that_came_out_cannot_be_removed_though_its_slot_is_used_again() -> None:
    wheel = TimingWheel()
    handle = wheel.add(5, "item")
    assert wheel.advance(5) == ["item"]
    wheel.add(9, "in the same slot")
    assert wheel.remove(handle) is None
    assert not wheel.refresh(handle, 100)
    assert wheel.advance(9) == ["in the same slot"]


def in_state(state: str) -> tuple[TimingWheel, list[int]]:
    """A wheel, wheel size 10, with five tasks (items 0 to 4) in the given state, and their handles."""
    if state == "overdue":
        wheel = TimingWheel(1, 10, start=1000)
        return wheel, [wheel.add(900, item) for item in range(5)]
    if state == "due":
        wheel = TimingWheel(1, 10, start=1000)
        return wheel, [wheel.add(1000, item) for item in range(5)]
    wheel = TimingWheel(1, 10)
    handles = [wheel.add({"filed": 7, "filed far away": 785}.get(state, 85), item) for item in range(5)]
    if state == "cascading":
        assert wheel.advance(80, 2) == []  # three are still to be filed anew
        assert wheel.clock == 80
        assert wheel.stats().cascaded == 2
    wheel._check()
    return wheel, handles


STATES = ["filed", "filed far away", "cascading", "due", "overdue"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("which", range(5))
def test_t3_t4_a_task_can_be_removed_in_every_state(state: str, which: int) -> None:
    wheel, handles = in_state(state)
    assert wheel.remove(handles[which]) == which
    wheel._check()
    assert len(wheel) == 4
    assert not any(len(bucket.deadlines) > 4 for bucket in wheel.buckets())
    assert wheel.advance(2000) == [item for item in range(5) if item != which]
    wheel._check()


@pytest.mark.parametrize("state", STATES)
def test_t10_when_all_has_been_removed_there_is_nothing_to_wake_for(state: str) -> None:
    wheel, handles = in_state(state)
    for handle in handles:
        wheel.remove(handle)
    assert wheel.next_expiration() is None
    assert wheel.buckets() == []
    assert wheel.advance(2000) == []
    wheel._check()


def test_t4_a_removed_task_is_unreachable_at_once_and_leaves_no_trace() -> None:
    wheel = TimingWheel(1, 10)
    thing = Thing()
    dead = weakref.ref(thing)
    handle = wheel.add(1234, thing)
    wheel.add(1234, "neighbour")
    del thing
    assert dead() is not None
    wheel.remove(handle)
    assert dead() is None, "without the help of the garbage collector"
    assert [bucket.deadlines for bucket in wheel.buckets()] == [[1234]]


def test_t4_t9_counts_are_exact_and_neighbours_unharmed_among_a_hundred_thousand() -> None:
    rng = random.Random(1)
    wheel = TimingWheel(1, 64)
    deadlines = [rng.randrange(1, 10**7) for _ in range(100_000)]
    handles = [wheel.add(deadline, number) for number, deadline in enumerate(deadlines)]
    assert len(wheel) == 100_000
    removed = set(rng.sample(range(100_000), 60_000))
    for count, number in enumerate(removed, 1):
        assert wheel.remove(handles[number]) == number
        if count % 10_000 == 0:
            assert len(wheel) == 100_000 - count
            assert sum(len(bucket.deadlines) for bucket in wheel.buckets()) == 100_000 - count
    wheel._check()
    left = [number for number in range(100_000) if number not in removed]
    assert wheel.advance(10**7) == sorted(left, key=lambda number: deadlines[number])
    stats = wheel.stats()
    assert (stats.started, stats.cancelled, stats.expired, stats.pending) == (100_000, 60_000, 40_000, 0)


def test_a_bucket_that_emptied_is_used_again() -> None:
    wheel = TimingWheel(1, 10)
    for look in (False, True):  # to look lets go of the bucket
        wheel.remove(wheel.add(55, "gone"))
        if look:
            assert wheel.next_expiration() is None
            assert wheel.stats().queued_buckets == 0
        handle = wheel.add(55, "stays")
        wheel._check()
        assert wheel.next_expiration() == 50
        assert wheel.remove(handle) == "stays"
    wheel.add(55, "stays")
    assert wheel.advance(54) == []
    assert wheel.advance(55) == ["stays"]


def test_start_and_stop_without_time_passing_does_not_fill_the_delay_queue() -> None:
    wheel = TimingWheel(1, 64)
    for number in range(50_000):
        wheel.remove(wheel.add(1 + number % 4000, "item"))
    assert wheel.stats().queued_buckets <= 64 * wheel.stats().levels
    wheel._check()


# -- refreshing ----------------------------------------------------------------------------------------------


def test_a_refresh_to_later_leaves_the_task_where_it_is_filed_until_its_bucket_comes_up() -> None:
    wheel = TimingWheel(1, 10)
    handle = wheel.add(5, "item")
    before = wheel.buckets()[0]
    for later in (6, 60, 600):
        assert wheel.refresh(handle, later)
        assert wheel.deadline(handle) == later
        assert wheel.buckets() == [before._replace(deadlines=[later])], "one store"
        wheel._check()
    assert wheel.next_expiration() == 5
    assert wheel.advance(599) == []
    assert wheel.advance(600) == ["item"]


def test_t1_t2_a_refreshed_task_comes_due_at_its_last_deadline() -> None:
    for first in (3, 30, 300):
        for second in range(1, 320):
            wheel = TimingWheel(1, 10)
            handle = wheel.add(first, "item")
            wheel.refresh(handle, second)
            wheel._check()
            assert wheel.advance(second - 1) == []
            assert wheel.advance(second) == ["item"]


def test_a_refresh_to_nearer_files_it_anew() -> None:
    wheel = TimingWheel(1, 10)
    handle = wheel.add(600, "item")
    assert wheel.refresh(handle, 4)
    assert [(bucket.level, bucket.index) for bucket in wheel.buckets()] == [(0, 4)]
    assert wheel.next_expiration() == 4
    assert wheel.advance(4) == ["item"]


def test_a_refresh_to_later_and_then_to_nearer_than_its_bucket() -> None:
    wheel = TimingWheel(1, 10)
    handle = wheel.add(50, "item")
    wheel.refresh(handle, 5000)
    wheel.refresh(handle, 60)  # still later than the bucket that it is filed in
    wheel._check()
    wheel.refresh(handle, 7)
    wheel._check()
    assert wheel.advance(6) == []
    assert wheel.advance(7) == ["item"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("deadline", [-3, 0, 6, 79, 80, 84, 85, 86, 99, 120, 999, 1000, 1001, 1900])
def test_a_task_can_be_refreshed_in_every_state_to_any_time(state: str, deadline: int) -> None:
    wheel, handles = in_state(state)
    oracle = Oracle()
    for item, handle in enumerate(handles):
        due = wheel.deadline(handle)
        assert due is not None
        oracle.add(item, due)
    assert wheel.refresh(handles[2], deadline)
    oracle.refresh(2, deadline)
    wheel._check()
    for now in range(wheel.clock, 2000):
        for came in wheel.advance(now):
            oracle.hand_out(came, now)
        assert not oracle.due(now)
    assert not len(oracle)


def test_an_overdue_task_refreshed_to_and_fro_comes_out_once() -> None:
    wheel = TimingWheel(start=100)
    handle = wheel.add(3, "item")
    for deadline in (50, 3, 200, 3, 99, 3):
        wheel.refresh(handle, deadline)
        wheel._check()
    assert wheel.advance(1000) == ["item"]
    wheel._check()


def test_a_refresh_does_not_change_the_count() -> None:
    wheel = TimingWheel()
    handle = wheel.add(50, "item")
    for deadline in (60, 5, 0, 900):
        wheel.refresh(handle, deadline)
        assert len(wheel) == 1
    stats = wheel.stats()
    assert (stats.started, stats.pending) == (1, 1)


# -- budgets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, -1, -(10**9)])
def test_a_budget_of_nothing_does_nothing(budget: int) -> None:
    wheel = TimingWheel(1, 10)
    wheel.add(5, "item")
    assert wheel.advance(20, budget) == []
    assert wheel.poll(20, budget) is None
    assert wheel.next_expiration() == 5, "there is work, and it says so"
    wheel._check()
    assert wheel.advance(20) == ["item"]


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 100, 10**6])
def test_t7_a_budget_cuts_the_work_into_turns_and_keeps_the_order(budget: int) -> None:
    rng = random.Random(budget)
    deadlines = [rng.choice([rng.randrange(3000), 777]) for _ in range(400)]
    wheel = TimingWheel(1, 10)
    for number, deadline in enumerate(deadlines):
        wheel.add(deadline, number)
    assert everything(wheel, 3000, budget) == sorted(range(400), key=lambda number: deadlines[number])


def test_a_budget_bounds_what_is_cascaded_as_well_as_what_is_handed_out() -> None:
    wheel = TimingWheel(1, 10)
    for item in range(1000):
        wheel.add(55, item)
    before = 0
    while wheel.advance(50, 7) or (wheel.next_expiration() or 0) <= 50:
        cascaded = wheel.stats().cascaded
        assert cascaded - before <= 7
        before = cascaded
    assert wheel.stats().cascaded == 1000


def test_t6_what_is_added_between_two_turns_takes_its_place_in_the_order() -> None:
    wheel = TimingWheel(1, 10)
    for item in range(6):
        wheel.add(55, item)
    assert wheel.advance(100, 3) == []  # the clock is at 50, midway through a cascade
    wheel.add(52, "before them")
    wheel.add(55, "after them")
    wheel.add(40, "overdue by now")
    wheel._check()
    assert everything(wheel, 100, 3) == ["overdue by now", "before them", 0, 1, 2, 3, 4, 5, "after them"]


@pytest.mark.parametrize("then_drain", [False, True])
def test_t6_who_is_removed_midway_through_a_cascade_lets_nobody_pass(then_drain: bool) -> None:
    wheel = TimingWheel(1, 10)
    wheel.add(100, "first")  # filed in the third wheel
    wheel.advance(95)
    removed = wheel.add(100, "removed")
    wheel.add(100, "last")
    assert wheel.advance(100, 1) == []  # "last" is due, "removed" still to cascade, and then the bucket of "first"
    assert wheel.remove(removed) == "removed"
    wheel._check()
    in_order = [item for _, item in wheel.drain()] if then_drain else everything(wheel, 100, 1)
    assert in_order == ["first", "last"]


def test_without_a_budget_one_turn_does_it_all() -> None:
    wheel = TimingWheel(1, 4)
    for item in range(5000):
        wheel.add(item, item)
    assert wheel.advance(5000) == list(range(5000))


def test_poll_hands_out_one_at_a_time_so_that_a_due_task_can_still_be_removed() -> None:
    wheel = TimingWheel()
    handles = [wheel.add(5, item) for item in ("first", "second", "third")]
    assert wheel.poll(5) == "first"
    assert wheel.remove(handles[1]) == "second"
    assert wheel.poll(5) == "third"
    assert wheel.poll(5) is None
    assert wheel.next_expiration() is None


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_poll_with_a_small_budget_says_that_there_is_more(budget: int) -> None:
    wheel = TimingWheel(1, 4)
    for item in range(20):
        wheel.add(200, item)
    out: list[object] = []
    for _ in range(20 * 10):
        came = wheel.poll(200, budget)
        wheel._check()
        if came is not None:
            out.append(came)
        elif len(wheel):
            assert (wheel.next_expiration() or 0) <= 200
    assert out == list(range(20))


# -- jumps ---------------------------------------------------------------------------------------------------


def test_t10_a_year_with_three_timers_takes_a_few_steps_not_one_per_tick() -> None:
    wheel = TimingWheel(tick=10**6, wheel_size=64)
    deadlines = [YEAR // 3, YEAR // 2, YEAR]
    for deadline in deadlines:
        wheel.add(deadline, deadline)
    steps = 0
    due = []
    while (upcoming := wheel.next_expiration()) is not None:
        due += wheel.advance(upcoming)
        steps += 1
    assert due == deadlines
    assert steps <= len(deadlines) * wheel.stats().levels
    assert wheel.stats().cascaded <= len(deadlines) * wheel.stats().levels


def test_one_jump_over_a_year_cascades_each_task_at_most_once_a_wheel() -> None:
    wheel = TimingWheel(tick=1, wheel_size=64)
    for deadline in (YEAR // 3, YEAR // 2, YEAR):
        wheel.add(deadline, deadline)
    assert len(wheel.advance(YEAR)) == 3
    assert wheel.clock == YEAR
    assert wheel.stats().cascaded <= 3 * wheel.stats().levels
    assert wheel.poll(2 * YEAR) is None
    wheel._check()


def test_after_an_idle_jump_tasks_are_filed_from_the_new_time() -> None:
    wheel = TimingWheel(1, 10)
    wheel.advance(10**15)
    wheel.add(10**15 + 5, "item")
    assert [bucket.level for bucket in wheel.buckets()] == [0]
    assert wheel.advance(10**15 + 5) == ["item"]


def test_t4_overdue_tasks_that_were_removed_do_not_pile_up_behind_one_that_was_not() -> None:
    wheel = TimingWheel(start=10**6)
    wheel.add(1, "the first to run")
    before = sys.getallocatedblocks()
    for deadline in range(2, 20_000):
        assert wheel.remove(wheel.add(deadline, "removed at once")) == "removed at once"
    assert sys.getallocatedblocks() - before < 5000, "CPython itself keeps some 2,000 tuples for later"
    handles = [wheel.add(deadline, "removed later") for deadline in range(2, 20_000)]
    for handle in handles:
        wheel.remove(handle)
    del handles, handle
    assert sys.getallocatedblocks() - before < 5000, "CPython itself keeps some 2,000 tuples for later"
    wheel._check()
    assert wheel.advance(10**6) == ["the first to run"]


# -- draining ------------------------------------------------------------------------------------------------


def test_t9_drain_returns_everything_in_the_order_in_which_it_would_have_run() -> None:
    wheel = TimingWheel(10, 4, start=5000)
    for deadline, item in [(9001, "far"), (5000, "due"), (17, "overdue"), (5011, "near"), (5020, "near too")]:
        wheel.add(deadline, item)
    assert wheel.drain() == [
        (20, "overdue"), (5000, "due"), (5020, "near"), (5020, "near too"), (9010, "far"),
    ]  # fmt: skip
    assert len(wheel) == 0
    assert wheel.next_expiration() is None
    assert wheel.stats().cancelled == 5
    wheel._check()


@pytest.mark.parametrize("state", STATES)
def test_t9_drain_in_every_state(state: str) -> None:
    wheel, handles = in_state(state)
    assert [item for _, item in wheel.drain()] == [0, 1, 2, 3, 4]
    wheel._check()
    assert not any(wheel.is_pending(handle) for handle in handles)
    assert wheel.drain() == []


def test_t9_drain_keeps_the_order_of_arrival_within_a_tick_across_wheels() -> None:
    for deadline in range(1, 60):
        wheel = TimingWheel(1, 4)
        for now in range(deadline + 1):
            wheel.advance(now, 1)
            wheel.add(deadline, now)
        assert wheel.drain() == [(deadline, now) for now in range(deadline + 1)]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("now", [0, 79, 899])
def test_t1_t6_a_wheel_whose_clock_is_set_back_keeps_all_tasks_and_their_order(state: str, now: int) -> None:
    wheel, handles = in_state(state)
    if state == "overdue":
        wheel.refresh(handles[0], 901)
        wheel.refresh(handles[0], 900)  # it is among the overdue twice
    deadline = wheel.deadline(handles[0])
    if now < wheel.clock:
        wheel._set_back(now)
        assert wheel.clock == now
    wheel._check()
    assert [wheel.deadline(handle) for handle in handles] == [deadline] * 5
    late = wheel.add(now + 10_000, "late")
    assert deadline is not None
    assert wheel.advance(max(deadline - 1, now)) == ([0, 1, 2, 3, 4] if deadline <= now else [])
    wheel.advance(deadline)
    wheel._check()
    assert [wheel.is_pending(handle) for handle in [*handles, late]] == [False] * 5 + [True]
    assert wheel.advance(now + 9_999) == []
    assert wheel.advance(now + 10_000) == ["late"]


def test_a_drained_wheel_can_be_used_again() -> None:
    wheel = TimingWheel(1, 10)
    for deadline in (5, 50, 500, -1):
        wheel.add(deadline, "before")
    wheel.drain()
    for deadline in (5, 50, 500, -1):
        wheel.add(deadline, deadline)
    wheel._check()
    assert wheel.advance(500) == [-1, 5, 50, 500]


# -- bad arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "tick must be .* not 0"),
        ((-3,), "tick must be .* not -3"),
        ((2**62 + 1,), f"tick must be .* not {2**62 + 1}"),
        ((2**80,), f"tick must be .* not {2**80}"),
        ((1, 1), "wheel_size must be .* not 1"),
        ((1, 0), "wheel_size must be .* not 0"),
        ((1, -10), "wheel_size must be .* not -10"),
        ((1, 65_537), "wheel_size must be .* not 65537"),
        ((1, 10, -1), "start must be .* not -1"),
        ((1, 10, 2**62 + 1), f"start must be .* not {2**62 + 1}"),
    ],
)
def test_a_wheel_that_cannot_be_is_refused_by_a_message_that_names_the_value(
    arguments: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TimingWheel(*arguments)


@pytest.mark.parametrize("deadline", [2**62 + 1, -(2**62) - 1, 2**63 - 1, -(2**63)])
def test_a_deadline_out_of_range_is_refused_by_a_message_that_names_it(deadline: int) -> None:
    wheel = TimingWheel()
    handle = wheel.add(5, "item")
    with pytest.raises(OverflowError, match=f"deadline {deadline} is beyond"):
        wheel.add(deadline, "other")
    with pytest.raises(OverflowError, match=f"deadline {deadline} is beyond"):
        wheel.refresh(handle, deadline)
    wheel._check()
    assert wheel.deadline(handle) == 5
    assert len(wheel) == 1


@pytest.mark.parametrize("now", [2**62 + 1, 2**63 - 1])
def test_a_time_out_of_range_is_refused_by_a_message_that_names_it(now: int) -> None:
    wheel = TimingWheel()
    wheel.add(5, "item")
    with pytest.raises(OverflowError, match=f"time {now} is beyond"):
        wheel.advance(now)
    with pytest.raises(OverflowError, match=f"time {now} is beyond"):
        wheel.poll(now)
    wheel._check()
    assert wheel.clock == 0
    assert len(wheel) == 1


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**100])
def test_what_is_beyond_any_machine_integer_is_refused_too_and_changes_nothing(value: int) -> None:
    wheel = TimingWheel()
    handle = wheel.add(5, "item")
    with pytest.raises(OverflowError, match="beyond 2"):
        wheel.add(value, "other")
    with pytest.raises(OverflowError, match="beyond 2"):
        wheel.refresh(handle, value)
    with pytest.raises(OverflowError, match="beyond 2"):
        wheel.advance(value)
    assert wheel.advance(3, value) == []
    wheel._check()
    assert wheel.advance(5) == ["item"]


@pytest.mark.parametrize("bad", [None, "5", [], 5.0, 5.9])
def test_what_is_no_integer_is_refused_by_name_and_leaves_the_wheel_in_order(bad: object) -> None:
    wheel = TimingWheel()
    handle = wheel.add(3, "item")
    attempts: dict[str, list[Callable[[], object]]] = {
        "deadline": [
            lambda: wheel.add(bad, "other"),  # type: ignore[arg-type]
            lambda: wheel.refresh(handle, bad),  # type: ignore[arg-type]
        ],
        "time": [
            lambda: wheel.advance(bad),  # type: ignore[arg-type]
            lambda: wheel.poll(bad),  # type: ignore[arg-type]
        ],
        "handle": [
            lambda: wheel.remove(bad),  # type: ignore[arg-type]
            lambda: wheel.refresh(bad, 9),  # type: ignore[arg-type]
            lambda: wheel.is_pending(bad),  # type: ignore[arg-type]
            lambda: wheel.deadline(bad),  # type: ignore[arg-type]
        ],
        "budget": [
            lambda: wheel.advance(9, bad or "1"),  # type: ignore[arg-type]
            lambda: wheel.poll(9, bad),  # type: ignore[arg-type]
        ],
        "tick": [lambda: TimingWheel(bad)],  # type: ignore[arg-type]
        "wheel_size": [lambda: TimingWheel(1, bad)],  # type: ignore[arg-type]
        "start": [lambda: TimingWheel(1, 8, bad)],  # type: ignore[arg-type]
    }
    for name, those in attempts.items():
        for attempt in those:
            with pytest.raises(TypeError, match=f"{name} must be an integer, not "):
                attempt()
            wheel._check()
    assert (wheel.clock, len(wheel)) == (0, 1)


def test_what_counts_as_an_integer_is_one() -> None:
    class Index:
        def __index__(self) -> int:
            return 5

    wheel = TimingWheel()
    handle = wheel.add(Index(), "item")  # type: ignore[arg-type]
    assert wheel.deadline(handle) == 5
    assert wheel.add(True, "one") != handle
    assert wheel.advance(Index()) == ["one", "item"]  # type: ignore[arg-type]


@pytest.mark.parametrize("handle", [2**63, 2**100, -(2**63) - 1, 2**63 - 1, -1])
def test_what_was_never_a_handle_finds_nothing(handle: int) -> None:
    wheel = TimingWheel()
    wheel.add(3, "item")
    assert wheel.remove(handle) is None
    assert not wheel.refresh(handle, 9)
    assert not wheel.is_pending(handle)
    assert wheel.deadline(handle) is None
    assert len(wheel) == 1


# -- how it runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pure", ["", "1"])
def test_abeyant_pure_runs_the_source_and_nothing_else_does(pure: str) -> None:
    environment = {**os.environ, "ABEYANT_PURE": pure}
    program = "from abeyant.engine import is_compiled; print(is_compiled())"
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    if pure:
        assert said == "False"
    elif not os.environ.get("ABEYANT_PURE"):
        assert said == str(is_compiled())
