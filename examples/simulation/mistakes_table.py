"""Measure what seeds find of the planted mistakes, and that their mended versions raise no alarm.

    python -m examples.simulation.mistakes_table 1000 --log mistakes.log  # the table of docs/simulation-checks.md

It runs 1,000 seeds of each mended program. Where it was ended, it goes on from its log.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from abeyant import simulation
from abeyant.broker.simulation import run_seed, shrink
from examples.simulation.mistakes import MISTAKES, found, options_of

CHUNK = 50  # seeds of a line of the log


def without_alarm(name: str, seeds: int, log: Log) -> int:
    """Run so many seeds of a mended program; print each alarm, and return how many seeds raised none."""
    mistake = MISTAKES[name]
    alarms = 0
    for first in range(0, seeds, CHUNK):

        def run(first: int = first) -> str:
            wrong = []
            for seed in range(first, min(first + CHUNK, seeds)):
                failure = run_seed(mistake.mended, seed, options_of(mistake)).failure
                if failure is not None:
                    wrong.append(f"seed {seed}: {failure.message}")
                    print(f"ALARM {name}, mended: {wrong[-1]}", file=sys.stderr, flush=True)
            return "; ".join(wrong)

        said = log.once(f"{name}, mended, seeds {first} to {min(first + CHUNK, seeds) - 1}", run)
        alarms += said.count("seed ")
    return seeds - alarms


def searches(name: str, count: int = 5) -> tuple[float, float, float]:
    """Return the medians of so many searches: seeds to find the mistake, seconds with shrinking, faults left."""
    mistake, results = MISTAKES[name], []
    for number in range(count):
        before, first = time.process_time(), 10_000 * number
        outcome = found(name, range(first, first + 10_000))
        assert outcome is not None, f"no seed found: {name}"
        _, best = shrink(mistake.mistaken, outcome, options_of(mistake))
        results.append((outcome.seed - first + 1, time.process_time() - before, len(best.faults)))
    seeds, seconds, faults = (statistics.median(column) for column in zip(*results, strict=True))
    return seeds, seconds, faults


class Log:
    """What was measured: a line each, with a tab before its result."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._known = dict(line.split("\t", 1) for line in lines)

    def once(self, what: str, measure: Callable[[], str]) -> str:
        """Return the result that is in the log; else measure, and write it there."""
        if what not in self._known:
            self._known[what] = measure()
            if self._path is not None:
                with self._path.open("a") as log:
                    log.write(f"{what}\t{self._known[what]}\n")
        return self._known[what]


def first_like(name: str) -> str:
    """Return the first mistake with the same mended program and the same faults."""
    mended, faults = MISTAKES[name].mended, MISTAKES[name].faults
    return next(first for first, one in MISTAKES.items() if (one.mended, one.faults) == (mended, faults))


def row(name: str, mended_seeds: int, log: Log) -> str:
    """Return a row of the table."""
    mistake = MISTAKES[name]
    same = next(
        first for first, one in MISTAKES.items() if (one.mended, one.faults) == (mistake.mended, mistake.faults)
    )
    quiet = without_alarm(same, mended_seeds, log)
    result = log.once(f"{name}, found", lambda: " ".join(map(str, searches(name))))
    seeds, seconds, faults = map(float, result.split())
    of = ", ".join(mistake.faults) or "none"
    return f"| {name} | {of} | {seeds:.0f} | {seconds:.1f} | {faults:.0f} | {quiet:,} |"


def main() -> None:
    simulation.fix_hashes()
    parser = argparse.ArgumentParser(description="Measure what seeds find, and that mended programs raise no alarm.")
    parser.add_argument("mended", type=int, nargs="?", default=100, help="seeds of each mended one (default: 100)")
    parser.add_argument("--log", type=Path, help="append what was measured; leave out what is in it")
    parser.add_argument("--mended", dest="only", action="store_true", help="run the mended programs only")
    given = parser.parse_args()
    log = Log(given.log)
    if given.only:
        for name in {first_like(one): None for one in MISTAKES}:
            print(f"{name}, mended: no alarm in {without_alarm(name, given.mended, log):,} seeds", flush=True)
        return
    print("| mistake | faults | seeds to find it | seconds, shrinking included | faults left | mended, no alarm in |")
    print("|---|---|--:|--:|--:|--:|")
    for name in MISTAKES:
        print(row(name, given.mended, log), flush=True)


if __name__ == "__main__":
    main()
