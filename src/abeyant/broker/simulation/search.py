"""Search seeds for a failure, and shrink it: first the faults, then the random latencies of the network.

An id names a run: "17" is seed 17, and "17:0,3" is seed 17 with its faults 0 and 3 only. A third part simplifies the
run: "17:0,3:quiet" has minimal latencies, "17:0,3:round" rounds the times of the faults, and in "17:0,3:short" each
fault hits only one request. A shrunk run fails for the same reason as the run that was found (S5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from abeyant.broker.simulation.faults import PlannedFault
from abeyant.broker.simulation.world import Options, RunResult, Test, run_seed
from abeyant.renamed import former_keywords
from abeyant.simulation.chance import checked_seed
from abeyant.simulation.errors import SimulationError

_QUIET: Final = {"link": 0, "handshake": 0, "executor": 0}
_WAYS: Final = ("quiet", "round", "short")
_MOST_RUNS: Final = 80
_MOST_BESIDE: Final = 5  # runs tried without one fault, and earlier seeds tried, to find one that passes


@dataclass(frozen=True)
class RunId:
    """The id of a run, with which it can be repeated: its seed, the faults kept, and its simplifications."""

    seed: int
    kept: tuple[int, ...] | None = None
    """Numbers of the seed's faults to keep; None for all."""
    ways: frozenset[str] = frozenset()
    """Simplifications: "quiet", "round", "short"."""

    def __str__(self) -> str:
        parts = [str(self.seed)]
        if self.kept is not None or self.ways:
            parts.append("all" if self.kept is None else ",".join(map(str, self.kept)))
        return ":".join([*parts, *sorted(self.ways)])


def parse_id(text: str) -> RunId:
    """Return the run that `text` names. Raises SimulationError for invalid text."""
    seed, *rest = text.split(":")
    try:
        number = int(seed) if seed.isascii() and seed.isdecimal() else seed
        faults = None if not rest or rest[0] == "all" else tuple(int(fault) for fault in rest[0].split(",") if fault)
    except ValueError:
        raise SimulationError(f"{text!r} is not a run: give a seed (17), or a seed with its faults (17:0,3)") from None
    unknown = [way for way in rest[1:] if way not in _WAYS]
    if unknown:
        ways = ", ".join(_WAYS)
        raise SimulationError(f"{text!r} is not a run: after its seed and faults (17:0,3) only {ways} may follow")
    return RunId(checked_seed(number), faults, frozenset(rest[1:]))


def rerun(test: Test, which: RunId, options: Options, *, any_hashes: bool = False, watch: bool = False) -> RunResult:
    """Repeat the run that an id names, and return its result. `any_hashes` and `watch` are as in `run_seed`."""
    faults: Sequence[PlannedFault] | None = None
    tape: Mapping[str, int] | None = _QUIET if "quiet" in which.ways else None
    if which.kept is not None or which.ways - {"quiet"}:
        every = planned(which.seed, options)
        numbers = range(len(every)) if which.kept is None else which.kept
        if any(not 0 <= number < len(every) for number in numbers):
            raise SimulationError(
                f"{which} is not a run of this test: seed {which.seed} has {len(every)} faults, numbered from 0"
            )
        faults = [_altered(every[number], which.ways) for number in numbers]
    return run_seed(test, which.seed, options, faults=faults, tape=tape, any_hashes=any_hashes, watch=watch)


run_id = rerun  # its former name


def planned(seed: int, options: Options) -> list[PlannedFault]:
    """Return the faults that a seed plans."""
    from abeyant.broker.simulation.faults import plan
    from abeyant.simulation.chance import Chance

    return plan(Chance(seed).stream("faults"), options.horizon, options.faults)


def _altered(fault: PlannedFault, ways: frozenset[str]) -> PlannedFault:
    if "round" in ways:
        fault = replace(fault, at=round(fault.at, 1), seconds=max(round(fault.seconds, 1), 0.1))
    if "short" in ways:
        fault = replace(fault, times=1)
    return fault


@former_keywords(ended="on_result")
def find_failure(
    test: Test,
    seeds: Iterable[int],
    options: Options,
    on_result: Callable[[RunResult], bool],
    *,
    any_hashes: bool = False,
) -> RunResult | None:
    """Run each seed; return the first result with a failure, or None if all runs pass.

    `on_result` is called with each result; if it returns False, the search stops. (`abeyant.simulation.search`
    raises the first error instead, and returns the number of runs.)
    """
    for seed in seeds:
        outcome = run_seed(test, seed, options, any_hashes=any_hashes)
        go_on = on_result(outcome)
        if outcome.failure is not None:
            return outcome
        if not go_on:
            return None
    return None


search = find_failure  # its former name


def shrink(test: Test, found: RunResult, options: Options, *, any_hashes: bool = False) -> tuple[RunId, RunResult]:
    """Return the id and the result of the smallest run that fails for the same reason as `found`. Up to 80 runs."""
    assert found.failure is not None
    reason = found.failure.reason
    best, best_id = found, RunId(found.seed)
    remaining = _MOST_RUNS

    def attempt(which: RunId) -> bool:
        nonlocal best, best_id, remaining
        if remaining <= 0:
            return False
        remaining -= 1
        outcome = rerun(test, which, options, any_hashes=any_hashes)
        if outcome.failure is None or outcome.failure.reason != reason:
            return False
        best, best_id = outcome, which
        return True

    faults = list(range(len(found.faults)))
    size = len(faults)
    while size:  # by halves first, then one by one
        start = 0
        while start < len(faults):
            fewer = faults[:start] + faults[start + size :]
            if attempt(RunId(found.seed, tuple(fewer))):
                faults = fewer
            else:
                start += size
        size = size // 2
    for way in _WAYS:
        attempt(RunId(found.seed, tuple(faults), best_id.ways | {way}))
    return best_id, best


def passing_beside(
    test: Test, which: RunId, options: Options, *, any_hashes: bool = False
) -> tuple[RunId, RunResult] | None:
    """Return a watched run that passes: this run without one of its faults, or an earlier seed; None if none does."""
    faults = tuple(range(len(planned(which.seed, options)))) if which.kept is None else which.kept
    fewer = [
        replace(which, kept=tuple(fault for fault in faults if fault != left_out)) for left_out in faults[:_MOST_BESIDE]
    ]
    earlier = [RunId(seed) for seed in range(which.seed - 1, max(which.seed - 1 - _MOST_BESIDE, -1), -1)]
    for candidate in [*fewer, *earlier]:
        outcome = rerun(test, candidate, options, any_hashes=any_hashes, watch=True)
        if outcome.failure is None:
            return candidate, outcome
    return None
