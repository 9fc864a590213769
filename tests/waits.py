"""Waits with all the rules of `docs/design-resolve.md`, and their outcomes by brute force, instant by instant.

Times are small integers. One after the other every instant is looked at, whether anything happens then or not; nothing
is computed ahead, and nothing is shared with what is tested.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, NamedTuple

Role = Literal["complete", "cancel", "extend", "pause"]


class Watch(NamedTuple):
    key: str
    required: int
    role: Role = "complete"


class Wait(NamedTuple):
    op_id: str
    start: int
    timeout: int
    watches: tuple[Watch, ...]
    condition: Literal["all", "any", "then"] = "all"
    extend: int | None = None  # None: the time-out
    fixed: bool = False  # the deadline is an instant: it stands whatever the calendar says

    def of(self, role: Role) -> list[Watch]:
        return [watch for watch in self.watches if watch.role == role]


class Event(NamedTuple):
    key: str
    at: int
    progress: int


@dataclass(frozen=True)
class Rules:
    count: Literal["always", "from_start", "after_start"] = "always"
    combine: Literal["max", "sum", "last"] = "max"
    holds: Literal["ever", "at_deadline"] = "ever"
    serves: Literal["every", "oldest", "newest"] = "every"
    within: Literal["whole", "step"] = "whole"
    deadline: Literal["inclusive", "exclusive"] = "inclusive"
    hours: tuple[tuple[int, int], ...] | None = None  # the calendar: open from, until

    def open_at(self, now: int) -> bool:
        return self.hours is None or any(begin <= now < end for begin, end in self.hours)


class End(NamedTuple):
    outcome: str
    at: int | None
    completed_by: tuple[str, int] | None
    cancelled_by: tuple[str, int] | None
    counted: int


class _Living:
    """One operation as time goes on."""

    def __init__(self, wait: Wait, rules: Rules, events: list[Event]) -> None:
        self.wait, self.rules, self.events = wait, rules, events
        self.left = [wait.timeout]  # of each countdown
        self.step = 0
        self.step_start = wait.start
        self.served: list[Event] = []
        self.end: End | None = None

    # -- which events count, and what they come to

    def counting(self, watch: Watch, now: int, start: int, count: str) -> list[Event]:
        return [
            event
            for event in self.events
            if event.key == watch.key
            and event.at <= now
            and (count == "always" or event.at > start or (count == "from_start" and event.at == start))
        ]

    def met(self, watch: Watch, now: int, start: int, count: str) -> bool:
        events = self.counting(watch, now, start, count)
        if self.rules.combine == "sum":
            return sum(event.progress for event in events) >= watch.required
        if not events:
            return False
        if self.rules.combine == "last":
            latest = max(event.at for event in events)
            events = [event for event in events if event.at == latest]
        return max(event.progress for event in events) >= watch.required

    def since(self, watch: Watch, now: int, start: int, count: str) -> int:
        """Since when a watch has been met that is met now: which event brought it there."""
        since = now
        for at in sorted({event.at for event in self.counting(watch, now, start, count)}, reverse=True):
            if not self.met(watch, at, start, count):
                break
            since = at
        return since

    @property
    def count(self) -> str:
        then = self.wait.condition == "then" and self.rules.count == "always"
        return "after_start" if then else self.rules.count

    # -- an instant

    def holds(self, now: int) -> tuple[str, int] | None:
        """By which watch the condition holds, if it does. Steps that are met are gone over."""
        wait, watches = self.wait, self.wait.of("complete")
        if self.rules.serves != "every":
            return self._served_enough(watches[0], now)
        if wait.condition == "then":
            while self.step < len(watches):
                if not self.met(watches[self.step], now, self.step_start, self.count):
                    return None
                self.step, self.step_start = self.step + 1, now
                if self.rules.within == "step":
                    self.left = [wait.timeout]
            return watches[-1].key, now
        met = [watch for watch in watches if self.met(watch, now, wait.start, self.count)]
        if not met or (wait.condition != "any" and len(met) < len(watches)):
            return None
        since = {watch: self.since(watch, now, wait.start, self.count) for watch in met}
        decided = (min if wait.condition == "any" else max)(since.values())
        return next((watch.key, decided) for watch in met if since[watch] == decided)

    def _served_enough(self, watch: Watch, now: int) -> tuple[str, int] | None:
        if self.rules.combine == "sum":
            enough = sum(event.progress for event in self.served) >= watch.required
        else:
            enough = bool(self.served)
        return (watch.key, self.served[-1].at if self.served else now) if enough else None

    def over(self) -> bool:
        return all(left <= 0 for left in self.left)

    def extend(self, now: int) -> None:
        wait = self.wait
        counts = now > wait.start or (now == wait.start and self.rules.count == "from_start")
        if counts and any(event.at == now and event.key == w.key for w in wait.of("extend") for event in self.events):
            self.left.append(wait.timeout if wait.extend is None else wait.extend)

    def pass_time(self, now: int) -> None:
        """Let the time from now to the next instant pass."""
        paused = False
        for watch in self.wait.of("pause"):
            events = [event for event in self.events if event.key == watch.key and event.at <= now]
            if events:
                latest = max(event.at for event in events)
                paused = max(event.progress for event in events if event.at == latest) >= watch.required
        if self.wait.fixed or (not paused and self.rules.open_at(now)):
            self.left = [left - 1 for left in self.left]

    def finish(self, outcome: str, now: int, by: tuple[str, int] | None, last: int) -> None:
        completed = by if outcome == "completed" else None
        cancelled = by if outcome == "cancelled" else None
        self.end = End(outcome, now, completed, cancelled, self.counted(last))

    def counted(self, last: int) -> int:
        wait = self.wait
        if extending := wait.of("extend"):
            count = "from_start" if self.rules.count == "from_start" else "after_start"
            return sum(len(self.counting(watch, last, wait.start, count)) for watch in extending)
        if self.rules.serves != "every":
            return len(self.served)
        return sum(len(self.counting(watch, last, wait.start, self.count)) for watch in wait.of("complete"))


def by_brute_force(waits: list[Wait], events: list[Event], rules: Rules, horizon: int) -> dict[str, End]:
    """Return every wait's end. `horizon` is an instant by which all is over that ends."""
    living = [_Living(wait, rules, events) for wait in waits]
    unused: list[Event] = []
    for now in range(min([0, *(event.at for event in events), *(wait.start for wait in waits)]), horizon + 1):
        here = [one for one in living if one.wait.start <= now and one.end is None]
        if rules.deadline == "exclusive":
            for one in here:
                if now > one.wait.start and one.over():
                    _finish_at_deadline(one, now, now - 1)
            here = [one for one in here if one.end is None]
        for one in here:
            one.extend(now)
        if rules.serves != "every":
            _serve(here, unused, [event for event in events if event.at == now], rules, now)
        for one in here:
            if rules.holds == "ever" and (by := one.holds(now)) is not None:
                one.finish("completed", now, by, now)
            elif (
                rules.holds == "at_deadline" and one.over() and (rules.deadline == "inclusive" or now == one.wait.start)
            ):
                _complete_at_deadline(one, now, now)
            if one.end is None:
                met = [w for w in one.wait.of("cancel") if one.met(w, now, one.wait.start, rules.count)]
                if met:
                    since = [one.since(watch, now, one.wait.start, rules.count) for watch in met]
                    one.finish("cancelled", now, (met[since.index(min(since))].key, min(since)), now)
            if one.end is None and one.over() and (rules.deadline == "inclusive" or now == one.wait.start):
                _finish_at_deadline(one, now, now)
        for one in here:
            one.pass_time(now)
    for one in living:
        if one.end is None:
            one.end = End("pending", None, None, None, one.counted(horizon))
    return {one.wait.op_id: one.end for one in living if one.end is not None}


def _complete_at_deadline(one: _Living, now: int, last: int) -> None:
    watches = one.wait.of("complete")
    met = [watch for watch in watches if one.met(watch, last, one.wait.start, one.count)]
    if met and (one.wait.condition == "any" or len(met) == len(watches)):
        one.finish("completed", now, (met[0].key, now), last)


def _finish_at_deadline(one: _Living, now: int, last: int) -> None:
    if one.rules.holds == "at_deadline":
        _complete_at_deadline(one, now, max(last, one.wait.start))
    if one.end is None:
        one.finish("expired", now, None, max(last, one.wait.start))


def _serve(here: list[_Living], unused: list[Event], arrived: list[Event], rules: Rules, now: int) -> None:
    """Hand out the events of an instant, and unused ones to those who start (O7)."""
    newest = rules.serves == "newest"
    by_age = sorted(here, key=lambda one: one.wait.op_id)
    by_age.sort(key=lambda one: -one.wait.start if newest else one.wait.start)

    def wants(one: _Living, event: Event) -> bool:
        watch = one.wait.of("complete")[0]
        if event.key != watch.key or one.holds(now) is not None:
            return False
        return rules.combine == "sum" or event.progress >= watch.required

    def take_unused(turn: int) -> None:
        if rules.count != "always":
            return
        for one in by_age:
            if one.wait.start == now:
                for event in sorted(unused, key=lambda event: (turn * event.at, -event.progress)):
                    if wants(one, event):
                        one.served.append(event)
                        unused.remove(event)

    if not newest:
        take_unused(1)
    for event in sorted(arrived, key=lambda event: -event.progress):
        for one in by_age:
            if (rules.count != "after_start" or one.wait.start < now) and wants(one, event):
                one.served.append(event)
                break
        else:
            unused.append(event)
    if newest:
        take_unused(-1)


def some_rules(dice: random.Random) -> Rules:
    """Draw rules that are not refused together."""
    served: list[Literal["every", "oldest", "newest"]] = ["every", "every", "oldest", "newest"]
    combined: list[Literal["max", "sum", "last"]] = ["max", "sum", "last"]
    serves = dice.choice(served)
    combine = dice.choice(combined[:2] if serves != "every" else combined)
    hours = None
    if dice.random() < 0.3:
        cuts = sorted(dice.sample(range(30), 6))
        hours = ((cuts[0], cuts[1]), (cuts[2], cuts[3]), (cuts[4], 10_000))
    return Rules(
        count=dice.choice(["always", "from_start", "after_start"]),
        combine=combine,
        holds="ever" if serves != "every" else dice.choice(["ever", "ever", "at_deadline"]),
        serves=serves,
        within=dice.choice(["whole", "whole", "step"]),
        deadline=dice.choice(["inclusive", "inclusive", "exclusive"]),
        hours=hours,
    )


def some_waits(dice: random.Random, rules: Rules) -> tuple[list[Wait], list[Event]]:
    """Draw a world so small that starts, events and deadlines meet."""
    instants, levels = dice.choice([4, 10, 25]), dice.choice([1, 3])
    keys = "ab"[: dice.choice([1, 2])]
    events = [
        Event(dice.choice(keys + "xyp"), dice.randint(0, instants), dice.randint(-1, levels))
        for _ in range(dice.randint(0, 14))
    ]
    waits = []
    for number in range(dice.randint(1, 5)):
        several = rules.serves == "every" and dice.random() < 0.5
        conditions: list[Literal["all", "any", "then"]] = ["all", "any", "then"]
        condition = dice.choice(conditions[: 3 if rules.holds == "ever" else 2])
        watches = [
            Watch(dice.choice(keys), dice.randint(-1, levels + 1)) for _ in range(dice.choice([2, 3]) if several else 1)
        ]
        if dice.random() < 0.3:
            watches += [Watch(dice.choice("x" + keys), dice.randint(0, levels), "cancel")] * dice.choice([1, 1, 2])
        if dice.random() < 0.3 and not (rules.within == "step" and condition == "then"):
            watches += [Watch(key, 1, "extend") for key in dice.choice(["y", "a", "ya"])]
        if dice.random() < 0.3:
            watches.append(Watch(dice.choice("pa"), dice.randint(0, 1), "pause"))
        extend = dice.choice([None, 0, 1, 3])
        timeout = dice.choice([0, 1, 2, 5, instants])
        waits.append(Wait(f"op-{number}", dice.randint(0, instants), timeout, tuple(watches), condition, extend))
    return waits, events
