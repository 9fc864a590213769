"""The tests' own test: deliberate mistakes in a copy of the engine, each of which the property test has to notice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from engine.source_copy import Edit, engine_copy
from engine.wheel_machine import WheelMachine

# Not random, so that a mutant found today is found tomorrow; and no shrinking: that it is found is all we ask.
pytestmark = pytest.mark.slow

SEARCH = settings(
    max_examples=500,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)

# So that overdue tasks are tidied up at every turn, and not among hundreds only.
TIDY = Edit("wheel", "_FEW = 64", "_FEW = 0")

MUTANTS = {
    "deadlines round down": Edit(
        "wheel", "return ticks if ticks * self._tick == deadline else ticks + 1", "return ticks"
    ),
    "off by one bucket": Edit(
        "wheel", "bucket if bucket < self._wheel_size else", "bucket if bucket <= self._wheel_size else"
    ),
    "a wheel holds one bucket too many": Edit(
        "wheel", "= begin + self._reach[level] if", "= begin + self._reach[level] + self._span[level] if"
    ),
    "a wheel does not turn with the clock": Edit(
        "wheel", "ticks - self._begin[level] <", "ticks - self._begin[level] <="
    ),
    "a task that is not alone is taken for it": Edit("wheel", "if slab.last(sentinel) != slot or", "if"),
    "a lone task goes before one that is due with it": Edit(
        "wheel", "or deadline >= self._queue.second_expiration()", "or deadline > self._queue.second_expiration()"
    ),
    "a lone task runs early": Edit("wheel", "or deadline > target or", "or"),
    "the second bucket is mistaken for the third": Edit(
        "delay_queue", "self._expiration[2] < self._expiration[1]", "self._expiration[2] > self._expiration[1]"
    ),
    "a cascade loses what is not due yet": Edit(
        "wheel", "self._file(slot, True)", "slab.deadline[slot] > self._clock or self._file(slot, True)"
    ),
    "a budget that runs out loses a task": Edit(
        "wheel",
        "                if budget <= 0:\n",
        "                if budget <= 0:\n                    slab.unlink(slot)\n",
    ),
    "a cascade goes behind younger tasks": Edit("wheel", "self._file(slot, True)", "self._file(slot, False)"),
    "a higher wheel cascades first": Edit(
        "delay_queue", "self._bucket[one] < self._bucket[other]", "self._bucket[one] > self._bucket[other]"
    ),
    "the next expiration is a tick late": Edit(
        "wheel", "return self._queue.first_expiration()\n", "return self._queue.first_expiration() + 1\n"
    ),
    "an emptied bucket counts as queued": Edit(
        "wheel", "slab.deadline[self._queue.pop()] = -1", "self._queue.pop()"
    ),
    "the clock passes buckets by": Edit(
        "wheel", "if upcoming < 0 or upcoming > target:", "if upcoming < 0 or upcoming != target:"
    ),
    "the clock goes back": Edit(
        "wheel", "            return self._clock\n        return now", "            pass\n        return now"
    ),
    "a task fires twice": Edit("wheel", "due.append(self._hand_out(slot))", "due += [self._hand_out(slot)] * 2"),
    "a removed task comes out all the same": Edit(
        "wheel",
        "        self._cancelled += 1\n        item = self._slab.release(slot)",
        "        self._cancelled += 1\n        item = self._slab.items[slot]",
    ),
    "a handle outlives its task": Edit(
        "slab",
        "+ 1) & _GENERATION_MASK\n        self.links[at + NEXT] = self._free",
        "+ 2) & _GENERATION_MASK\n        self.links[at + NEXT] = self._free",
    ),
    "a nearer deadline is not filed anew": Edit(
        "wheel", "if ticks < filed or filed <= self._clock:", "if filed <= self._clock:"
    ),
    "a due task that is refreshed stays due": Edit(
        "wheel", "if ticks < filed or filed <= self._clock:", "if ticks < filed:"
    ),
    "an overdue task that is refreshed stays overdue": Edit(
        "wheel",
        "return slot >= 0 and self._slab.deadline[slot] == entry[0]",
        "return slot >= 0",
    ),
    "overdue tasks come last in, first out": Edit("wheel", "self._overdue_order += 1", "self._overdue_order -= 1"),
    "tidying up loses an overdue task": Edit(
        "wheel", "if self._is_overdue(entry)]\n            heap", "if self._is_overdue(entry)][1:]\n            heap"
    ),
    "a removed task is still counted": Edit(
        "wheel", "        self._pending -= 1\n        self._cancelled += 1\n", "        self._cancelled += 1\n"
    ),
    "draining forgets the order of the wheels": Edit("wheel", ", -level, order,", ", level, order,"),
}  # fmt: skip


EXAMPLE_SECONDS = 10.0
"""An example takes milliseconds: one that is still going then goes round for ever, and that is noticed, too."""


def limit_example() -> None:
    """Begin the `EXAMPLE_SECONDS` of an example, inside `examples_that_hang_fail`."""
    signal.setitimer(signal.ITIMER_REAL, EXAMPLE_SECONDS, 1.0)


def machine_for(timing_wheel: Any) -> type[WheelMachine]:
    """Return the property test of a wheel, each of whose examples has `EXAMPLE_SECONDS`."""

    class MutantMachine(WheelMachine):
        wheel_class = timing_wheel

        def __init__(self) -> None:
            super().__init__()
            limit_example()

    return MutantMachine


@contextmanager
def examples_that_hang_fail() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"an example is still going after {EXAMPLE_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("mistake", MUTANTS)
def test_a_deliberate_mistake_is_noticed(mistake: str) -> None:
    with (
        engine_copy(TIDY, MUTANTS[mistake]) as engine,
        examples_that_hang_fail(),
        pytest.raises((AssertionError, LookupError, TypeError, TimeoutError)),
    ):
        run_state_machine_as_test(machine_for(engine.wheel.TimingWheel), settings=SEARCH)


def test_the_engine_without_a_mistake_passes_the_same_search() -> None:
    with engine_copy(TIDY) as engine, examples_that_hang_fail():
        run_state_machine_as_test(machine_for(engine.wheel.TimingWheel), settings=SEARCH)
