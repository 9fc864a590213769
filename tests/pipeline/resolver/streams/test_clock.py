"""The stream's clock: what it takes from rows and what from the wall; and options that are refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from abeyant.pipeline.resolver.streams.clock import START, Clock, Mark, TimeRange, time_range_of
from abeyant.pipeline.resolver.streams.layout import WATCHES, joined, mark_from, mark_to
from abeyant.pipeline.resolver.streams.state import VERSION, ShardState, StateError, decode_shard, encode_shard
from pipeline.resolver.streams.cuts import how

S = 1_000_000


def at(second: float) -> TimeRange:
    return TimeRange(round(second * S), round(second * S))


def after(clock: Clock, operations: TimeRange | None, events: TimeRange | None, wall: float, **other: Any) -> Clock:
    settings: dict[str, Any] = {"ticking": True, "lateness": 0, "ended": False} | other
    return clock.after(operations, events, wall=round(wall * S), **settings)


def test_the_watermark_is_the_lesser_of_both_clocks_less_the_lateness() -> None:
    clock = after(Clock(), at(100), at(103), 5000, lateness=10 * S)
    assert clock.watermark == 90 * S
    assert after(clock, at(120), at(104), 5001, lateness=10 * S).watermark == 94 * S


def test_it_never_goes_back() -> None:
    clock = after(Clock(), at(100), at(100), 5000)
    assert after(clock, at(50), at(60), 5001) == after(clock, at(100), at(100), 5001)
    assert after(clock, at(100), at(100), 5001, lateness=50 * S).watermark == clock.watermark, "a lateness made greater"


def test_an_idle_table_goes_on_with_the_wall() -> None:
    clock = after(Clock(), at(100), at(100), 5000)
    clock = after(clock, None, None, 5007)
    assert clock.watermark == 107 * S
    clock = after(clock, at(108), None, 5008)
    assert clock.watermark == 108 * S
    assert after(clock, None, None, 5001).watermark == 108 * S, "a wall clock that goes back moves nothing"


def test_a_backlog_after_an_outage_is_not_late() -> None:
    """An hour of outage: what comes then moves the clock by its own time, not by the hour."""
    clock = after(Clock(), at(100), at(100), 5000)
    clock = after(clock, at(101), at(101), 5000 + 3600)
    assert clock.watermark == 101 * S


def test_a_table_never_heard_of_begins_with_the_other_ones_first_row() -> None:
    """Else nothing would expire where there are no events at all; nor is a backlog that comes later late."""
    clock = after(Clock(), TimeRange(100 * S, 900 * S), None, 5000)
    assert clock.watermark == 100 * S
    assert after(clock, None, None, 5030).watermark == 130 * S
    assert after(Clock(), None, None, 5000).watermark == START


def test_without_a_tick_only_rows_move_it() -> None:
    clock = after(Clock(), at(100), None, 5000, ticking=False)
    assert clock.watermark == START
    clock = after(clock, None, at(100), 5001, ticking=False)
    assert clock.watermark == 100 * S
    assert after(clock, None, None, 9000, ticking=False).watermark == 100 * S


def test_final_is_what_is_before_the_watermark_and_at_the_end_all() -> None:
    times = np.array([99 * S, 100 * S, (1 << 63) - 1])
    clock = after(Clock(), at(100), at(100), 5000)
    assert clock.are_final(times).tolist() == [True, False, False]
    assert after(clock, None, None, 5000, ended=True).are_final(times).all()
    assert after(after(clock, None, None, 5000, ended=True), at(101), None, 5001).ended


def test_marks_come_together_from_all_tasks() -> None:
    marks = [Mark("events", 5, 9), Mark("tick", 0, 0), Mark("events", 3, 4), Mark("operations", -7, -7)]
    assert [mark_from(mark_to(mark)) for mark in marks] == marks
    assert time_range_of(marks, "events") == TimeRange(3, 9)
    assert time_range_of(marks, "operations") == TimeRange(-7, -7)
    assert time_range_of(marks, "end") is None


def test_state_of_another_version_or_other_options_is_refused_by_what_was_found_and_expected() -> None:
    state = ShardState(Clock(1, None, 3, START), joined([], WATCHES), np.arange(8, dtype=np.int64).reshape(2, 4))
    version, encoded = encode_shard(state, how(shards=8))
    back = decode_shard(version, encoded, how(shards=8, lateness=5, forget_after=1))
    assert (back.clock, back.steps.tolist()) == (state.clock, state.steps.tolist())
    with pytest.raises(StateError, match=f"layout version {VERSION + 1}, expected {VERSION}"):
        decode_shard(VERSION + 1, encoded, how(shards=8))
    with pytest.raises(StateError, match="begun with shards=8, not 4"):
        decode_shard(version, encoded, how(shards=4))
    with pytest.raises(StateError, match="begun with deadline='inclusive', not 'exclusive'"):
        decode_shard(version, encoded, how(shards=8, deadline="exclusive"))


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"deadline": "open"}, "deadline must be 'inclusive' or 'exclusive', not 'open'"),
        ({"time": "wall"}, "time must be 'event' or 'processing', not 'wall'"),
        ({"lateness": -1}, "lateness must be a number of seconds from 0 on, or a timedelta, not -1"),
        ({"lateness": float("nan")}, "lateness must be a number of seconds from 0 on, or a timedelta, not nan"),
        ({"forget_after": timedelta(-1)}, "forget_after must be a number of seconds"),
        ({"tick": 10.0}, "tick must be from 0.001 to 1 second, or None, not 10.0: .*trigger"),
        ({"tick": 0}, "tick must be from 0.001 to 1 second"),
        ({"shards": 0}, "shards must be from 1 to 4,096, not 0"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_its_value(option: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        how(**option)


def test_spans_are_seconds_or_timedeltas() -> None:
    assert how(lateness=1.5).lateness_us == how(lateness=timedelta(seconds=1.5)).lateness_us == 1_500_000
    assert (how(tick=0.5).rate, how(tick=None).rate) == (2, None)
