"""Makes each measurement in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import jvm_rivals, rivals
from benchmarks.effort import BY_NAME
from benchmarks.measurement import Measurement, Sample
from benchmarks.plan import Task
from benchmarks.rows import ROWS

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 240.0  # seconds for one process, before it is given up


class FailedError(Exception):
    """A measurement could not be made; the message says why."""


def measure(task: Task, effort: str, class_path: str | None) -> Measurement:
    """Make a measurement, in as many processes as its row asks for."""
    processes = ROWS[task.row].processes if effort == "full" else 1
    samples = [_in_a_process(_command(task, effort, class_path)) for _ in range(processes)]
    return Measurement(
        rival=task.rival,
        row=task.row,
        size=task.size,
        rounds=[figure for sample in samples for figure in sample.rounds],
        operations=samples[0].operations,
        extra=samples[0].extra,
        taken=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _command(task: Task, effort: str, class_path: str | None) -> list[str]:
    if task.rival in rivals.JVM:
        assert class_path is not None, "the JVM's rivals are in no plan unless they were built"
        return jvm_rivals.command(class_path, task.rival, task.row, task.size, BY_NAME[effort])
    return [sys.executable, "-m", "benchmarks.worker", task.rival, task.row, str(task.size), effort]


def _in_a_process(command: list[str]) -> Sample:
    try:
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise FailedError(f"not done in {LONGEST:.0f} s") from None
    if process.returncode != 0:
        said = process.stderr.strip().splitlines()
        raise FailedError(said[-1] if said else f"exit status {process.returncode}")
    return Sample(**json.loads(process.stdout.strip().splitlines()[-1]))
