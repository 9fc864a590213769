"""Rivals on the JVM: a fresh JVM per row."""

from __future__ import annotations

import json
import subprocess

from abeyant.errors import AbeyantError
from lab import jvm
from lab.benchmarks.effort import FULL, Effort
from lab.benchmarks.measurement import Sample

_ROWS = {
    "kafka": {
        "pair", "start", "stop", "refresh", "expiry", "stall_start", "stall_expiry", "stall_stop", "memory",
        "lateness", "watch", "watch_made", "watch_keys", "watch_hot", "enqueue",
    },
    "jvm-heap": {"pair", "start", "stop", "refresh", "expiry", "memory"},
}  # fmt: skip


def measures(rival: str, row: str) -> bool:
    """Return whether there is a program for the row."""
    return row in _ROWS[rival]


def measure(rival: str, row: str, size: int, effort: Effort) -> Sample:
    """Measure in a new JVM. Raise AbeyantError with the last line of its stderr if it fails."""
    warm = 3.0 if effort == FULL else 0.5
    lateness, seconds = effort.lateness
    numbers = [
        effort.rounds, effort.seconds, effort.most, effort.time_limit, lateness, seconds, effort.enqueue, warm,
    ]  # fmt: skip
    command = jvm.command("bench.Main", "4g", rival, row, size, *numbers)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        stderr = ran.stderr.strip().splitlines()
        raise AbeyantError(f"the JVM ended with status {ran.returncode}: {stderr[-1] if stderr else 'no output'}")
    return Sample(**json.loads(ran.stdout))
