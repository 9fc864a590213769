"""Columnar replay: outcomes against the laws O1-O3 by brute force, the wheel's work against a wheel driven by hand."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abeyant import ManualTimer
from abeyant.engine import MAX_TIME, TimingWheel
from abeyant.kernels.radix import sort_by_key
from abeyant.kernels.replay import NEVER, Replayed, replay
from engine.source_copy import engine_copy


class Row(NamedTuple):
    start: int
    timeout: int
    end: int


Mode = Any  # "inclusive" or "exclusive"


def run(rows: list[Row], tick: int = 1, wheel_size: int = 64, deadline: Mode = "inclusive") -> Replayed:
    columns = [array("q", column) for column in zip(*rows, strict=True)] if rows else [array("q")] * 3
    return replay(*columns, tick=tick, wheel_size=wheel_size, deadline=deadline)


def outcome(row: Row, deadline: Mode) -> tuple[bool, int]:
    """O1-O3, word by word: the first time in [start, start + timeout] at which the condition holds."""
    last = row.start + row.timeout
    if row.end <= row.start:
        return True, row.start
    for time in range(row.start, last + 1):
        if time >= row.end and (time < last or deadline == "inclusive"):
            return True, time
    return False, last


def by_hand(
    rows: list[Row],
    deadline: Mode,
    make: Callable[[int], Any],
    idle_before: Callable[[Any, int], bool] = lambda wheel, time: False,
) -> dict[str, int]:
    """What the statistics have to be: the public wheel, driven event by event, bucket by bucket.

    It is made from its first time. A driver that can see that it is idle before a time does not even ask it.
    """
    verdicts = [outcome(row, deadline) for row in rows]
    first = min((row.start for row in rows), default=0)
    wheel = make(first)
    handles: dict[int, int] = {}
    now = last = first
    counts = dict.fromkeys(("wakeups", "lateness_max", "lateness_sum", "overtaken", "pending_time", "max_pending"), 0)

    def come_up_before(time: int | None) -> None:
        nonlocal now, last
        if time is not None and idle_before(wheel, time):
            return
        while (upcoming := wheel.next_expiration()) is not None:
            up = max(upcoming, now)
            if time is not None and up >= time:
                break
            now = up
            counts["wakeups"] += 1
            for item in wheel.advance(now):
                assert isinstance(item, int)
                row = rows[item]
                assert not verdicts[item][0], "what completes is out of the wheel by then"
                late = now - row.start - row.timeout
                assert 0 <= late < wheel.tick, "T1, T2"
                counts["lateness_sum"] += late
                counts["lateness_max"] = max(counts["lateness_max"], late)
                counts["pending_time"] += now - row.start
                counts["overtaken"] += row.end < now or (row.end == now and deadline == "inclusive")
                last = now

    instants = {row.start for row in rows} | {at for (completed, at) in verdicts if completed}
    for time in sorted(instants):
        come_up_before(time)
        now = time
        for index, (completed, at) in enumerate(verdicts):
            if completed and at == time and rows[index].start < time:
                assert wheel.remove(handles[index]) is not None
                counts["pending_time"] += time - rows[index].start
                last = time
        for index, row in enumerate(rows):
            if row.start == time and row.end > time:
                handles[index] = wheel.add(row.start + row.timeout, index)
        counts["max_pending"] = max(counts["max_pending"], len(wheel))
    come_up_before(None)
    stats = wheel.stats()
    return {
        **counts,
        "operations": len(rows),
        "completed": sum(completed for completed, _ in verdicts),
        "expired": sum(not completed for completed, _ in verdicts),
        "completed_at_start": sum(row.end <= row.start for row in rows),
        "started": stats.started,
        "cancelled": stats.cancelled,
        "cascaded": stats.cascaded,
        "levels": stats.levels,
        "first": first,
        "last": last,
    }


def agrees(rows: list[Row], tick: int, wheel_size: int, deadline: Mode) -> None:
    result = run(rows, tick, wheel_size, deadline)
    verdicts = [outcome(row, deadline) for row in rows]
    assert list(result.completed) == [completed for completed, _ in verdicts]
    assert list(result.ended_at) == [at for _, at in verdicts]
    found = result.stats._asdict()
    operations = found.pop("bucket_operations")
    assert found == by_hand(rows, deadline, lambda first: TimingWheel(tick, wheel_size, first))
    assert operations % 2 == 0, "every bucket that was queued has come up, or was dropped"
    assert operations <= 2 * (found["started"] + found["cascaded"]), "a bucket is queued for a timer's sake"
    if tick == 1:
        assert result.stats.lateness_sum == result.stats.overtaken == 0


@st.composite
def traces(draw: Any) -> list[Row]:
    """Few distinct times, so that ties abound: in starts, ends and deadlines, and of each with each."""
    reach = draw(st.sampled_from([3, 12, 70, 700]))
    origin = draw(st.sampled_from([0, 0, 1, 63, 64, 4095, 10**6 - 1]))
    times = st.integers(0, reach)
    rows = []
    for _ in range(draw(st.integers(0, 25))):
        start = origin + draw(times)
        timeout = draw(times)
        end = draw(
            st.one_of(
                times.map(lambda time: origin + time),
                st.sampled_from([NEVER, -5, start - 1, start, start + 1, start + timeout - 1, start + timeout]),
                st.integers(start + timeout, start + timeout + 12),
            )
        )
        rows.append(Row(start, timeout, end))
    return sorted(rows) if draw(st.booleans()) else rows


@given(
    rows=traces(),
    tick=st.sampled_from([1, 1, 2, 7, 10, 100]),
    wheel_size=st.sampled_from([2, 3, 10, 64]),
    deadline=st.sampled_from(["inclusive", "exclusive"]),
)
@example(rows=[Row(0, 0, 0), Row(0, 0, 1), Row(0, 0, NEVER)], tick=1, wheel_size=2, deadline="exclusive")
@example(rows=[Row(0, 10, 10), Row(10, 0, NEVER), Row(10, 5, 10)], tick=7, wheel_size=2, deadline="inclusive")
@example(rows=[Row(0, 1, NEVER), Row(500, 9, 505), Row(500, 9, NEVER)], tick=10, wheel_size=3, deadline="inclusive")
def test_o1_o2_o3_and_the_wheels_work_are_those_of_the_laws(
    rows: list[Row], tick: int, wheel_size: int, deadline: Mode
) -> None:
    agrees(rows, tick, wheel_size, deadline)


def test_its_delay_queue_has_the_entries_of_the_wheels() -> None:
    """A driver that looks at the queue's front, and asks the wheel only when that comes up: an empty bucket stays."""

    def idle_before(wheel: Any, time: int) -> bool:
        waits = not len(wheel._queue) or wheel._queue.first_expiration() * wheel.tick >= time
        return bool(waits and wheel._slab.is_empty(wheel._due))

    @given(
        rows=traces(),
        tick=st.sampled_from([1, 2, 10, 100]),
        wheel_size=st.sampled_from([2, 3, 10, 64]),
        deadline=st.sampled_from(["inclusive", "exclusive"]),
    )
    def agree(rows: list[Row], tick: int, wheel_size: int, deadline: Mode) -> None:
        def make(first: int) -> Any:
            made.append(engine.wheel.TimingWheel(tick, wheel_size, first))
            return made[-1]

        made: list[Any] = []
        by_hand(rows, deadline, make, idle_before)
        expected = 2 * made[0]._queue._pushed - len(made[0]._queue)
        assert run(rows, tick, wheel_size, deadline).stats.bucket_operations == expected

    with engine_copy() as engine:
        agree()


@pytest.mark.parametrize(("tick", "wheel_size"), [(1, 64), (10, 8), (1000, 20)])
def test_a_trace_that_outgrows_the_first_room_and_keeps_the_wheel_busy(tick: int, wheel_size: int) -> None:
    rng = random.Random(7)
    rows = []
    for _ in range(1500):
        start = rng.randrange(20_000)
        timeout = rng.choice([0, 5, 400, 4000])
        rows.append(Row(start, timeout, rng.choice([NEVER, start + rng.randrange(1, 6000), start - 3])))
    agrees(rows, tick, wheel_size, "inclusive")


@pytest.mark.parametrize(
    ("row", "inclusive", "exclusive"),
    [
        (Row(100, 10, 99), (1, 100), (1, 100)),
        (Row(100, 10, 100), (1, 100), (1, 100)),
        (Row(100, 10, 109), (1, 109), (1, 109)),
        (Row(100, 10, 110), (1, 110), (0, 110)),
        (Row(100, 10, 111), (0, 110), (0, 110)),
        (Row(100, 10, NEVER), (0, 110), (0, 110)),
        (Row(100, 0, 100), (1, 100), (1, 100)),
        (Row(100, 0, 101), (0, 100), (0, 100)),
    ],
)
@pytest.mark.parametrize("tick", [1, 1000])
def test_o2_o3_a_deadline_includes_its_own_instant_unless_told_otherwise(
    row: Row, inclusive: tuple[int, int], exclusive: tuple[int, int], tick: int
) -> None:
    for mode, expected in (("inclusive", inclusive), ("exclusive", exclusive)):
        result = run([row], tick=tick, deadline=mode)
        assert (result.completed[0], result.ended_at[0]) == expected


def test_the_outcome_is_the_laws_and_the_lateness_the_wheels() -> None:
    result = run([Row(0, 15, 17), Row(0, 15, 21), Row(0, 20, NEVER)], tick=10)
    assert list(result.completed) == [0, 0, 0]
    assert list(result.ended_at) == [15, 15, 20]
    assert result.stats.lateness_max == 5
    assert result.stats.lateness_sum == 10
    assert result.stats.overtaken == 1, "a driver with that tick would have seen the first complete at 17"
    assert result.stats.wakeups == 1
    assert result.stats.bucket_operations == 2, "one bucket for the three: in and out"
    assert result.stats.pending_time == 60
    assert result.stats.max_pending == 3
    assert result.stats.last == 20


def test_progress_and_starts_of_an_instant_come_before_its_expiries_in_what_is_pending() -> None:
    stats = run([Row(0, 10, NEVER), Row(5, 20, 10), Row(10, 5, NEVER), Row(10, 5, 11)]).stats
    assert stats.max_pending == 3, "at 10: one has ended, two have started, and the first is about to expire"


@pytest.mark.parametrize("tick", [1, 1000, 1 << 40])
def test_a_trace_may_begin_at_any_time_and_the_wheel_begins_with_it(tick: int) -> None:
    epoch = 1_700_000_000_000_000 // tick * tick
    rows = [Row(0, 30, 12), Row(3, 4, NEVER), Row(3, 50, NEVER)]
    shifted = [Row(start + epoch, timeout, end if end == NEVER else end + epoch) for start, timeout, end in rows]
    here, there = run(rows, tick), run(shifted, tick)
    assert [at + epoch for at in here.ended_at] == list(there.ended_at)
    expected = here.stats._replace(first=there.stats.first, last=here.stats.last + epoch)
    assert there.stats == expected


def test_the_edges_of_time_and_sums_beyond_64_bits() -> None:
    rows = [Row(0, MAX_TIME, NEVER)] * 5 + [Row(0, MAX_TIME, MAX_TIME), Row(MAX_TIME, 0, NEVER)]
    result = run(rows, wheel_size=2)
    assert list(result.ended_at) == [MAX_TIME] * 7
    assert list(result.completed) == [0, 0, 0, 0, 0, 1, 0]
    assert result.stats.pending_time == 6 * MAX_TIME > 2**63
    tick = MAX_TIME - 1
    late = run([Row(1, MAX_TIME - 1, NEVER)] * 4, tick=tick)
    assert late.stats.lateness_max == tick - 1
    assert late.stats.lateness_sum == 4 * (tick - 1) > 2**63


def test_an_empty_trace() -> None:
    result = run([])
    assert len(result.completed) == len(result.ended_at) == 0
    assert set(result.stats._replace(levels=0)) == {0}


def test_it_does_what_a_manual_timer_does() -> None:
    """The same trace through the public timer: the same times of expiry, cascades and wheels."""
    rng = random.Random(3)
    rows = sorted(Row(rng.randrange(5000), rng.choice([20, 700, 3000]), NEVER) for _ in range(400))
    rows = [row._replace(end=row.start + rng.randrange(1, 5000)) for row in rows]
    result = run(rows, tick=10, wheel_size=8)
    first = rows[0].start
    timer = ManualTimer(tick=10e-9, wheel_size=8, start=first * 1e-9)
    events = sorted(
        [(row.start, 1, index) for index, row in enumerate(rows)]
        + [(result.ended_at[index], 0, index) for index in range(len(rows)) if result.completed[index]]
    )
    tasks = {}
    expired: dict[int, int] = {}

    def expire(index: int) -> None:
        expired[index] = round(timer.time() * 1e9)

    for time, kind, index in events:
        if time > first:
            timer.advance_to((time - 1) * 1e-9)  # what comes due at `time` itself has to wait (O3)
        if kind:
            tasks[index] = timer.call_at((time + rows[index].timeout) * 1e-9, expire, index)
        else:
            assert tasks[index].cancel()
    timer.advance(1.0)
    assert set(expired) == {index for index in range(len(rows)) if not result.completed[index]}
    assert all(0 <= at - result.ended_at[index] < 10 for index, at in expired.items()), "T1, T2"
    assert max(at - result.ended_at[index] for index, at in expired.items()) == result.stats.lateness_max
    assert sum(at - result.ended_at[index] for index, at in expired.items()) == result.stats.lateness_sum
    assert timer.stats().cascaded <= result.stats.cascaded, "it goes straight to a task that is alone"
    assert timer.stats().levels == result.stats.levels


def test_deadlines_may_be_given_instead_of_time_outs() -> None:
    starts, ends = array("q", [5, 6, 7]), array("q", [9, NEVER, 30])
    relative = replay(starts, array("q", [4, 4, 0]), ends, tick=3, wheel_size=4)
    absolute = replay(starts, array("q", [9, 10, 7]), ends, absolute=True, tick=3, wheel_size=4)
    assert absolute == relative


def test_columns_may_be_numpys_or_arrows_and_results_are_buffers_too() -> None:
    numpy = pytest.importorskip("numpy")
    arrow = pytest.importorskip("pyarrow")
    rows = [Row(9, 5, 12), Row(1, 5, NEVER), Row(3, 9, 3)]
    plain = run(rows)
    columns = [numpy.array(column, dtype="int64") for column in zip(*rows, strict=True)]
    assert replay(*columns) == plain
    buffers = [arrow.array(list(column), arrow.int64()).buffers()[1] for column in zip(*rows, strict=True)]
    assert replay(*buffers) == plain
    for column in columns:
        column.setflags(write=False)
    result = replay(*columns)
    assert numpy.frombuffer(result.completed, bool).tolist() == [True, False, True]
    assert numpy.frombuffer(result.ended_at, "int64").tolist() == [12, 6, 3]


def test_what_makes_no_sense_is_refused_by_name_and_row() -> None:
    good = array("q", [1, 2])

    def refused(message: str, *columns: Any, error: type[Exception] = ValueError, **options: Any) -> None:
        with pytest.raises(error, match=message):
            replay(*columns, **options)

    refused("row 1: the start -1 is not", array("q", [1, -1]), good, good)
    refused("row 1: the start .* is not", array("q", [1, MAX_TIME + 1]), good, good)
    refused("row 0: the time-out -3 is negative", good, array("q", [-3, 1]), good)
    refused("row 1: the deadline 1 is before the start 2", good, array("q", [1, 1]), good, absolute=True)
    refused("row 1: the deadline -1 is before", good, array("q", [1, -1]), good, absolute=True)
    refused("row 1: the deadline is beyond", good, array("q", [1, MAX_TIME - 1]), good)
    refused("row 1: the deadline is beyond", good, array("q", [1, NEVER]), good, absolute=True)
    refused("row 0: the deadline is beyond", array("q", [MAX_TIME]), array("q", [MAX_TIME]), array("q", [0]))
    refused("ends has 1 elements, expected 2, as many as starts", good, good, array("q", [1]))
    refused("timeouts has 3 elements, expected 2, as many as starts", good, array("q", [1, 2, 3]), good)
    refused("'inclusive' or 'exclusive', not 'open'", good, good, good, deadline="open")
    refused("tick must be", good, good, good, tick=0)
    refused("wheel_size must be", good, good, good, wheel_size=1)
    refused("ends must be a buffer", good, good, [1, 2], error=TypeError)
    refused("starts must hold signed 64-bit", array("i", [1, 2]), good, good, error=TypeError)


@given(keys=st.lists(st.one_of(st.integers(0, 9), st.integers(0, MAX_TIME), st.integers(2**40, 2**40 + 5000))))
def test_the_sort_is_stable_and_right(keys: list[int]) -> None:
    columns = array("q", keys), array("i", range(len(keys)))
    sort_by_key(*columns)
    assert list(zip(*columns, strict=True)) == sorted(zip(keys, range(len(keys)), strict=True))


def test_the_sort_refuses_columns_of_different_length() -> None:
    with pytest.raises(ValueError, match="rows has 1 elements, expected 2, as many as keys"):
        sort_by_key(array("q", [2, 1]), array("i", [0]))
