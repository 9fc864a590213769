"""One run of one experiment, as a table to look things up in: a row a cell, a column a parameter or metric."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.experiment import QUICK, TAKEN
from lab.machine import BUSY

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """What one run gave. `cells` has the columns `design`, the parameters, and the metrics."""

    experiment: str
    date: pd.Timestamp
    machine: str
    version: str
    cells: pd.DataFrame

    @property
    def quick(self) -> bool:
        """Whether it has cells of `--quick`: fewer rounds, and smaller ones."""
        return QUICK in self.cells and bool(self.cells[QUICK].notna().any())

    @property
    def taken(self) -> float | None:
        """What others took of the processors in the busiest tenth of the cells, 0 to 1; None where nobody looked."""
        shares = self.cells[TAKEN].dropna() if TAKEN in self.cells else self.cells.iloc[:0, 0]
        return float(shares.quantile(0.9)) if len(shares) else None

    @property
    def doubt(self) -> str | None:
        """Why its times say nothing against a claim; None where they do."""
        if self.quick:
            return "--quick has too few rounds to decide against a claim"
        if self.taken is not None and self.taken > BUSY:
            return f"others took {self.taken:.0%} of the processors, more than the {BUSY:.0%} that leave times usable"
        return None

    def of(self, design: str | None = None, **parameters: Any) -> pd.DataFrame:
        """The cells of a design with these parameters."""
        rows = self.cells
        if design is not None:
            rows = rows[rows["design"] == design]
        for name, value in parameters.items():
            rows = rows[rows[name] == value]
        return rows

    def has(self, *designs: str) -> bool:
        """Whether all of these designs were measured."""
        return set(designs) <= set(self.cells["design"])

    def choices(self, parameter: str) -> list[Any]:
        """The values of a parameter, in order."""
        return sorted(self.cells[parameter].dropna().unique())


def runs(rows: pd.DataFrame, experiment: str) -> list[Run]:
    """The runs of an experiment, the last one first."""
    mine = rows[rows["experiment"] == experiment]
    return [_run(experiment, mine[mine["date"] == date]) for date in sorted(mine["date"].unique(), reverse=True)]


def _run(experiment: str, rows: pd.DataFrame) -> Run:
    import pandas as pd

    wide = rows.pivot_table(index=["design", "parameters"], columns="metric", values="value").reset_index()
    chosen = pd.DataFrame([json.loads(parameters) for parameters in wide["parameters"]], index=wide.index)
    first = rows.iloc[0]
    return Run(
        experiment, first["date"], first["machine"], first["version"], wide.drop(columns="parameters").join(chosen)
    )
