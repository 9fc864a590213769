"""Runs an experiment: cells in their order, results appended as they come, what is done already skipped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from abeyant.errors import AbeyantError
from lab.alone import measure_alone
from lab.experiment import QUICK, TAKEN, Cell, Experiment, Measure, cell
from lab.experiments import geometry
from lab.machine import Others
from lab.results import Results, now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAVE = 32  # cells that Spark is given at a time: so much is lost at most when a run is broken off


@dataclass
class Ran:
    """What a run did."""

    experiment: str
    date: datetime
    measured: int = 0
    skipped: int = 0
    failed: dict[Cell, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


class Runner:
    """Runs experiments into one folder. `spark` starts a session when the first that needs one begins."""

    def __init__(self, folder: Path, spark: Callable[[], SparkSession], *, quiet: bool = False) -> None:
        self.results = Results(folder)
        self._spark = spark
        self._quiet = quiet
        self._quick: list[Measure] = []

    def run(self, experiment: Experiment, *, quick: bool, resume: bool, logs: Sequence[str] = ()) -> Ran:
        """Measure what there is to measure; `resume` goes on with the last run. Interrupted, it keeps what it has."""
        date, done = self.results.last_run(experiment.name) if resume else (None, set())
        ran = Ran(experiment.name, date or now())
        self._quick = [Measure(QUICK, 1.0, "of the run")] if quick else []
        cells = [*experiment.cells(quick), *self._of_logs(experiment, logs, quick)]
        for design in dict.fromkeys(one.design for one in cells):
            why = experiment.missing(design)
            if why is not None:
                ran.left_out[design] = why
                print(f"left out: {design}: {why}", file=sys.stderr)
        ran.skipped = sum(one in done for one in cells)
        todo = [one for one in cells if one not in done and one.design not in ran.left_out]
        with self._progress(experiment, len(todo) + ran.skipped, ran.skipped) as advance:
            if experiment.clock == "real":
                self._one_by_one(todo, ran, advance)
            else:
                self._in_waves(todo, ran, advance)
        return ran

    def _one_by_one(self, cells: list[Cell], ran: Ran, advance: Callable[[int, str], None]) -> None:
        for one in cells:
            others = Others()
            try:
                measures = measure_alone(one)
            except AbeyantError as error:
                ran.failed[one] = str(error)
                advance(1, f"{_words(one)}: failed: {error}")
                continue
            share = others.share()
            busy = [] if share is None else [Measure(TAKEN, share, "of the processors")]
            self.results.append(ran.date, [(one, [*measures, *busy, *self._quick])])
            ran.measured += 1
            advance(1, f"{_words(one)}: {measures[0].metric} {measures[0].value:,.4g} {measures[0].unit}")

    def _in_waves(self, cells: list[Cell], ran: Ran, advance: Callable[[int, str], None]) -> None:
        from lab.distributed import measure_on_spark

        for first in range(0, len(cells), _WAVE):
            wave = cells[first : first + _WAVE]
            measured = measure_on_spark(self._spark(), wave)
            self.results.append(ran.date, [(one, [*measures, *self._quick]) for one, measures in measured])
            ran.measured += len(wave)
            advance(len(wave), f"{len(wave)} cells, the last: {_words(wave[-1])}")

    def _of_logs(self, experiment: Experiment, logs: Sequence[str], quick: bool) -> list[Cell]:
        if not logs or experiment.name != geometry.EXPERIMENT.name:
            return []
        from lab.experiments.traces import from_log

        names = from_log(list(logs), self.results.folder / "traces", self._spark())
        return [cell(experiment.name, design, chosen) for design, chosen in geometry.on_traces(names, quick)]

    @contextmanager
    def _progress(self, experiment: Experiment, total: int, done: int) -> Iterator[Callable[[int, str], None]]:
        """A bar on a terminal, else a line a step; all of it to the error stream."""
        console = Console(stderr=True)
        if self._quiet:
            yield lambda steps, words: None
        elif console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            with Progress(TextColumn("{task.description}"), *columns, console=console) as bar:
                shown = bar.add_task(experiment.name, total=total, completed=done)

                def advance(steps: int, words: str) -> None:
                    bar.update(shown, advance=steps, description=f"{experiment.name}: {words}")

                yield advance
        else:
            began = time.monotonic()
            so_far = [done]

            def line(steps: int, words: str) -> None:
                so_far[0] += steps
                seconds = time.monotonic() - began
                print(f"{experiment.name} [{so_far[0]}/{total}] {seconds:5.0f} s  {words}", file=sys.stderr, flush=True)

            yield line


def _words(one: Cell) -> str:
    chosen = ", ".join(f"{name} {value}" for name, value in one.choices().items() if name not in ("memory_mb", "size"))
    return f"{one.design} ({chosen})"
