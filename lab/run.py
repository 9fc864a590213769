"""One run of one experiment as a table: a row per cell, a column per parameter or metric."""

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
    """The results of one run of an experiment. The columns of `cells` are `design`, the parameters, and the metrics."""

    experiment: str
    date: pd.Timestamp
    machine: str
    version: str
    cells: pd.DataFrame

    @property
    def quick(self) -> bool:
        """Return whether the run has cells of a `--quick` run."""
        return QUICK in self.cells and bool(self.cells[QUICK].notna().any())

    @property
    def others(self) -> float | None:
        """Return the CPU share of other processes in the busiest 10 % of cells, 0 to 1; None if not recorded."""
        shares = self.cells[TAKEN].dropna() if TAKEN in self.cells else self.cells.iloc[:0, 0]
        return float(shares.quantile(0.9)) if len(shares) else None

    @property
    def doubt(self) -> str | None:
        """Return why the run's times cannot refute a claim, or None if they can."""
        if self.quick:
            return "--quick has too few rounds to refute a claim"
        if self.others is not None and self.others > BUSY:
            return f"other processes used {self.others:.0%} of the CPU, more than {BUSY:.0%}: times are not usable"
        return None

    def of(self, design: str | None = None, **parameters: Any) -> pd.DataFrame:
        """Return the cells with these parameters, of one design or, by default, of all designs."""
        rows = self.cells
        if design is not None:
            rows = rows[rows["design"] == design]
        for name, value in parameters.items():
            rows = rows[rows[name] == value]
        return rows

    def has(self, *designs: str) -> bool:
        """Return whether all of these designs were measured."""
        return set(designs) <= set(self.cells["design"])

    def choices(self, parameter: str) -> list[Any]:
        """Return the values of a parameter, sorted."""
        return sorted(self.cells[parameter].dropna().unique())


def runs(rows: pd.DataFrame, experiment: str) -> list[Run]:
    """Return the runs of an experiment, the latest first."""
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
