"""What is to be measured: every row at every size for every rival that has it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lab import peers
from lab.benchmarks import jvm_rivals
from lab.benchmarks.catalogue import ROWS, SMALL, Row
from lab.peers.rival import Rival


@dataclass(frozen=True)
class Task:
    """One measurement to make."""

    rival: str
    row: str
    size: int


class Plan:
    """The tasks, and who is left out because something is not installed."""

    def __init__(self, rows: Collection[str], names: Collection[str], sizes: Collection[int] | None, quick: bool):
        self.left_out: dict[str, str] = {}
        self._kinds: dict[str, type[Rival]] = {}
        for name in peers.PYTHON:
            if name not in names:
                continue
            try:
                self._kinds[name] = peers.load(name)
            except ImportError as error:
                self.left_out[name] = f"{error} (pip install -r requirements/bench.txt)"
        self._names = names
        self._sizes = sizes
        # Rivals side by side: first by row, then by size.
        self.tasks = [task for row in ROWS.values() if row.name in rows for task in self._of(row, quick)]

    def leave_out(self, name: str, why: str) -> None:
        """Leave out a rival."""
        self.left_out[name] = why
        self.tasks = [task for task in self.tasks if task.rival != name]

    def _of(self, row: Row, quick: bool) -> Iterator[Task]:
        sizes = row.quick_sizes if quick else row.sizes
        for size in sorted({*sizes, SMALL}):
            if self._sizes is not None and size not in self._sizes:
                continue
            for name in row.rivals:
                if name not in self._names or not self._measures(name, row, size):
                    continue
                small = name in self._kinds and self._kinds[name].largest == SMALL
                if size in sizes or small:
                    yield Task(name, row.name, size)

    def _measures(self, name: str, row: Row, size: int) -> bool:
        if name in peers.JVM:
            return jvm_rivals.measures(name, row.name)
        if name in peers.PURGATORY or name in peers.COLUMNS:
            return True
        kind = self._kinds.get(name)
        if kind is None or size > kind.largest:
            return False
        if row.name in ("expiry", "stall_expiry") and not kind.holds:
            return False
        return kind.stalls or not row.name.startswith("stall_")
