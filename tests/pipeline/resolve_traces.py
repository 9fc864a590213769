"""Traces of operations and events, and their outcomes twice: by brute force, and by the real purgatory.

Times are integers, microseconds on a trace's own clock from 0; the fourth engine, Spark, has them added to an epoch.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Literal, NamedTuple

from abeyant import DelayedOperation, ManualTimer, Purgatory

Deadline = Literal["inclusive", "exclusive"]
Outcomes = dict[str, tuple[str, int]]
"""By op_id: `completed` or `expired`, and when."""

MS = 1000


class Watch(NamedTuple):
    key: str
    required: int


class Op(NamedTuple):
    op_id: str
    start: int
    timeout_ms: int
    watches: tuple[Watch, ...]
    condition: str | None  # None: all

    @property
    def deadline(self) -> int:
        return self.start + self.timeout_ms * MS


class Event(NamedTuple):
    key: str
    at: int
    progress: int


class Trace(NamedTuple):
    operations: list[Op]
    events: list[Event]


def some_trace(dice: random.Random) -> Trace:
    """Make a trace in a world so small that starts, events and deadlines meet, or miss by one microsecond."""
    keys = "abc"[: dice.choice([1, 1, 2, 3])]
    instants = dice.choice([3, 8, 20])
    levels = dice.choice([1, 3, 10])

    def instant() -> int:
        return max(dice.randint(1, instants) * MS + dice.choice([0, 0, 0, 0, -1, 1]), 0)

    events = [Event(dice.choice(keys), instant(), dice.randint(-1, levels)) for _ in range(dice.randint(0, 12))]
    if dice.random() < 0.3:  # progress that only ever grows, as most does
        levels_grown = sorted(event.progress for event in events)
        events = [
            event._replace(progress=level) for event, level in zip(sorted(events, key=_at), levels_grown, strict=True)
        ]
    operations = []
    for number in range(dice.randint(1, 6)):
        watches = tuple(
            Watch(dice.choice(keys + "z" * (dice.random() < 0.1)), dice.randint(-1, levels))
            for _ in range(dice.choice([1, 1, 1, 2, 3]))
        )
        condition = dice.choice(["all", "all", "any", None])
        operations.append(Op(f"op-{number}", instant(), dice.choice([0, 1, 2, 5, instants]), watches, condition))
    events += dice.sample(events, dice.randint(0, len(events) // 3))  # some come twice
    dice.shuffle(events)
    return Trace(operations, events)


def _at(event: Event) -> int:
    return event.at


def by_brute_force(trace: Trace, deadline: Deadline) -> Outcomes:
    """O1-O3 word by word: look at every microsecond at which anything happens, one after the other."""
    outcomes = {}
    for op in trace.operations:
        instants = {op.start, op.deadline} | {e.at for e in trace.events if op.start <= e.at <= op.deadline}
        outcomes[op.op_id] = ("expired", op.deadline)
        for now in sorted(instants):
            if now == op.deadline and deadline == "exclusive" and now > op.start:
                break
            reached = []
            for watch in op.watches:
                seen = [event.progress for event in trace.events if event.key == watch.key and event.at <= now]
                reached.append(bool(seen) and max(seen) >= watch.required)
            if any(reached) if op.condition == "any" else all(reached):
                outcomes[op.op_id] = ("completed", now)
                break
    return outcomes


class Level(DelayedOperation):
    """An operation that waits for levels, and tells when it ended."""

    def __init__(
        self, op: Op, levels: dict[str, int], timer: ManualTimer, timeout_us: float, outcomes: Outcomes
    ) -> None:
        super().__init__(timeout_us / 1e6)
        self.op = op
        self.levels = levels
        self.timer = timer
        self.ends = outcomes

    def try_complete(self) -> bool:
        reached = [self.levels.get(watch.key, -(1 << 63)) >= watch.required for watch in self.op.watches]
        return (any(reached) if self.op.condition == "any" else all(reached)) and self.force_complete()

    def on_complete(self) -> None:
        self.ends[self.op.op_id] = ("completed", round(self.timer.time() * 1e6))

    def on_expiration(self) -> None:
        self.ends[self.op.op_id] = ("expired", self.op.deadline)


def by_purgatory(trace: Trace, deadline: Deadline) -> Outcomes:
    """Let the real purgatory live through the trace on a virtual clock.

    At one instant tasks run in the order in which they were added: all progress first, then all starts, then what
    these add, the expiries (O3). An exclusive deadline is one a little earlier than the instant.
    """
    timer = ManualTimer()
    purgatory: Purgatory[Level] = Purgatory("trace", timer)
    levels: dict[str, int] = {}
    outcomes: Outcomes = {}

    def progress(event: Event) -> None:
        levels[event.key] = max(levels.get(event.key, event.progress), event.progress)
        purgatory.check_and_complete(event.key)

    def start(op: Op) -> None:
        earlier = 0.5 if deadline == "exclusive" and op.timeout_ms else 0
        wait = Level(op, levels, timer, op.timeout_ms * MS - earlier, outcomes)
        purgatory.try_complete_else_watch(wait, [watch.key for watch in op.watches])

    for event in trace.events:
        timer.call_at(event.at / 1e6, progress, event)
    for op in trace.operations:
        timer.call_at(op.start / 1e6, start, op)
    timer.advance(3600.0)
    assert not len(timer)
    return outcomes


def some_traces(count: int, seed: int) -> list[Trace]:
    dice = random.Random(seed)
    return [some_trace(dice) for _ in range(count)]


def variety(traces: Iterable[Trace], deadline: Deadline) -> dict[str, int]:
    """Count what the traces hold, so that a test can say that it saw it."""
    seen = {"completed at start": 0, "completed at the deadline": 0, "completed between": 0, "expired": 0, "several": 0}
    for trace in traces:
        ends = by_brute_force(trace, deadline)
        for op in trace.operations:
            outcome, at = ends[op.op_id]
            seen["several"] += len(op.watches) > 1
            if outcome == "expired":
                seen["expired"] += 1
            elif at == op.start:
                seen["completed at start"] += 1
            elif at == op.deadline:
                seen["completed at the deadline"] += 1
            else:
                seen["completed between"] += 1
    return seen
