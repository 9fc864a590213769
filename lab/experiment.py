"""An experiment: a name, a grid of cells, and the function that measures one cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from abeyant.pages.figure import Figure
    from lab.claim import Claim
    from lab.run import Run

Parameters = Mapping[str, int | float | str]


class Cell(NamedTuple):
    """One cell of an experiment's grid: a design with one choice of parameters, measured in a process of its own."""

    experiment: str
    design: str
    parameters: str
    """JSON with sorted keys: identifies the cell in results and when a run is resumed."""

    def choices(self) -> dict[str, int | float | str]:
        """Return the parameters."""
        chosen: dict[str, int | float | str] = json.loads(self.parameters)
        return chosen


class Measure(NamedTuple):
    """One measured figure of a cell."""

    metric: str
    value: float
    unit: str


# What the runner adds to a cell's measures: whether the run was quick, and the CPU share of other processes.
QUICK: Final = "quick run"
TAKEN: Final = "taken by others"


@dataclass(frozen=True)
class Experiment:
    """A comparison of designs: `cells` returns its grid, `measure` runs one cell.

    On the *real* clock cells run one at a time, each in a fresh process. On a *virtual* clock they are pure functions
    of their parameters, and run in parallel, one per core.
    """

    name: str
    title: str
    clock: Literal["real", "virtual"]
    grid: Callable[[bool], list[tuple[str, Parameters]]]
    """Return the designs and their parameters; fewer and smaller cells if quick."""
    measure: Callable[[str, Parameters], list[Measure]]
    missing: Callable[[str], str | None] = lambda design: None
    """Return why a design cannot be measured on this machine, or None."""
    claims: Sequence[Claim] = ()
    """The claims that the experiment checks."""
    figure: Callable[[Run], Figure | str] = lambda run: ""
    """Return the plot of a run: plotly's, or HTML."""
    reading: str = ""
    """Text below the plot: how to read it."""

    def cells(self, quick: bool) -> list[Cell]:
        """Return the cells of the grid; fewer and smaller cells if quick."""
        return [cell(self.name, design, parameters) for design, parameters in self.grid(quick)]


def cell(experiment: str, design: str, parameters: Parameters) -> Cell:
    """Return the cell of an experiment with this design and these parameters."""
    return Cell(experiment, design, json.dumps(parameters, sort_keys=True))
