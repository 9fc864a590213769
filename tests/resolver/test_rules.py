"""`Resolver` with all the rules beside brute force, on a virtual clock; instants are seconds (laws O1-O4)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict
from itertools import groupby
from typing import Any

import pytest

from abeyant.resolver import Calendar, Resolution, Resolver, Watch
from abeyant.timer import ManualTimer
from seeds import seeds
from waits import End, Event, Rules, Wait, by_brute_force, some_rules, some_waits

HORIZON = 400
MICROS = 1_000_000


class Hours(Calendar):
    """A calendar of any spans, in seconds."""

    def __init__(self, spans: tuple[tuple[int, int], ...]) -> None:
        self.spans = [(begin * MICROS, end * MICROS) for begin, end in spans]

    def elapsed_at(self, at: int) -> int:
        return sum(max(min(at, end) - begin, 0) for begin, end in self.spans)

    def due_at(self, start: int, reading: int) -> int:
        at = start
        while self.elapsed_at(at) < reading:
            at += min(MICROS, reading - self.elapsed_at(at))
        return at


def make_resolver(timer: ManualTimer, rules: Rules, **settings: Any) -> Resolver:
    given = asdict(rules)
    hours = given.pop("hours")
    return Resolver(timer, **given, calendar=None if hours is None else Hours(hours), **settings)


def start(feed: Any, wait: Wait, on_end: Callable[[Resolution], object]) -> None:
    feed.start(
        wait.op_id,
        [Watch(*watch) for watch in wait.watches],
        **({"deadline": wait.start + wait.timeout} if wait.fixed else {"timeout": wait.timeout}),
        condition=wait.condition,
        extend=wait.extend,
        on_end=on_end,
    )


def end_of(resolution: Resolution) -> End:
    """A resolution as brute force has it."""
    counted = resolution.counted
    assert counted is not None
    return End(resolution.outcome, resolution.at, resolution.completed_by, resolution.cancelled_by, counted)  # type: ignore[arg-type]


def live(waits: list[Wait], events: list[Event], rules: Rules) -> dict[str, End]:
    """Feed a resolver in the order of time, all of an instant together."""
    ended: list[Resolution] = []
    with ManualTimer() as timer:
        resolver = make_resolver(timer, rules, details=True)
        fed: list[Wait | Event] = sorted([*waits, *events], key=_time)
        for at, some in groupby(fed, key=_time):
            timer.advance_to(at)
            with resolver.instant() as now:
                for one in sorted(some, key=lambda one: one.op_id if isinstance(one, Wait) else ""):
                    if isinstance(one, Event):
                        now.event(one.key, one.progress)
                    else:
                        start(now, one, ended.append)
        timer.advance_to(HORIZON)
        pending = resolver.close()
        assert not len(timer)
    assert len({end.op_id for end in [*ended, *pending]}) == len(ended) + len(pending) == len(waits)
    for end in ended:
        assert end.waited is not None
        assert end.at == next(wait.start for wait in waits if wait.op_id == end.op_id) + end.waited
    return {str(end.op_id): end_of(end) for end in [*ended, *pending]}


def _time(one: Wait | Event) -> int:
    return one.start if isinstance(one, Wait) else one.at


@pytest.mark.parametrize("seed", seeds(20, quick=5))
def test_all_rules_equal_brute_force_o1_o2_o3_o4(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(100):
        rules = some_rules(dice)
        waits, events = some_waits(dice, rules)
        if rules.hours is None and dice.random() < 0.2:
            waits = [wait if wait.of("pause") else wait._replace(fixed=True) for wait in waits]
        assert live(waits, events, rules) == by_brute_force(waits, events, rules, HORIZON), (rules, waits, events)
