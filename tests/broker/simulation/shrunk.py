"""Search until a failure shrinks to so few faults: now and then a run needs each of its faults, to hit one moment."""

from __future__ import annotations

from abeyant.broker.simulation import Options, RunId, RunResult, find_failure, shrink
from abeyant.broker.simulation.world import Test

SEEDS = 2000  # the rarest here is found by one in a hundred, so that this many miss it once in 10 ** 8


def shrunk(test: Test, options: Options, faults: int = 1) -> tuple[RunId, RunResult]:
    """Return the first failure that shrinks to at most `faults`, shrunk, and what it came to."""
    least, first = None, 0
    while (found := find_failure(test, range(first, SEEDS), options, lambda _: True, any_hashes=True)) is not None:
        which, best = shrink(test, found, options, any_hashes=True)
        assert best.failure is not None
        assert found.failure is not None
        assert best.failure.reason == found.failure.reason  # S5
        if len(best.faults) <= faults:
            return which, best
        least, first = best.faults, found.seed + 1
    raise AssertionError(f"{SEEDS:,} seeds did not find it" if least is None else f"it shrinks to {least}")
