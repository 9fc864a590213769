"""A run's results, and the file that they are kept in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.benchmarks.measurement import Measurement


@dataclass
class Results:
    """Everything that a table or a page needs."""

    machine: dict[str, str]
    versions: dict[str, str]
    load: float  # the machine's, when the run began
    left_out: dict[str, str] = field(default_factory=dict)  # rival -> why
    failed: dict[str, str] = field(default_factory=dict)  # measurement -> why
    measurements: list[Measurement] = field(default_factory=list)
    updated: bool = False  # some were measured anew, in a later run

    def add(self, measurement: Measurement) -> None:
        """Add one, in place of an earlier one of the same thing."""
        self.measurements = [other for other in self.measurements if other.key != measurement.key]
        self.measurements.append(measurement)

    def find(self, rival: str, row: str, size: int) -> Measurement | None:
        """The measurement of this, if there is one."""
        return next((found for found in self.measurements if found.key == (rival, row, size)), None)

    def of_row(self, row: str) -> list[Measurement]:
        """The measurements of a row."""
        return [found for found in self.measurements if found.row == row]

    def dates(self) -> str:
        """The day, or the first and the last day, on which these were taken."""
        days = sorted({measurement.taken[:10] for measurement in self.measurements})
        return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "never"

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        kept: dict[str, Any] = {
            "machine": self.machine,
            "versions": self.versions,
            "load": self.load,
            "left_out": self.left_out,
            "failed": self.failed,
            "updated": self.updated,
            "measurements": [measurement.as_json() for measurement in self.measurements],
        }
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(kept, indent=1) + "\n")
        fresh.replace(path)


def read(path: Path) -> Results:
    """Read what `write` wrote."""
    kept = json.loads(path.read_text())
    measurements = [Measurement(**entry) for entry in kept.pop("measurements")]
    return Results(measurements=measurements, **kept)
