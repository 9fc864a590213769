"""The rivals on the JVM: a fresh JVM for each row."""

from __future__ import annotations

from collections.abc import Sequence

from lab import jvm
from lab.benchmarks.effort import FULL, Effort

_ROWS = {
    "kafka": {
        "pair", "start", "stop", "refresh", "expiry", "stall_start", "stall_expiry", "stall_stop", "memory",
        "lateness", "watch", "watch_made", "watch_keys", "watch_hot", "enqueue",
    },
    "jvm-heap": {"pair", "start", "stop", "refresh", "expiry", "memory"},
}  # fmt: skip


def measures(rival: str, row: str) -> bool:
    """Whether there is a program for this."""
    return row in _ROWS[rival]


def command(rival: str, row: str, sizes: Sequence[int], effort: Effort) -> list[str]:
    """The command line that measures a row at each of the sizes, and prints a line for each."""
    warm = 3.0 if effort == FULL else 0.5
    lateness, seconds = effort.lateness
    numbers = [
        effort.rounds, effort.seconds, effort.most, effort.patience, lateness, seconds, effort.enqueue, warm,
    ]  # fmt: skip
    return jvm.command("bench.Main", "4g", rival, row, ",".join(map(str, sizes)), *numbers)
