"""Makes each measurement in a fresh process; on the JVM, those of a row at all of its sizes in one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lab import peers
from lab.benchmarks import jvm_rivals
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.effort import BY_NAME
from lab.benchmarks.measurement import Measurement, Sample
from lab.benchmarks.plan import Task

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 300.0  # seconds for one process, before it is given up


class FailedError(Exception):
    """A measurement could not be made; the message says why."""


class Runner:
    """Makes measurements. A fresh process for each, in as many processes as its row asks for.

    A JVM takes seconds to start and to warm up, so one JVM measures a row at all `sizes` that are planned: when the
    first of them is asked for, the others are made too, and handed out later.
    """

    def __init__(self, effort: str, tasks: Sequence[Task]) -> None:
        self._effort = effort
        self._tasks = tasks
        self._ahead: dict[Task, list[Sample]] = {}

    def measure(self, task: Task) -> Measurement:
        """Make a measurement. Raises FailedError."""
        samples = self._ahead.pop(task, None) or self._samples(task)
        return Measurement(
            rival=task.rival,
            row=task.row,
            size=task.size,
            rounds=[figure for sample in samples for figure in sample.rounds],
            operations=samples[0].operations,
            extra=samples[0].extra,
            taken=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _samples(self, task: Task) -> list[Sample]:
        together = [task]
        command = [sys.executable, "-m", "lab.benchmarks.worker", task.rival, task.row, str(task.size), self._effort]
        if task.rival in peers.JVM:
            together = [other for other in self._tasks if (other.rival, other.row) == (task.rival, task.row)]
            together = together[together.index(task) :]
            sizes = [other.size for other in together]
            command = jvm_rivals.command(task.rival, task.row, sizes, BY_NAME[self._effort])
        processes = ROWS[task.row].processes if self._effort == "full" else 1
        made = [_in_a_process(command, len(together)) for _ in range(processes)]
        self._ahead |= {other: [samples[place] for samples in made] for place, other in enumerate(together)}
        return self._ahead.pop(task)


def _in_a_process(command: list[str], count: int) -> list[Sample]:
    try:
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise FailedError(f"not done in {LONGEST:.0f} s") from None
    if process.returncode != 0:
        said = process.stderr.strip().splitlines()
        raise FailedError(said[-1] if said else f"exit status {process.returncode}")
    return [Sample(**json.loads(line)) for line in process.stdout.strip().splitlines()[-count:]]
