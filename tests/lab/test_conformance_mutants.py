"""The conformance suite's own test: broken wheels, each of which it has to catch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from designs.queue_machine import QueueMachine
from designs.rival_copy import rivals_copy
from engine.source_copy import Edit, engine_copy
from engine.test_mutants import SEARCH, examples_that_hang_fail, limit_example

pytestmark = pytest.mark.slow

OUR_WHEEL = {
    "off by one bucket": Edit(
        "wheel",
        "            ahead = ticks - self._begin[level]\n",
        "            ahead = ticks - self._begin[level] + 1\n",
    ),
    "a cascade loses what is not due yet": Edit(
        "wheel", "self._file(slot, True)", "slab.deadline[slot] > self._clock or self._file(slot, True)"
    ),
    "early at a level's edge": Edit(
        "wheel", "        if ticks > self._clock:\n", "        if ticks > self._clock + (1 if cascading else 0):\n"
    ),
    "the next expiration is a tick late": Edit(
        "wheel", "return self._queue.first_expiration()\n", "return self._queue.first_expiration() + 1\n"
    ),
    "nothing is next while a higher wheel has tasks": Edit(
        "wheel",
        "                return self._queue.first_expiration()\n",
        "                if sentinel >= self._base[1] > 0:\n                    return -1\n"
        "                return self._queue.first_expiration()\n",
    ),
    "a task fires twice": Edit("wheel", "due.append(self._hand_out(slot))", "due += [self._hand_out(slot)] * 2"),
    "deadlines round down": Edit(
        "wheel", "return ticks if ticks * self._tick == deadline else ticks + 1", "return ticks"
    ),
}

RIVALS = {
    ("hashed-wheel", "HashedWheel", "a round too few"): Edit(
        "hashed_wheel", "(ticks - self._clock) // self._size", "max(0, (ticks - self._clock) // self._size - 1)"
    ),
    ("hashed-wheel", "HashedWheel", "out before the tick is over"): Edit(
        "hashed_wheel", "while self._clock < target:", "while self._clock <= target:"
    ),
    ("kernel-wheel", "KernelWheel", "rounds down"): Edit(
        "kernel_wheel", "bucket = ((ticks >> (_SHIFT * level)) + 1)", "bucket = ((ticks >> (_SHIFT * level)) + 0)"
    ),
    ("kernel-wheel", "KernelWheel", "a level holds a bucket too many"): Edit(
        "kernel_wheel", "_FINE << (_SHIFT * level) for level", "(_FINE + 2) << (_SHIFT * level) for level"
    ),
    ("kernel-wheel", "KernelWheel", "coarse levels are not asked what is next"): Edit(
        "kernel_wheel", "for level in range(self._levels):", "for level in range(min(self._levels, 2)):"
    ),
    ("ring", "Ring", "stops a bucket short"): Edit("ring", "range(1, steps + 1)", "range(1, steps)"),
    ("lazy-heap", "LazyHeap", "hands out what was stopped"): Edit(
        "lazy_heap", "            heap.delete(0)\n            self._drop_stale()\n", "            heap.delete(0)\n"
    ),
    ("indexed-heap", "IndexedHeap", "sinks below the wrong child"): Edit(
        "indexed_heap", "if child + 1 < self._size and", "if child + 1 < 0 and"
    ),
    ("delay-queue", "DelayQueue", "a stopped task stays in the heap"): Edit(
        "delay_queue", "if position >= 0:", "if position > 0:"
    ),
    ("sorted-list", "SortedList", "walks one too far"): Edit(
        "sorted_list", "slab.push_front(before, slot)", "slab.push_front(slab.last(before), slot)"
    ),
    ("unsorted-list", "UnsortedList", "due only when the deadline is over"): Edit(
        "unsorted_list", "if slab.deadline[slot] <= self._now:", "if slab.deadline[slot] < self._now:"
    ),
}  # fmt: skip


class JudgedAlone(QueueMachine):
    """Without the queue's own checks of itself: what comes out, and when, has to give the mistake away."""

    def __init__(self) -> None:
        super().__init__()
        limit_example()

    def own_invariants(self) -> None:
        pass


def caught(name: str, make: Any) -> None:
    machine = type("MutantMachine", (JudgedAlone,), {"name": name, "make": lambda self, **shape: make(**shape)})
    noticed = (AssertionError, LookupError, TypeError, OverflowError, TimeoutError)
    with examples_that_hang_fail(), pytest.raises(noticed):
        run_state_machine_as_test(machine, settings=SEARCH)


@pytest.mark.parametrize("mistake", OUR_WHEEL)
def test_a_broken_wheel_is_caught(mistake: str) -> None:
    with engine_copy(OUR_WHEEL[mistake]) as engine:
        caught("wheel", engine.wheel.TimingWheel)


@pytest.mark.parametrize(("name", "kind", "mistake"), RIVALS)
def test_a_broken_rival_is_caught(name: str, kind: str, mistake: str) -> None:
    edit = RIVALS[name, kind, mistake]
    with rivals_copy(edit) as rivals:
        caught(name, getattr(getattr(rivals, edit.module), kind))


def test_copies_without_a_mistake_pass_the_same_search() -> None:
    few = settings(SEARCH, max_examples=12)
    with rivals_copy() as rivals, examples_that_hang_fail():
        for name, kind, _ in RIVALS:
            module = getattr(rivals, name.replace("-", "_"))
            make = getattr(module, kind)
            machine = type(
                "SoundMachine", (JudgedAlone,), {"name": name, "make": lambda self, _make=make, **shape: _make(**shape)}
            )
            run_state_machine_as_test(machine, settings=few)
