"""Bulk calls: the same laws as the wheel's, column by column."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from abeyant.engine import MAX_TIME
from abeyant.kernels.bulk import BulkWheel
from engine.source_copy import Edit
from kernels.source_copy import kernels_copy
from oracle import Oracle


def integers(*values: int) -> array[int]:
    return array("q", values)


_times = st.one_of(
    st.integers(-5, 80),
    st.integers(-1, 1).map(lambda off: 64 + off),
    st.integers(-1, 1).map(lambda off: 4096 + off),
    st.integers(0, 10**7),
    st.sampled_from([2**31, 2**53, MAX_TIME // 2]),
)
_columns = st.lists(_times, max_size=40)


class BulkMachine(RuleBasedStateMachine):
    """Payloads are numbers from 0, which serve the oracle as keys. Handles are kept past their tasks' ends."""

    @initialize(tick=st.sampled_from([1, 1, 3, 1000]), wheel_size=st.sampled_from([2, 3, 8, 64]))
    def make(self, tick: int, wheel_size: int) -> None:
        self.wheel = BulkWheel(tick, wheel_size)
        self.oracle = Oracle(tick)
        self.handles: list[int] = []  # by payload

    def _reach(self, ahead: list[int]) -> list[int]:
        return [max(-MAX_TIME, min(MAX_TIME, self.wheel.clock + time)) for time in ahead]

    @rule(ahead=_columns)
    def add_many(self, ahead: list[int]) -> None:
        deadlines = self._reach(ahead)
        payloads = range(len(self.handles), len(self.handles) + len(deadlines))
        self.handles += self.wheel.add_many(integers(*deadlines), integers(*payloads))
        for payload, deadline in zip(payloads, deadlines, strict=True):
            self.oracle.add(payload, deadline)

    def _pick(self, picks: list[int]) -> list[int]:
        return [pick % len(self.handles) for pick in picks] if self.handles else []

    @rule(picks=st.lists(st.integers(0, 1000), max_size=20))
    def remove_many(self, picks: list[int]) -> None:
        payloads = self._pick(picks)
        expected = [self.oracle.remove(payload) for payload in payloads]
        removed = bytearray(len(payloads))
        count = self.wheel.remove_many(integers(*(self.handles[payload] for payload in payloads)), removed)
        assert list(removed) == expected, "T3"
        assert count == sum(expected)

    @rule(picks=st.lists(st.tuples(st.integers(0, 1000), _times), max_size=20))
    def refresh_many(self, picks: list[tuple[int, int]]) -> None:
        payloads = self._pick([pick for pick, _ in picks])
        deadlines = self._reach([time for _, time in picks[: len(payloads)]])
        expected = [self.oracle.refresh(*pair) for pair in zip(payloads, deadlines, strict=True)]
        refreshed = bytearray(len(payloads))
        handles = integers(*(self.handles[payload] for payload in payloads))
        assert self.wheel.refresh_many(handles, integers(*deadlines), refreshed) == sum(expected)
        assert list(refreshed) == expected

    @rule(ahead=_times)
    def advance(self, ahead: int) -> None:
        now = min(MAX_TIME, self.wheel.clock + ahead)
        reached = max(now // self.wheel.tick * self.wheel.tick, self.wheel.clock)
        for payload in self.wheel.advance(now):
            self.oracle.hand_out(payload, reached)
        assert not self.oracle.due(reached), "T2: all that is due has come out"

    @rule(ahead=_times, room=st.integers(0, 5), budget=st.none() | st.integers(0, 9))
    def advance_into(self, ahead: int, room: int, budget: int | None) -> None:
        now = min(MAX_TIME, self.wheel.clock + ahead)
        reached = max(now // self.wheel.tick * self.wheel.tick, self.wheel.clock)
        out = integers(*[-1] * room)
        count = self.wheel.advance_into(now, out, budget)
        assert count <= (room if budget is None else min(room, budget))
        assert list(out[count:]) == [-1] * (room - count)
        for payload in out[:count]:
            self.oracle.hand_out(payload, reached)
        if self.oracle.due(reached):
            upcoming = self.wheel.next_expiration()
            assert upcoming is not None
            assert upcoming <= reached, "T7: it says that there is more"

    @invariant()
    def own_invariants(self) -> None:
        self.wheel._check()
        assert len(self.wheel) == len(self.oracle)
        for payload, handle in enumerate(self.handles):
            assert self.wheel.deadline(handle) == self.oracle.deadline(payload)
            assert self.wheel.payload(handle) == (payload if payload in self.oracle else None)
            assert self.wheel.is_pending(handle) == (payload in self.oracle)


TestBulkAgainstTheSortedList = BulkMachine.TestCase


def test_without_payloads_the_handles_come_out() -> None:
    wheel = BulkWheel()
    handles = wheel.add_many(integers(30, 10, 20, 10))
    assert list(wheel.advance(20)) == [handles[1], handles[3], handles[2]]
    assert list(wheel.advance(30)) == [handles[0]]
    assert wheel.stats().expired == 4


@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 20_000])
def test_any_number_comes_out_in_order_with_and_without_a_budget(count: int) -> None:
    for budget in (None, 1000):
        wheel = BulkWheel(wheel_size=8)
        wheel.add_many(integers(*(1 + n % 97 for n in range(count))), integers(*range(count)))
        came: list[int] = []
        while (upcoming := wheel.next_expiration()) is not None and upcoming <= 100:
            came += wheel.advance(100, budget)
        assert came == sorted(range(count), key=lambda n: (1 + n % 97, n)), "T6"
        wheel._check()


def test_a_handle_given_twice_is_removed_once() -> None:
    wheel = BulkWheel()
    (handle,) = wheel.add_many(integers(5))
    removed = bytearray(3)
    assert wheel.remove_many(integers(handle, handle, 0), removed) == 1
    assert list(removed) == [1, 0, 0]
    assert wheel.remove_many(integers(handle)) == 0


@pytest.mark.parametrize("bad", [MAX_TIME + 1, -MAX_TIME - 1, 2**63 - 1, -(2**63)])
def test_a_deadline_out_of_reach_is_named_and_nothing_is_changed(bad: int) -> None:
    wheel = BulkWheel()
    with pytest.raises(OverflowError, match=f"deadline {bad} at position 1 "):
        wheel.add_many(integers(5, bad, 6))
    assert len(wheel) == 0
    handles = wheel.add_many(integers(5, 6))
    with pytest.raises(OverflowError, match=f"deadline {bad} at position 1 "):
        wheel.refresh_many(handles, integers(50, bad))
    assert [wheel.deadline(handle) for handle in handles] == [5, 6]
    wheel._check()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda wheel: wheel.add_many([1, 2]), TypeError, "deadlines must be a buffer of 64-bit integers"),
        (lambda wheel: wheel.add_many(array("i", [1])), TypeError, "deadlines must hold signed 64-bit integers"),
        (lambda wheel: wheel.add_many(array("Q", [1])), TypeError, "8-byte 'Q'"),
        (lambda wheel: wheel.add_many(array("d", [1])), TypeError, "8-byte 'd'"),
        (lambda wheel: wheel.add_many(b"1234567"), ValueError, "7 bytes long"),
        (lambda wheel: wheel.add_many(memoryview(integers(1, 2, 3))[::2]), ValueError, "contiguous"),
        (lambda wheel: wheel.add_many(integers(1), integers()), ValueError, "payloads has 0 elements, expected 1"),
        (lambda wheel: wheel.refresh_many(integers(1), integers()), ValueError, "deadlines has 0 elements, expected 1"),
        (lambda wheel: wheel.remove_many(integers(1), bytearray(2)), ValueError, "removed must be .* 1 elements"),
        (lambda wheel: wheel.remove_many(integers(1), bytes(1)), ValueError, "removed is read-only"),
        (lambda wheel: wheel.remove_many(integers(1), integers(1)), ValueError, "of one byte"),
        (lambda wheel: wheel.advance_into(5, bytes(8)), ValueError, "payloads is read-only"),
        (lambda wheel: wheel.advance_into(5, [0]), TypeError, "payloads must be a buffer"),
    ],
)
def test_other_buffers_are_refused_by_name(call: Callable[[Any], object], error: type, message: str) -> None:
    wheel = BulkWheel()
    with pytest.raises(error, match=message):
        call(wheel)
    assert len(wheel) == 0


def test_empty_columns_do_nothing() -> None:
    wheel = BulkWheel()
    assert list(wheel.add_many(b"")) == []
    assert list(wheel.add_many(integers(), integers())) == []
    assert wheel.remove_many(integers(), bytearray()) == 0
    assert wheel.refresh_many(integers(), integers(), bytearray()) == 0
    assert list(wheel.advance(10)) == []
    assert wheel.advance_into(10, integers()) == 0


def test_any_buffer_of_such_integers_will_do() -> None:
    numpy = pytest.importorskip("numpy")
    arrow = pytest.importorskip("pyarrow")
    wheel = BulkWheel()
    deadlines = numpy.array([3, 1, 2])
    handles = wheel.add_many(deadlines, arrow.array([30, 10, 20], arrow.int64()).buffers()[1])
    removed = numpy.zeros(2, bool)
    assert wheel.remove_many(numpy.array(handles)[[0, 0]], removed) == 1
    assert removed.tolist() == [True, False]
    out = numpy.zeros(4, "int64")
    assert wheel.advance_into(3, out[1:]) == 2
    assert out.tolist() == [0, 10, 20, 0]
    wheel.add_many(deadlines.view("datetime64[us]").view("int64"))
    assert len(wheel) == 3


def test_when_memory_runs_out_midway_nothing_has_been_started() -> None:
    full = Edit("slab", "if room > _MOST:", "if room > 512:")
    with kernels_copy(full) as kernels:
        wheel = kernels.bulk.BulkWheel()
        before = wheel.add_many(integers(1, 2, 3))
        with pytest.raises(OverflowError, match="a wheel holds at most"):
            wheel.add_many(integers(*range(600)))
        assert len(wheel) == 3
        assert wheel.remove_many(before) == 3
        wheel._check()
