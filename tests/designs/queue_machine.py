"""One conformance suite for every timer queue behind the engine's port: anything is done to it, and it is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from designs.judge import Judge
from lab.rivals import DESIGNS, Precision

# Each design's own parameters to be tried, and what its levels or rounds are multiples of.
SHAPES: dict[str, list[tuple[dict[str, int], int]]] = {
    "wheel": [({"tick": t, "wheel_size": n}, n) for t, n in ((1, 2), (1, 10), (7, 4), (1000, 64))],
    "hashed-wheel": [({"tick": t, "size": n}, n) for t, n in ((1, 2), (7, 5), (100, 16), (100, 512))],
    "kernel-wheel": [({"tick": t, "levels": n}, 8) for t, n in ((1, 9), (1, 2), (7, 3), (1000, 16))],
    "ring": [({"tick": t, "size": n}, n) for t, n in ((1, 2), (1, 100), (7, 64))],
}
_NO_SHAPE: list[tuple[dict[str, int], int]] = [({}, 8), ({}, 64)]

_FAR = 10**12
_MANY_TICKS = 2_000  # for those who look at every one

# A time is drawn as a recipe, for what is interesting is known only once the machine has got somewhere.
When = Callable[["QueueMachine"], int]

_off_by = st.integers(-1, 1)


def _near(ticks: int, units: int) -> When:
    return lambda machine: machine.judge.now + ticks * machine.tick + units


def _edge(level: int, multiple: int, ticks: int, units: int) -> When:
    """About where a bucket of `level` begins."""

    def when(machine: QueueMachine) -> int:
        span: int = machine.tick * machine.scale**level
        return (machine.judge.now // span + multiple) * span + ticks * machine.tick + units

    return when


def _horizon(level: int, multiple: int, ticks: int, units: int) -> When:
    """About as far ahead as `level` reaches, from the clock, or from where its bucket begins."""
    return lambda machine: (
        machine.judge.now + (machine.scale * multiple - 1) * machine.tick * machine.scale**level + ticks * machine.tick
        if units > 0
        else _edge(level, machine.scale, ticks, units)(machine)
    )


def _tie(index: int, units: int) -> When:
    def when(machine: QueueMachine) -> int:
        keys = machine.judge.sorted.pending()
        return (machine.judge.sorted.deadline(keys[index % len(keys)]) or 0) - units if keys else machine.judge.now

    return when


def _ahead(units: int) -> When:
    return lambda machine: machine.judge.now + units


def _upcoming(units: int) -> When:
    return lambda machine: (machine.queue.next_expiration() or machine.judge.now) + units


_close_by = st.one_of(
    st.builds(_near, st.integers(-2, 70), _off_by),
    st.builds(_edge, st.integers(0, 5), st.integers(0, 3), _off_by, _off_by),
    st.builds(_horizon, st.integers(0, 5), st.integers(1, 8), _off_by, _off_by),
    st.builds(_tie, st.integers(0, 20), _off_by),
)
deadlines = st.one_of(_close_by, _close_by, st.builds(_ahead, st.integers(-1000, _FAR)))
times = st.one_of(_close_by, st.builds(_upcoming, _off_by), st.builds(_ahead, st.sampled_from([-(10**6), 10**9])))


class QueueMachine(RuleBasedStateMachine):
    """To be subclassed with a design's name. Items are numbers; handles are kept past their tasks' ends."""

    name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[int] = []  # by item
        self.unfinished = False  # whether the last `advance` had a budget

    def make(self, **shape: int) -> Any:
        return DESIGNS[self.name].make(**shape)

    def precision(self, **shape: int) -> Precision:
        return DESIGNS[self.name].precision(**shape)

    @initialize(data=st.data(), start=st.sampled_from([0, 1, 99, 12_345, 2**31 - 1, 2**40 + 77]))
    def begin(self, data: st.DataObject, start: int) -> None:
        shape, self.scale = data.draw(st.sampled_from(SHAPES.get(self.name, _NO_SHAPE)))
        self.queue = self.make(**shape, start=start)
        self.tick = shape.get("tick", 1)
        self.judge = Judge(self.precision(**shape), start)

    # -- what is done to it

    @rule(when=deadlines, count=st.sampled_from([1, 1, 1, 5]))
    def add(self, when: When, count: int) -> None:
        for _ in range(count):
            self._add(when(self))

    @rule(when=deadlines, steps=st.lists(st.integers(-40, 40), min_size=4, max_size=12))
    def add_many(self, when: When, steps: list[int]) -> None:
        around = when(self)
        for step in steps:
            self._add(around + step * self.tick)

    @precondition(lambda self: self.handles)
    @rule(index=st.integers(0, 1000))
    def remove(self, index: int) -> None:
        keys: list[Any] = self.judge.sorted.pending()
        item = keys[index % len(keys)] if keys and index % 4 else index % len(self.handles)
        expected = item if self.judge.remove(item) else None
        assert self.queue.remove(self.handles[item]) == expected, "T3: what was pending, and only that"

    @precondition(lambda self: len(self.judge.sorted) > 1)
    @rule(keep=st.integers(1, 5))
    def remove_most(self, keep: int) -> None:
        pending: list[Any] = self.judge.sorted.pending()
        for item in pending[:-keep]:
            assert self.judge.remove(item)
            assert self.queue.remove(self.handles[item]) == item

    @rule(when=times)
    def advance(self, when: When) -> None:
        self._advance(self._within(when(self)))

    @rule(when=times, budget=st.integers(0, 3))
    def advance_with_a_budget(self, when: When, budget: int) -> None:
        now = self._within(when(self))
        items = self.queue.advance(now, budget)
        self.unfinished = True
        assert len(items) <= budget
        self.judge.handed_out(items, now)

    @rule(steps=st.integers(1, 30))
    def run_as_a_driver_does(self, steps: int) -> None:
        """Wake exactly when told to; what is due by its own promise must have come, at each step (T2)."""
        for _ in range(steps):
            upcoming = self.queue.next_expiration()
            if upcoming is None:
                break
            self._advance(upcoming)

    # -- what must hold after every step

    @invariant()
    def own_invariants(self) -> None:
        self.queue._check()

    @invariant()
    def count_is_exact(self) -> None:
        assert len(self.queue) == len(self.judge.sorted)

    @invariant()
    def nothing_will_be_missed(self) -> None:
        self.judge.upcoming(self.queue.next_expiration())

    def _add(self, deadline: int) -> None:
        deadline = self._within(deadline)
        item = len(self.handles)
        self.handles.append(self.queue.add(deadline, item))
        self.judge.add(item, deadline)

    def _advance(self, now: int) -> None:
        if self.unfinished:  # with a budget it may have stopped short of its `now`, and is to be told again
            now = max(now, self.judge.now)
            self.unfinished = False
        self.judge.handed_out(self.queue.advance(now), now)
        self.judge.all_came(self.judge.now)

    def _within(self, time: int) -> int:
        """`time`, or the last that the design can take."""
        precision = self.judge.precision
        most = min(precision.reach, _MANY_TICKS * self.tick if precision.polls else _FAR)
        return max(0, min(time, self.judge.now + most))
