"""Store results in a file: a line of JSON for each cell of each run, appended as soon as the cell is measured.

The date identifies a run: the moment at which the run began, which all its lines have. So runs of several days can be
compared, and an interrupted run can be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from abeyant.errors import AbeyantError
from abeyant.former import is_former, written_before
from lab.experiment import Cell, Measure
from lab.machine import machine, versions

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Final = ("experiment", "design", "parameters", "metric", "value", "unit", "machine", "version", "date")


class Record(NamedTuple):
    """The results of one cell in one run."""

    cell: Cell
    measures: list[Measure]
    failed: str | None
    """Why the cell could not be measured, or None."""
    machine: dict[str, str]
    versions: dict[str, str]
    date: datetime
    """Start of the run."""


class Results:
    """The results in one file. Only one run at a time may append to the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, date: datetime, cell: Cell, measures: Sequence[Measure], failed: str | None = None) -> None:
        """Append a cell's measures, or the reason why it failed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record = Record(cell, list(measures), failed, machine(), versions(), date)
        line = json.dumps((*record[:-1], date.isoformat()))
        with self.path.open("ab+") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)  # drop a line that a killed run left incomplete
            file.write(f"{line}\n".encode())

    def records(self) -> list[Record]:
        """Return the cells of all runs, in order; skip an incomplete last line of a killed run.

        Raise AbeyantError if the file holds no results of the lab.
        """
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
            records = [_record(line) for line in lines[:-1]]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError) as error:
            raise AbeyantError(f"{self.path} is not a results file of the lab: {error}") from error
        if any(is_former(name) for record in records for name in record.versions):
            raise written_before(self.path, "name another --dir, and measure anew")
        return records

    def read(self) -> pd.DataFrame:
        """Return all runs as a table, a row per measure."""
        import pandas as pd

        rows = [
            (*record.cell, *measure, ", ".join(record.machine.values()), _join(record.versions), record.date)
            for record in self.records()
            for measure in record.measures
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def last_run(self) -> tuple[datetime | None, set[Cell]]:
        """Return the date of the last run, and the cells that it measured; (None, empty) without runs."""
        records = self.records()
        date = max((record.date for record in records), default=None)
        return date, {record.cell for record in records if record.date == date and record.failed is None}


def now() -> datetime:
    """Return the current time as a run's date."""
    return datetime.now(UTC).replace(microsecond=0)


def _record(line: str) -> Record:
    cell, measures, failed, machine_then, versions_then, date = json.loads(line)
    measured = [Measure(*measure) for measure in measures]
    return Record(Cell(*cell), measured, failed, machine_then, versions_then, datetime.fromisoformat(date))


def _join(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
