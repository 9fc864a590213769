"""Cells on the machine's own clock: one at a time, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys

from abeyant.errors import AbeyantError
from lab.experiment import Cell, Measure

_PATIENCE = 600.0  # seconds a cell


def measure_alone(cell: Cell) -> list[Measure]:
    """Measure a cell in a process of its own. Raises AbeyantError with the last thing it said if it fails."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "lab.worker", *cell],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        raise AbeyantError(f"still at it after {_PATIENCE:.0f} s") from error
    if ran.returncode:
        said = ran.stderr.strip().splitlines()
        raise AbeyantError(said[-1] if said else f"ended with status {ran.returncode}")
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    return [Measure(metric, float(value), unit) for metric, value, unit in rows]
