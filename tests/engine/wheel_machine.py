"""The wheel against the sorted list: a machine that does anything to both, and compares after every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from abeyant.engine import MAX_TIME, TimingWheel
from oracle import Oracle

# A time is drawn as a recipe, because what is interesting (a wheel's edge, a tie with another task) is known only
# once the machine has got somewhere. `When` turns the machine into a time in units.
When = Callable[["WheelMachine"], int]


def _near(ticks: int, units: int) -> When:
    return lambda machine: machine.clock + ticks * machine.tick + units


def _edge(level: int, multiple: int, ticks: int, units: int) -> When:
    """About where a bucket of `level` begins, `multiple` buckets from the one that the clock is in."""

    def when(machine: WheelMachine) -> int:
        span: int = machine.tick * machine.wheel.wheel_size**level
        return (machine.clock // span + multiple) * span + ticks * machine.tick + units

    return when


def _horizon(level: int, ticks: int, units: int) -> When:
    """About the first time that wheel `level` cannot hold."""
    return lambda machine: _edge(level, machine.wheel.wheel_size, ticks, units)(machine)


def _tie(index: int, units: int) -> When:
    """At another task's deadline."""

    def when(machine: WheelMachine) -> int:
        keys = machine.oracle.pending()
        if not keys:
            return machine.clock
        return (machine.oracle.deadline(keys[index % len(keys)]) or 0) - units

    return when


def _upcoming(units: int) -> When:
    return lambda machine: (machine.wheel.next_expiration() or 0) + units


def _ahead(units: int) -> When:
    return lambda machine: machine.clock + units


def _at(time: int) -> When:
    return lambda machine: time


_off_by = st.integers(-1, 1)
_levels = st.integers(0, 6)

_close_by = st.one_of(
    st.builds(_near, st.integers(-3, 70), _off_by),
    st.builds(_edge, _levels, st.integers(-1, 3), _off_by, _off_by),
    st.builds(_horizon, _levels, _off_by, _off_by),
    st.builds(_tie, st.integers(0, 20), st.integers(0, 2)),
)
_powers = st.sampled_from([31, 32, 53, 61, 62])
deadlines = st.one_of(
    _close_by,
    _close_by,
    st.builds(_near, st.integers(-20, 0), _off_by),  # overdue, mostly
    st.builds(_ahead, st.integers(-(10**6), 10**12)),
    st.builds(lambda power, off: _at(2**power + off), _powers, _off_by),
    st.builds(_at, st.integers(-MAX_TIME, MAX_TIME)),
)
times = st.one_of(
    _close_by,
    st.builds(_upcoming, _off_by),
    st.builds(_ahead, st.sampled_from([-(2**70), -1, 10**6, 10**10])),
)


class WheelMachine(RuleBasedStateMachine):
    """Items are numbers, which serve the oracle as keys. Handles are kept past their tasks' ends."""

    wheel_class: Any = TimingWheel

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[int] = []  # by item
        self.ended = 0
        self.cancelled = 0

    @initialize(
        tick=st.one_of(st.just(1), st.integers(1, 13), st.sampled_from([1000, 10**6, 2**40])),
        wheel_size=st.one_of(st.integers(2, 5), st.integers(2, 20), st.just(64)),
        start=st.one_of(
            st.just(0),
            st.integers(0, 10_000),
            st.builds(lambda power, off: 2**power + off, st.sampled_from([31, 53, 61]), _off_by),
            st.integers(MAX_TIME - 10_000, MAX_TIME),
        ),
    )
    def make(self, tick: int, wheel_size: int, start: int) -> None:
        self.wheel = self.wheel_class(tick, wheel_size, start)
        self.oracle = Oracle(tick)
        assert self.wheel.clock == start // tick * tick

    # -- what is done to both ------------------------------------------------------------------------------

    @rule(when=deadlines)
    def add(self, when: When) -> None:
        self._add(self._deadline(when))

    @rule(when=deadlines, count=st.integers(2, 6))
    def add_several_for_one_tick(self, when: When, count: int) -> None:
        deadline = self._deadline(when)
        for _ in range(count):
            self._add(deadline)

    @precondition(lambda self: self.oracle.pending())
    @rule(
        index=st.integers(-3, 20),
        ticks=st.integers(0, 10) | st.integers(0, 70),
        budget=st.none() | st.integers(0, 3),
        then_drain=st.booleans(),
    )
    def add_a_tie_from_nearer(self, index: int, ticks: int, budget: int | None, then_drain: bool) -> None:
        """Go near a task's deadline, and give it company that is filed in a lower wheel."""
        keys = self.oracle.pending()
        deadline = self.oracle.deadline(keys[index % len(keys)])
        assert deadline is not None
        now, reached = self._time(_at(deadline - ticks * self.wheel.tick))
        self._handed_out(self.wheel.advance(now, budget), reached)
        self._add(min(deadline, MAX_TIME))
        if then_drain:
            self.drain()

    @rule(
        far=st.integers(2, 300),
        near=st.integers(1, 20),
        later=st.integers(0, 300),
        budget=st.none() | st.integers(1, 2),
    )
    def have_one_alone_in_its_bucket_and_few_after_it(
        self, far: int, near: int, later: int, budget: int | None
    ) -> None:
        self.drain()
        deadline = self._deadline(_near(far, 0))
        self._add(deadline)
        now, reached = self._time(_at(deadline - near * self.tick))
        self._handed_out(self.wheel.advance(now), reached)
        self._add(deadline)
        self._add(self._deadline(_at(deadline + later * self.tick)))
        now, reached = self._time(_at(deadline))
        self._handed_out(self.wheel.advance(now, budget), reached)

    @rule(
        far=st.integers(2, 300), near=st.integers(1, 20), company=st.integers(1, 4), budget=st.integers(1, 5),
        index=st.integers(1, 5), then_drain=st.booleans(),
    )  # fmt: skip
    def remove_one_midway_through_a_cascade(
        self, far: int, near: int, company: int, budget: int, index: int, then_drain: bool
    ) -> None:
        """Of several for one tick, filed in several wheels, after a part of them has come down."""
        deadline = self._deadline(_near(far, 0))
        self._add(deadline)
        now, reached = self._time(_at(deadline - near * self.tick))
        self._handed_out(self.wheel.advance(now), reached)
        for _ in range(company):
            self._add(deadline)
        now, reached = self._time(_at(deadline))
        self._handed_out(self.wheel.advance(now, budget), reached)
        self.remove(-min(index, company))
        if then_drain:
            self.drain()

    @precondition(lambda self: self.handles)
    @rule(index=st.integers(0, 1000))
    def remove(self, index: int) -> None:
        item = self._pick(index)
        if self.oracle.remove(item):
            assert self.wheel.remove(self.handles[item]) == item
            self.cancelled += 1
        else:
            assert self.wheel.remove(self.handles[item]) is None, "T3: it had ended"

    @precondition(lambda self: self.handles)
    @rule(index=st.integers(0, 1000), when=deadlines)
    def refresh(self, index: int, when: When) -> None:
        item = self._pick(index)
        deadline = self._deadline(when)
        assert self.wheel.refresh(self.handles[item], deadline) == self.oracle.refresh(item, deadline)

    @rule(ticks=st.integers(1, 20), when=deadlines)
    def refresh_an_overdue_one(self, ticks: int, when: When) -> None:
        self._add(max(-MAX_TIME, _near(-ticks, 0)(self)))
        item = len(self.handles) - 1
        deadline = self._deadline(when)
        assert self.wheel.refresh(self.handles[item], deadline)
        self.oracle.refresh(item, deadline)

    @rule(when=times)
    def advance(self, when: When) -> None:
        now, reached = self._time(when)
        self._handed_out(self.wheel.advance(now), reached)
        assert self.wheel.clock == reached
        assert not self.oracle.due(reached), "T2: all that is due has come out"

    @rule(when=times, budget=st.integers(0, 6))
    def advance_with_a_budget(self, when: When, budget: int) -> None:
        now, reached = self._time(when)
        items = self.wheel.advance(now, budget)
        assert len(items) <= budget
        self._handed_out(items, reached)
        self._says_if_there_is_more(reached)

    @rule(when=times, budget=st.integers(0, 4))
    def poll(self, when: When, budget: int) -> None:
        now, reached = self._time(when)
        item = self.wheel.poll(now, budget)
        if item is not None:
            self._handed_out([item], reached)
        self._says_if_there_is_more(reached)

    @rule(when=times, budget=st.integers(1, 4))
    def advance_turn_by_turn(self, when: When, budget: int) -> None:
        now, reached = self._time(when)
        turns = 1 + len(self.oracle) * (self.wheel.stats().levels + 3)  # that each cascades a level and comes out
        while (upcoming := self.wheel.next_expiration()) is not None and upcoming <= reached:
            self._handed_out(self.wheel.advance(now, budget), reached)
            turns -= 1
            assert turns >= 0, "every turn gets somewhere"
        assert not self.oracle.due(reached), "T7: the turns together run everything due"

    @rule()
    def drain(self) -> None:
        drained = self.wheel.drain()
        for deadline, item in drained:
            assert deadline == self.oracle.deadline(item)
        self.oracle.drain([item for _, item in drained])
        self.cancelled += len(drained)

    # -- what must hold after every step -------------------------------------------------------------------

    @invariant()
    def own_invariants(self) -> None:
        self.wheel._check()

    @invariant()
    def counts_are_exact(self) -> None:
        assert len(self.wheel) == len(self.oracle)
        stats = self.wheel.stats()
        assert stats.pending == len(self.oracle)
        assert stats.started == len(self.handles)
        assert stats.expired == self.ended
        assert stats.cancelled == self.cancelled

    @invariant()
    def handles_know_their_tasks(self) -> None:
        for item, handle in enumerate(self.handles):
            deadline = self.oracle.deadline(item)
            assert self.wheel.is_pending(handle) == (deadline is not None)
            assert self.wheel.deadline(handle) == deadline

    @invariant()
    def next_expiration_is_no_later_than_the_first_deadline(self) -> None:
        first = self.oracle.first_deadline()
        upcoming = self.wheel.next_expiration()
        if first is None:
            assert upcoming is None, "T10: nothing pending, nothing to wake for"
        else:
            assert upcoming is not None
            assert self.wheel.clock <= upcoming <= max(first, self.wheel.clock)

    @invariant()
    def earliest_is_the_first_deadline_and_all_that_have_it(self) -> None:
        first = self.oracle.first_deadline()
        found = self.wheel.earliest()
        if first is None:
            assert found is None
        else:
            assert found is not None
            same = [key for key in self.oracle.pending() if self.oracle.deadline(key) == first]
            assert (found[0], len(found[1]), set(found[1])) == (first, len(same), set(same))

    # -- helpers -------------------------------------------------------------------------------------------

    @property
    def clock(self) -> int:
        clock: int = self.wheel.clock
        return clock

    @property
    def tick(self) -> int:
        return self.oracle.tick

    def _add(self, deadline: int) -> None:
        item = len(self.handles)
        self.handles.append(self.wheel.add(deadline, item))
        self.oracle.add(item, deadline)

    def _pick(self, index: int) -> Any:
        """A task, mostly one that is pending."""
        keys = self.oracle.pending()
        return keys[index % len(keys)] if keys and index % 4 else index % len(self.handles)

    def _deadline(self, when: When) -> int:
        return max(-MAX_TIME, min(when(self), MAX_TIME))

    def _time(self, when: When) -> tuple[int, int]:
        """A `now`, and the time that the wheel's clock is to reach by it (T7: it never goes back)."""
        now = max(-MAX_TIME, min(when(self), MAX_TIME))
        return now, max(self.wheel.clock, now // self.wheel.tick * self.wheel.tick)

    def _handed_out(self, items: list[Any], now: int) -> None:
        for item in items:
            self.oracle.hand_out(item, now)
            self.ended += 1

    def _says_if_there_is_more(self, reached: int) -> None:
        if self.oracle.due(reached):
            upcoming = self.wheel.next_expiration()
            assert upcoming is not None
            assert upcoming <= reached, "a budget that ran out leaves next_expiration at or before now"
