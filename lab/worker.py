"""Measure one cell in its own process: `python -m lab.worker EXPERIMENT DESIGN PARAMETERS`.

Prints one line per measure: name, value and unit, separated by tabs.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import threading
from typing import NoReturn

from lab.benchmarks.programs import BENCHMARKS
from lab.experiment import Cell, Measure
from lab.experiments import EXPERIMENTS


def main(experiment: str, design: str, parameters: str) -> None:
    """Measure a cell and print its measures. Its parameter `memory_mb`, if any, limits the memory that it may add."""
    cell = Cell(experiment, design, parameters)
    memory_mb = cell.choices().get("memory_mb")
    if memory_mb is not None and design != "kafka-jvm":
        _limit(int(memory_mb))
    try:
        measures = measure(cell)
    except MemoryError:
        _out_of_memory()
    _print(measures)


def measure(cell: Cell) -> list[Measure]:
    """Measure a cell in this process."""
    if cell.experiment in BENCHMARKS:
        return BENCHMARKS[cell.experiment].measure(cell.design, cell.choices())
    return EXPERIMENTS[cell.experiment].measure(cell.design, cell.choices())


def _print(measures: list[Measure]) -> None:
    for metric, value, unit in measures:
        print(f"{metric}\t{value!r}\t{unit}", flush=True)


def _limit(megabytes: int) -> None:
    """Limit the process's memory. The first allocation beyond ends it, with "out of memory" as its only measure."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_DATA, (used + megabytes * 2**20,) * 2)
    threading.excepthook = lambda raised: _out_of_memory() if raised.exc_type is MemoryError else None
    sys.unraisablehook = lambda raised: _out_of_memory() if raised.exc_type is MemoryError else None
    logging.getLogger("abeyant").addHandler(_Handler())


class _Handler(logging.Handler):
    """Log handler that ends the process on a MemoryError of an operation's code, which a purgatory or timer logs."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and isinstance(record.exc_info[1], MemoryError):
            _out_of_memory()


def _out_of_memory() -> NoReturn:
    _print([Measure("out of memory", 1.0, "runs")])
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
