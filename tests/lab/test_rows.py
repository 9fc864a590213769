"""Every row runs for every rival that has it, in a tiny size. Nothing here looks at how long anything takes."""

from __future__ import annotations

import math

import pytest

from lab import peers
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.effort import TINY
from lab.benchmarks.programs import grid, measure
from seeds import with_slow

SIZES = {"watch": 5, "watch_made": 5, "watch_keys": 5, "watch_hot": 5}


def _combinations() -> list[tuple[str, str]]:
    found = {(name, row.name) for row in ROWS.values() for name, _ in grid(row, "full")}
    return sorted((name, row) for name, row in found if name not in peers.JVM and not peers.why_missing(name))


COMBINATIONS = _combinations()


@pytest.mark.parametrize(
    "combination", with_slow(COMBINATIONS, [one for one in COMBINATIONS if one[0] != "system"]), ids="-".join
)
def test_a_row_gives_a_figure(combination: tuple[str, str]) -> None:
    rival, row = combination
    sample = measure(rival, row, SIZES.get(row, 20), TINY)
    assert len(sample.rounds) == 1
    assert math.isfinite(sample.rounds[0])
    assert sample.operations > 0


def test_our_rivals_are_in_every_row_that_fits_them() -> None:
    for row in ROWS.values():
        if "system" in row.rivals:
            assert ("system", row.name) in COMBINATIONS
        assert any(name == row.name for _, name in COMBINATIONS)


def test_the_system_timer_runs_no_timer_early() -> None:
    late = measure("system", "lateness", 20, TINY).extra["late"]
    assert min(late) >= 0
