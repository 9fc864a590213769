"""Results of the benchmarks, as the tables and the page need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.benchmarks import wording
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.measurement import OPERATIONS, ROUND, Measurement
from lab.experiment import TAKEN
from lab.peers import LABELS
from lab.results import Record


@dataclass
class Results:
    """The measurements of the benchmarks, with the machine, the versions, and what was left out or failed."""

    machine: dict[str, str]
    versions: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)  # rival -> why
    failed: dict[str, str] = field(default_factory=dict)  # measurement -> why
    measurements: list[Measurement] = field(default_factory=list)
    updated: bool = False  # some are from a later run
    others: float | None = None  # CPU share of other processes in the busiest 10 % of the measurements

    def add(self, measurement: Measurement) -> None:
        """Add a measurement, replacing an earlier one with the same key."""
        self.measurements = [other for other in self.measurements if other.key != measurement.key]
        self.measurements.append(measurement)

    def find(self, rival: str, row: str, size: int) -> Measurement | None:
        """Return the measurement of a rival, row and size, or None."""
        return next((found for found in self.measurements if found.key == (rival, row, size)), None)

    def of_row(self, row: str) -> list[Measurement]:
        """Return the measurements of a row."""
        return [found for found in self.measurements if found.row == row]

    def dates(self) -> str:
        """Return the day of the measurements, or the first and the last day."""
        days = sorted({measurement.date[:10] for measurement in self.measurements})
        return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "never"


def view(records: Sequence[Record]) -> Results:
    """Return the results of the latest record of each cell."""
    last = records[-1]
    results = Results(last.machine, last.versions, updated=len({record.date for record in records}) > 1)
    groups: dict[tuple[str, str, int], list[Record]] = {}
    for record in {record.cell: record for record in records}.values():
        row = record.cell.experiment.removeprefix("bench ")
        size = record.cell.choices().get("size")
        if size is None:
            results.left_out[record.cell.design] = str(record.failed)
        elif record.failed is not None:
            results.failed[describe(record.cell.design, row, int(size))] = record.failed
        else:
            groups.setdefault((record.cell.design, row, int(size)), []).append(record)
    for (rival, row, size), group in groups.items():
        extra: dict[str, list[float]] = {}
        for metric, figure, _ in group[0].measures:
            extra.setdefault(metric, []).append(figure)
        rounds = [figure for record in group for metric, figure, _ in record.measures if metric == ROUND]
        date = group[-1].date.isoformat()
        results.add(Measurement(rival, row, size, rounds, int(extra[OPERATIONS][0]), extra, date))
    measured = {one.rival for one in results.measurements}
    results.left_out = {name: why for name, why in results.left_out.items() if name not in measured}
    shares = sorted(one.value for record in records for one in record.measures if one.metric == TAKEN)
    results.others = shares[int(len(shares) * 0.9)] if shares else None
    return results


def describe(rival: str, row: str, size: int) -> str:
    """Return a measurement's description in words: the row's title, the size, the rival's label."""
    return f"{ROWS[row].title}, {wording.size(size)} {ROWS[row].size_of}, {LABELS[rival]}"
