"""Run an experiment's cells in order; append each result at once; on resume, skip the cells that were measured.

On the machine's own clock cells run one at a time, each in a fresh process (worker.py). On a virtual clock they are
pure functions of their parameters, and run in as many processes as there are cores.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from abeyant.errors import AbeyantError
from lab import worker
from lab.experiment import QUICK, TAKEN, Cell, Experiment, Measure
from lab.machine import Others, cores
from lab.results import Results, now

ROOT: Final = Path(__file__).resolve().parents[1]
_TIMEOUT: Final = 600.0  # seconds a cell
_HIDDEN: Final = ("memory_mb", "effort", "process")  # parameters that progress does not show


@dataclass
class Ran:
    """What was done in a run of an experiment: the numbers of measured and skipped cells, and what failed."""

    experiment: str
    measured: int = 0
    skipped: int = 0
    failed: dict[Cell, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


class Runner:
    """Runner of experiments, which writes one run to a results file. With `resume` it continues the file's last run."""

    def __init__(self, results: Results, *, quick: bool, resume: bool, quiet: bool = False) -> None:
        self.results = results
        date, self._done = results.last_run() if resume else (None, set())
        self.date = date or now()
        self.quick = quick
        self._quiet = quiet

    def run(self, experiment: Experiment, cells: Sequence[Cell] | None = None) -> Ran:
        """Measure the experiment's cells, or only `cells`. If interrupted, the results so far are kept."""
        cells = experiment.cells(self.quick) if cells is None else cells
        ran = Ran(experiment.name)
        for design in dict.fromkeys(one.design for one in cells):
            why = experiment.missing(design)
            if why is not None:
                ran.left_out[design] = why
                self.results.append(self.date, Cell(experiment.name, design, "{}"), [], why)
                print(f"left out: {design}: {why}", file=sys.stderr)
        ran.skipped = sum(one in self._done for one in cells)
        todo = [one for one in cells if one not in self._done and one.design not in ran.left_out]
        with self._progress(experiment, len(todo) + ran.skipped, ran.skipped) as advance:
            for one, measures in self._one_by_one(todo) if experiment.clock == "real" else _in_parallel(todo):
                if isinstance(measures, str):
                    ran.failed[one] = measures
                    self.results.append(self.date, one, [], measures)
                    advance(f"{_describe(one)}: failed: {measures}")
                    continue
                self.results.append(self.date, one, [*measures, *([Measure(QUICK, 1.0, "of the run")] * self.quick)])
                ran.measured += 1
                advance(f"{_describe(one)}: {measures[0].metric} {measures[0].value:,.4g} {measures[0].unit}")
        return ran

    def _one_by_one(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, list[Measure] | str]]:
        for one in cells:
            others = Others()
            try:
                measures = measure_alone(one)
            except AbeyantError as error:
                yield one, str(error)
                continue
            share = others.share()
            yield one, [*measures, *([] if share is None else [Measure(TAKEN, share, "of the processors")])]

    @contextmanager
    def _progress(self, experiment: Experiment, total: int, done: int) -> Iterator[Callable[[str], None]]:
        """Show progress on stderr: a bar on a terminal, otherwise a line per cell. Yield the function that does so."""
        console = Console(stderr=True)
        if self._quiet:
            yield lambda words: None
        elif console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            with Progress(TextColumn("{task.description}"), *columns, console=console) as bar:
                shown = bar.add_task(experiment.name, total=total, completed=done)
                yield lambda words: bar.update(shown, advance=1, description=f"{experiment.name}: {words}")
        else:
            began = time.monotonic()
            so_far = [done]

            def line(words: str) -> None:
                so_far[0] += 1
                seconds = time.monotonic() - began
                print(f"{experiment.name} [{so_far[0]}/{total}] {seconds:5.0f} s  {words}", file=sys.stderr, flush=True)

            yield line


def measure_alone(cell: Cell) -> list[Measure]:
    """Measure a cell in its own process. Raise AbeyantError with the last line of its stderr if it fails."""
    command = [sys.executable, "-m", "lab.worker", *cell]
    try:
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise AbeyantError(f"did not finish within {_TIMEOUT:.0f} s") from error
    if ran.returncode:
        stderr = ran.stderr.strip().splitlines()
        raise AbeyantError(stderr[-1] if stderr else f"ended with status {ran.returncode}")
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    return [Measure(metric, float(value), unit) for metric, value, unit in rows]


def _in_parallel(cells: Sequence[Cell]) -> Iterator[tuple[Cell, list[Measure]]]:
    if cells:
        with ProcessPoolExecutor(cores(), multiprocessing.get_context("spawn")) as pool:
            try:
                yield from zip(cells, pool.map(worker.measure, cells), strict=True)
            finally:
                pool.shutdown(cancel_futures=True)


def _describe(one: Cell) -> str:
    chosen = ", ".join(f"{name} {value}" for name, value in one.choices().items() if name not in _HIDDEN)
    return f"{one.design} ({chosen})"
