"""Run CPython's own asyncio tests on asyncio's selector loop and on ours, and compare test by test.

    make test-asyncio

Both runs are of the interpreter's own `test.test_asyncio`, side by side. Every loop that the tests make in the second
is one with the wheel, and as many of them must have been made as stock ones in the first. A test whose outcome differs
is run again, alone, on both (such a suite has tests that depend on the machine's mood); one that differs every time
fails the comparison, unless exceptions.txt gives a reason.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PREFIX = "test.test_asyncio."
EXCEPTIONS = Path(__file__).with_name("exceptions.txt")
ATTEMPTS = 4
PATIENCE = 600  # seconds, for one run of all


class Run(NamedTuple):
    """What a worker wrote."""

    outcomes: dict[str, str]  # by the test's id
    loops: dict[str, dict[str, int]]  # made, by test module and kind


def run_both(tests: list[str]) -> tuple[Run, Run]:
    """Run the tests, or all where none are named, on asyncio's loop and on ours at once."""
    # They run in folders of their own, so a path to ourselves that was given relative to this one must be whole.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}
    with tempfile.TemporaryDirectory() as folder:
        workers = {}
        for loop in ("stock", "wheel"):
            home = Path(folder, loop)
            home.mkdir()
            command = [sys.executable, "-W", "ignore", "-m", "aio.conformance.worker", loop, "results.json", *tests]
            with Path(home, "output.txt").open("wb") as output:
                workers[home] = subprocess.Popen(command, cwd=home, env=environment, stdout=output, stderr=output)
        try:
            for worker in workers.values():
                worker.wait(PATIENCE)
        finally:
            for worker in workers.values():
                worker.kill()
        return tuple(read(home) for home in workers)  # type: ignore[return-value]


def read(home: Path) -> Run:
    """The results in a worker's folder; its output, where there are none."""
    results = home / "results.json"
    if not results.exists():
        raise SystemExit(f"the tests on the loop {home.name!r} ended midway:\n{(home / 'output.txt').read_text()}")
    return Run(**json.loads(results.read_text()))


def different(stock: Run, wheel: Run) -> list[str]:
    """The tests that did not end in the same way; two failures are the same, whatever they say."""
    return [
        test
        for test in sorted(stock.outcomes.keys() | wheel.outcomes.keys())
        if kind(stock.outcomes.get(test)) != kind(wheel.outcomes.get(test))
    ]


def kind(outcome: str | None) -> str | None:
    """An outcome without its details."""
    return outcome and outcome.partition(":")[0]


def exceptions() -> dict[str, str]:
    """The reasons in exceptions.txt, by test id."""
    entries = {}
    for line in EXCEPTIONS.read_text().splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition(" | ")
            if not reason:
                raise SystemExit(f"{EXCEPTIONS.name}: no reason given in {line!r}")
            entries[PREFIX + test] = reason
    return entries


def wrong_loops(stock: Run, wheel: Run) -> list[str]:
    """Where the second run made other loops than the wheel's, or not as many as the first made."""
    return [
        f"{module.removeprefix(PREFIX)}: {made['stock']} stock loops on asyncio's, {ours} on ours"
        for module, made in stock.loops.items()
        if (ours := wheel.loops.get(module)) != {"stock": 0, "wheel": made["stock"]}
    ]


def compare() -> int:
    """How many complaints there are, printed one by one."""
    stock, wheel = run_both([])
    complaints = wrong_loops(stock, wheel)
    suspects = different(stock, wheel)
    for _ in range(ATTEMPTS - 1):
        if suspects:
            stock_again, wheel_again = run_both(suspects)
            suspects = different(stock_again, wheel_again)
            stock.outcomes.update(stock_again.outcomes)
            wheel.outcomes.update(wheel_again.outcomes)
    reasons = exceptions()
    for test in suspects:
        if test not in reasons:
            complaints.append(f"{test}\n  asyncio's: {stock.outcomes.get(test)}\n  ours: {wheel.outcomes.get(test)}")
    for test in reasons.keys() & stock.outcomes.keys() - set(suspects):
        complaints.append(f"{test} does as well on our loop: take it out of {EXCEPTIONS.name}")
    print("\n".join(complaints), end="\n" if complaints else "")
    count = len(stock.outcomes)
    passed = sum(outcome == "passed" for outcome in wheel.outcomes.values())
    skipped = sum(kind(outcome) == "skipped" for outcome in wheel.outcomes.values())
    loops = sum(made["wheel"] for made in wheel.loops.values())
    print(
        f"CPython {sys.version.split()[0]}: {count:,} tests, {loops:,} loops made; "
        f"on ours {passed:,} pass, {skipped:,} are skipped, {len(suspects)} differ from asyncio's, "
        f"{len(complaints)} without a reason"
    )
    return len(complaints)


def main() -> None:
    """Compare; say so where this Python comes without its tests, as Debian's does."""
    if importlib.util.find_spec("test") is None or importlib.util.find_spec("test.test_asyncio") is None:
        print(
            f"CPython's own asyncio tests are skipped: {sys.executable} comes without the package `test.test_asyncio`"
        )
        return
    began = time.monotonic()
    complaints = compare()
    print(f"took {time.monotonic() - began:.0f} s")
    sys.exit(min(complaints, 1))


if __name__ == "__main__":
    main()
