"""The staircases against the laws O1-O3 by brute force: ties, boundaries, progress that goes back."""

from __future__ import annotations

import random
from array import array
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abeyant.kernels.resolve import NEVER, Staircases
from engine.source_copy import Edit
from kernels.source_copy import kernels_copy

LOW, HIGH = -(1 << 63), (1 << 63) - 1
COARSE = 1 << 14  # as in kernels.rows


class Event(NamedTuple):
    place: int
    identity: int
    progress: int
    at: int


class Op(NamedTuple):
    place: int
    identity: int
    required: int
    start: int
    deadline: int


Mode = Any  # "inclusive" or "exclusive"


def flat(events: list[Event]) -> array[int]:
    return array("q", [value for event in events for value in event])


def run(events: list[Event], ops: list[Op], deadline: Mode = "inclusive", kernel: Any = Staircases) -> list[int]:
    staircases = kernel(flat(events))
    columns = [array("q", column) for column in zip(*ops, strict=True)] if ops else [array("q")] * 5
    reached = array("q", [0]) * len(ops)
    staircases.first_reached(*columns, reached, deadline=deadline)
    shuffled = random.Random(len(ops)).sample(range(len(ops)), len(ops))
    asked = array("q", [value for number in shuffled for value in (*ops[number][:3], number)])
    staircases.reach(asked)
    for number, first in zip(asked[3::4], asked[2::4], strict=True):
        op = ops[number]
        in_time = first < op.deadline or (first == op.deadline and deadline == "inclusive")
        assert reached[number] == (op.start if first <= op.start else first if in_time else NEVER)
    return list(reached)


def outcome(events: list[Event], op: Op, deadline: Mode) -> int:
    """O1-O3, word by word: the first instant from the start to the deadline at which the condition holds."""
    mine = [event for event in events if (event.place, event.identity) == (op.place, op.identity)]
    for now in sorted({op.start, op.deadline} | {event.at for event in mine if op.start <= event.at <= op.deadline}):
        if now == op.deadline > op.start and deadline == "exclusive":
            break
        seen = [event.progress for event in mine if event.at <= now]
        if seen and max(seen) >= op.required:
            return now
    return NEVER


keys = st.sampled_from([0, 1, LOW, HIGH])
small = st.integers(0, 12)
levels = st.one_of(st.integers(-2, 6), st.sampled_from([LOW, LOW + 1, HIGH - 1, HIGH]))
some_events = st.lists(st.builds(Event, keys, st.sampled_from([0, 7]), levels, small), max_size=30)
some_ops = st.lists(
    st.builds(
        lambda place, identity, required, start, timeout: Op(place, identity, required, start, start + timeout),
        keys, st.sampled_from([0, 7]), levels, small, st.integers(0, 8),
    ),
    max_size=8,
)  # fmt: skip


@given(some_events, some_ops, st.sampled_from(["inclusive", "exclusive"]))
@example([Event(0, 0, 3, 5)], [Op(0, 0, 3, 2, 5)], "inclusive")  # at the deadline
@example([Event(0, 0, 3, 5)], [Op(0, 0, 3, 2, 5)], "exclusive")
@example([Event(0, 0, 3, 5)], [Op(0, 0, 3, 5, 5)], "exclusive")  # at the start, which is the deadline too
@example([Event(0, 0, 3, 5), Event(0, 0, 9, 1)], [Op(0, 0, 3, 2, 9)], "inclusive")  # it went back, the maximum not
def test_o1_o2_o3_equal_brute_force(events: list[Event], ops: list[Op], deadline: Mode) -> None:
    assert run(events, ops, deadline) == [outcome(events, op, deadline) for op in ops]


@given(some_events, some_ops, st.randoms(use_true_random=False))
def test_o4_order_and_duplicates_of_events_change_nothing(events: list[Event], ops: list[Op], dice: Any) -> None:
    again = events + [event for event in events if dice.random() < 0.5]
    dice.shuffle(again)
    assert run(again, ops) == run(events, ops)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 1000])
def test_any_number_of_events_is_sorted(count: int) -> None:
    """The merge sort's edges: whole and broken runs, an even and an odd number of passes."""
    dice = random.Random(count)
    events = [Event(dice.randrange(3), 0, dice.randrange(count), dice.randrange(count)) for _ in range(count)]
    ops = [Op(dice.randrange(4), 0, dice.randrange(count + 1), 0, count) for _ in range(40)]
    assert run(events, ops) == [outcome(events, op, "inclusive") for op in ops]


@pytest.mark.parametrize("width", [0, 3, 40, 63])
def test_places_far_apart_and_close_together_are_sorted(width: int) -> None:
    """The buckets: all in one, spread, over more than half of the 64 bits, and one key with nearly all rows."""
    dice = random.Random(width)
    places = [dice.randrange(-(1 << width), 1 << width) for _ in range(30)] + [dice.choice([LOW, 0, HIGH])] * 300
    events = [Event(dice.choice(places), 0, dice.randrange(9), dice.randrange(9)) for _ in range(700)]
    rows = memoryview(Staircases(flat(events)).steps).tolist()
    steps = [Event(*rows[n : n + 4]) for n in range(0, len(rows), 4)]
    assert steps == sorted(steps, key=lambda step: (step.place, -step.progress))
    assert set(steps) <= set(events)
    ops = [Op(place, 0, dice.randrange(10), 0, 9) for place in places[:60]]
    assert run(events, ops) == [outcome(events, op, "inclusive") for op in ops]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_more_rows_than_fit_the_cache_are_sorted(share: float) -> None:
    """Several coarse buckets, without and with one key that has a share of all rows."""
    dice = random.Random(3)
    count = COARSE + 1
    places = [7 if dice.random() < share else dice.randrange(LOW, HIGH) for _ in range(count)]
    rows = [Event(place, 0, dice.randrange(count), dice.randrange(count)) for place in places]
    steps = memoryview(Staircases(flat(rows)).steps).tolist()
    expected: list[Event] = []
    for event in sorted(rows, key=lambda event: (event.place, -event.progress, event.at)):
        if not expected or expected[-1].place != event.place or event.at < expected[-1].at:
            expected.append(event)
    assert [Event(*steps[n : n + 4]) for n in range(0, len(steps), 4)] == expected


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("disorder", [None, 0, 1, 50, 98])
def test_rows_in_order_and_in_reverse_but_for_one_pair(backwards: bool, disorder: int | None) -> None:
    rows = [Event(1, 1, n, n) for n in range(100)]
    if backwards:
        rows.reverse()
    if disorder is not None:
        rows[disorder], rows[disorder + 1] = rows[disorder + 1], rows[disorder]
    steps = memoryview(Staircases(flat(rows)).steps).tolist()
    assert steps[2::4] == list(range(99, -1, -1))


@given(st.lists(some_events, max_size=4))
def test_staircases_of_parts_are_merged_by_building_one_of_their_steps(parts: list[list[Event]]) -> None:
    """What the pipeline does on its map side changes nothing on the other."""
    merged = array("q")
    for part in parts:
        merged.extend(Staircases(flat(part)).steps)
    whole = Staircases(flat([event for part in parts for event in part]))
    assert list(Staircases(merged).steps) == list(whole.steps)


def test_only_what_comes_earlier_than_all_above_it_is_a_step() -> None:
    grows = [Event(1, 1, n, n) for n in range(100)]
    assert len(Staircases(flat(grows))) == 100
    falls = [Event(1, 1, -n, n) for n in range(100)]
    assert len(Staircases(flat(falls))) == 1
    assert len(Staircases(array("q"))) == 0


def test_a_bad_buffer_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="events has 5 integers, not a multiple of 4, the width of a row"):
        Staircases(array("q", range(5)))
    with pytest.raises(TypeError, match="events must hold signed 64-bit integers"):
        Staircases(array("d", [1.0]))
    staircases = Staircases(array("q", [1, 2, 3, 4]))
    one, two = array("q", [1]), array("q", [1, 2])
    with pytest.raises(ValueError, match="required has 2 elements, expected 1, as many as places"):
        staircases.first_reached(one, one, two, one, one, array("q", [0]))
    with pytest.raises(ValueError, match="reached has 2 elements, expected 1, as many as places"):
        staircases.first_reached(one, one, one, one, one, two)
    with pytest.raises(ValueError, match="reached is read-only"):
        staircases.first_reached(one, one, one, one, one, bytes(8))
    with pytest.raises(ValueError, match="asked has 2 integers, not a multiple of 4, the width of a row"):
        staircases.reach(two)
    with pytest.raises(ValueError, match="asked is read-only"):
        staircases.reach(bytes(32))
    with pytest.raises(ValueError, match="deadline must be 'inclusive' or 'exclusive', not 'open'"):
        staircases.first_reached(one, one, one, one, one, array("q", [0]), deadline="open")  # type: ignore[arg-type]


MUTANTS = {
    "an event at the start comes too late": Edit("resolve", "if at <= start:", "if at < start:"),
    "an event at the deadline comes too late": Edit("resolve", "and not exclusive)", "and exclusive)"),
    "an equal progress does not do": Edit(
        "resolve", "return self._steps[step + 2] < required", "return self._steps[step + 2] <= required"
    ),
    "the least progress first": Edit(
        "rows", "return rows[one + 2] > rows[other + 2]", "return rows[one + 2] < rows[other + 2]"
    ),
    "keys of one place are one": Edit(
        "resolve", "rows[row] != steps[last] or rows[row + 1] != steps[last + 1] or", "rows[row] != steps[last] or"
    ),
    "what never reached its key reaches the next": Edit(
        "resolve", "and self._steps[_WIDTH * low + 1] == identity:", "and self._steps[_WIDTH * low + 1] >= 0:"
    ),
    "the search stops one short": Edit("resolve", "while low < high:  #", "while low + 1 < high:  #"),
    "the directory begins a step late": Edit(
        "resolve", "self._directory[entry] = step\n", "self._directory[entry] = step + 1\n"
    ),
    "a block is not sorted to its end": Edit("rows", "range(low + 1, high)", "range(low + 1, high - 1)"),
    "runs in the wrong order are only copied": Edit(
        "rows", "if middle < high and not _is_before(", "if middle < high and _is_before("
    ),
    "a bucket's last pass is lost": Edit("rows", "    if there:\n        for", "    if not there:\n        for"),
    "what begins in order is in order": Edit(
        "rows", "    if row == high:\n        return\n    if", "    if row > low + 2:\n        return\n    if"
    ),
    "what begins in reverse is reversed": Edit("rows", "        if row == high:\n", "        if row > low + 2:\n"),
    "a bucket loses its last row": Edit(
        "rows", "range(begin, end):\n        bucket =", "range(begin, end - 1):\n        bucket ="
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MUTANTS)
def test_a_deliberate_mistake_is_noticed(mistake: str) -> None:
    dice = random.Random(8)

    def agrees(kernel: Any) -> bool:
        for _ in range(300):
            events = [
                Event(dice.choice([0, 1]), dice.choice([0, 7]), dice.randrange(5), dice.randrange(9))
                for _ in range(dice.choice([9, 9, 50]))
            ]
            starts = [dice.randrange(9) for _ in range(6)]
            ops = [
                Op(dice.choice([0, 1]), dice.choice([0, 7]), dice.randrange(6), s, s + dice.randrange(5))
                for s in starts
            ]
            for deadline in ("inclusive", "exclusive"):
                try:
                    if run(events, ops, deadline, kernel) != [outcome(events, op, deadline) for op in ops]:
                        return False
                except (IndexError, AssertionError):
                    return False
        return True

    assert agrees(Staircases)
    with kernels_copy(MUTANTS[mistake]) as kernels:
        assert not agrees(kernels.resolve.Staircases)
