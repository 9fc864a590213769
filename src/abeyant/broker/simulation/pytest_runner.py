"""Run a test with the fixture `simulation` for the pytest plugin: run each seed, then shrink and report a failure.

If string hashes differ between processes, as they do by default, the test runs in a child process with fixed hashes.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from abeyant.broker.simulation.search import RunId, find_failure, parse_id, passing_beside, rerun, shrink
from abeyant.broker.simulation.story import story
from abeyant.broker.simulation.timeline_page import timeline_page
from abeyant.broker.simulation.world import Options, RunResult, Test
from abeyant.pages.document import write_whole
from abeyant.simulation.errors import SimulationError
from abeyant.simulation.hashes import command, environment

_OWN: Final = ("faults", "horizon", "converge")


@dataclass(frozen=True)
class Order:
    """The runs that the command line and the marker request."""

    seeds: Sequence[int]
    repeat: str | None = None
    trace: Path | None = None
    seconds: float | None = None
    """Real seconds after which no further seed begins."""
    stories: Path | None = None
    """The folder for the timeline of a failure; None to write none."""


@dataclass
class Report:
    """The result of a test over all its seeds. A child process sends it to its parent as JSON."""

    failed: str | None = None
    tried: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    """Count of each error and state change that was reached: "API ERROR", "group FROM to TO" and so on."""
    first: dict[str, list[str]] = field(default_factory=dict)
    """By seed, the errors and state changes that no earlier seed had reached: the corpus of this test."""
    skipped: list[str] = field(default_factory=list)
    """Reasons for skipping, one for each seed with which the test called `pytest.skip`."""
    xfailed: list[str] = field(default_factory=list)
    """Reasons given to `pytest.xfail`, one for each seed that called it. One such seed makes the test an xfail."""
    misused: str | None = None
    """The message of a child process about a misuse of the fixture or its options."""

    def add(self, seed: int, seen: Mapping[tuple[str, str], int]) -> None:
        """Add the errors and state changes that a run has reached, with their counts."""
        new = []
        for (kind, event), count in sorted(seen.items()):
            name = f"{kind} {event}"
            if name not in self.seen:
                new.append(name)
            self.seen[name] = self.seen.get(name, 0) + count
        if new:
            self.first[str(seed)] = new


def options_of(marked: Mapping[str, Any]) -> Options:
    """Return a test's options from its marker. Raises SimulationError for an unsupported or invalid option."""
    options = dict(marked)
    settings = options.pop("settings", {})
    for name in ("clock", "security", "users"):
        if options.pop(name, None) not in (None, "real", "PLAINTEXT"):
            raise SimulationError(
                f"a simulation has no {name}=: leave it out, since its brokers run in virtual time and speak PLAINTEXT"
            )
    if options.pop("racks", None) is not None:
        raise SimulationError("a simulation has no racks=: leave it out, since its brokers are in none")
    arguments = {name: options.pop(name) for name in _OWN if name in options}
    for name in ("horizon", "converge"):
        if name in arguments and (type(arguments[name]) not in (int, float) or not 0 <= arguments[name] < math.inf):
            raise SimulationError(f"{name}= takes seconds of virtual time from 0, not {arguments[name]!r}")
    brokers = options.get("brokers", 1)
    if type(brokers) is not int or brokers < 1:
        raise SimulationError(f"brokers= takes a whole number from 1, not {brokers!r}")
    return Options(brokers=options.pop("brokers", 3), settings=settings, **arguments)


def run_in_process(test: Callable[..., Any], name: str, options: Options, order: Order) -> Report:
    """Run a test in this process with each seed, and shrink the first failure. Run only `order.repeat` if it is set."""
    report = Report()
    with ExitStack() as stack:
        trace = None if order.trace is None else stack.enter_context(order.trace.open("a", encoding="utf-8"))

        def ended(outcome: RunResult) -> bool:
            report.tried += 1
            report.add(outcome.seed, outcome.seen)
            _write(trace, outcome, name)
            return order.seconds is None or time.monotonic() - start < order.seconds

        start = time.monotonic()
        if order.repeat is not None:
            run_id = parse_id(order.repeat)
            outcome = rerun(test, run_id, options)
            ended(outcome)
            if outcome.failure is not None:
                report.failed = _failure_text(test, outcome, run_id, 0, name, options, order)
            return report
        failure = find_failure(test, order.seeds, options, ended)
        if failure is not None:
            run_id, best = shrink(test, failure, options)
            report.failed = _failure_text(test, best, run_id, report.tried, name, options, order)
    return report


def _failure_text(
    test: Test, outcome: RunResult, run_id: RunId, tried: int, name: str, options: Options, order: Order
) -> str:
    """Return the description of a failure. Write its timeline if `order.stories` names a folder."""
    command = f"pytest {shlex.quote(name)}"
    if order.stories is None:
        return story(outcome, run_id, tried, command)
    watched = rerun(test, run_id, options, watch=True)
    beside = passing_beside(test, run_id, options)
    page = order.stories / f"{_file_name(name)}-{str(run_id).replace(':', '-').replace(',', '_')}.html"
    try:
        write_whole(timeline_page(watched, run_id, beside, command, tried=tried), page)
    except OSError as error:
        raise SimulationError(f"--kafka-story: cannot write {page}: {error.strerror}") from error
    return story(outcome, run_id, tried, command, page)


def _file_name(test: str) -> str:
    return re.sub(r"[^\w.-]+", "-", test.rpartition("/")[2].replace(".py::", "-")).strip("-")


def _write(trace: IO[str] | None, outcome: RunResult, name: str) -> None:
    if trace is not None:
        reason = "passed" if outcome.failure is None else f"failed: {outcome.failure.reason}"
        trace.write(f"{outcome.seed} {outcome.hash} {reason} {name}\n")
        trace.flush()


def run_in_child(name: str, root: Path, arguments: Sequence[str], order: Order) -> Report:
    """Run a test in a child pytest with fixed hashes. Raises SimulationError if the child returns no report."""
    with tempfile.TemporaryDirectory(prefix="abeyant-") as folder:
        path = Path(folder) / "report.json"
        options = ["--kafka-seeds", written(order.seeds), "--kafka-report", str(path)]
        if order.repeat is not None:
            options += ["--kafka-repeat", order.repeat]
        if order.trace is not None:
            options += ["--kafka-trace", str(order.trace.resolve())]
        if order.stories is not None:
            options += ["--kafka-story", str(order.stories.resolve())]
        if order.seconds is not None:
            options += ["--kafka-seconds", str(order.seconds)]
        argv = command("module", "pytest", [*arguments, *options, name])
        env = {key: value for key, value in environment().items() if not key.startswith("PYTEST_XDIST")}
        child = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, errors="replace", check=False)
        if not path.exists():
            raise SimulationError(f"the child process that runs {name} has failed:\n{child.stdout}{child.stderr}")
        return Report(**json.loads(path.read_text(encoding="utf-8")))


def write_report(path: Path, report: Report) -> None:
    """Write the report of a test to the file that the parent process reads."""
    path.write_text(json.dumps(vars(report)), encoding="utf-8")


def parse_seeds(text: str, option: str = "--kafka-seeds") -> list[int]:
    """Return the seeds in a text: "200" for 0 to 199, "100:300" for 100 to 299, or several: "17:18,100:300".

    Raises SimulationError for any other text; the message names `option`.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, colon, last = part.rpartition(":")
        try:
            seed_range = range(int(first) if colon else 0, int(last))
        except ValueError:
            seed_range = range(0)
        if not seed_range or seed_range.start < 0:
            raise SimulationError(f"{option} takes a whole number from 1, or FIRST:END, not {text!r}")
        seeds += seed_range
    return list(dict.fromkeys(seeds))


def written(seeds: Sequence[int]) -> str:
    """Return a text from which `parse_seeds` reads these seeds in the same order: "0:200,7:8"."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and parts[-1][1] == seed:
            parts[-1][1] += 1
        else:
            parts.append([seed, seed + 1])
    return ",".join(f"{first}:{end}" for first, end in parts)


def chunks(seeds: Sequence[int], count: int) -> list[Sequence[int]]:
    """Split `seeds` into at most `count` lists of about the same length."""
    size = -(-len(seeds) // max(count, 1))
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]
