"""What an experiment is: a name, a grid of cells, and how one cell is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from abeyant.pages.style import Figure
    from lab.claim import Claim
    from lab.run import Run

Parameters = Mapping[str, int | float | str]


class Cell(NamedTuple):
    """One design with one choice of parameters, to be measured by itself."""

    experiment: str
    design: str
    parameters: str
    """As JSON with its names in order: what a cell is known by, in results and when a run is resumed."""

    def choices(self) -> dict[str, int | float | str]:
        """The parameters."""
        chosen: dict[str, int | float | str] = json.loads(self.parameters)
        return chosen


class Measure(NamedTuple):
    """One number that a cell gave."""

    metric: str
    value: float
    unit: str


# What the runner adds to a cell's own measures: whether the run was a quick one, and what others took meanwhile.
QUICK: Final = "quick run"
TAKEN: Final = "taken by others"


@dataclass(frozen=True)
class Experiment:
    """A comparison to be repeated: `cells` is its grid, `measure` runs one of them.

    On the *real* clock cells run one at a time, each in a fresh process. On a *virtual* one they are pure functions
    of their parameters, and Spark distributes them.
    """

    name: str
    title: str
    clock: Literal["real", "virtual"]
    grid: Callable[[bool], list[tuple[str, Parameters]]]
    """The designs and their parameters; fewer and smaller ones when quick."""
    measure: Callable[[str, Parameters], list[Measure]]
    missing: Callable[[str], str | None] = lambda design: None
    """Why a design cannot be measured on this machine; None where it can."""
    claims: Sequence[Claim] = ()
    """What is claimed of it, and how a run decides that."""
    figure: Callable[[Run], Figure | str] = lambda run: ""
    """The plot of a run: plotly's, or HTML."""
    reading: str = ""
    """How to read the plot."""

    def cells(self, quick: bool) -> list[Cell]:
        """The grid."""
        return [cell(self.name, design, parameters) for design, parameters in self.grid(quick)]


def cell(experiment: str, design: str, parameters: Parameters) -> Cell:
    """A cell of a grid."""
    return Cell(experiment, design, json.dumps(parameters, sort_keys=True))
