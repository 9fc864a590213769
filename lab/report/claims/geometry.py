"""What is claimed of tick and wheel size."""

from __future__ import annotations

from typing import Final

import pandas as pd

from lab.report.claims.claim import MATSUDA, VARGHESE, Claim, Finding
from lab.report.run import Run

__all__ = ["CLAIMS"]


def _kafkas(run: Run) -> pd.DataFrame:
    rows = run.of(tick_us=1_000, wheel_size=20)
    return rows if len(rows) else run.cells


def _cascades(run: Run) -> Finding:
    over = run.cells[run.cells["cascades"] > run.cells["levels"] - 1]
    usual = _kafkas(run)
    worst = usual.loc[usual["cascades"].idxmax()]
    most = run.cells.loc[run.cells["cascades"].idxmax()]
    said = (
        f"never more often than levels less one ({len(over)} of {len(run.cells)} cells are over it). With Kafka's 1 ms"
        f" and 20 buckets it is {worst['cascades']:.2f} times per task at most. The most of all is"
        f" {most['cascades']:.2f}, with {most['wheel_size']} buckets per wheel"
    )
    return Finding("held" if over.empty else "not held here", said)


def _bucket_queue(run: Run) -> Finding:
    usual = _kafkas(run)
    low, high = float(usual["bucket-queue operations"].min()), float(usual["bucket-queue operations"].max())
    said = (
        f"with 1 ms and 20 buckets {low:.2f} to {high:.2f} operations a task, depending on the trace, where a queue"
        " of tasks has 2 (1 decides)"
    )
    return Finding("held" if high < 1 else "held in part" if low < 1 else "not held here", said)


CLAIMS: Final[list[Claim]] = [
    Claim(
        "A task cascades once for each overflow wheel at most; in practice much less.",
        VARGHESE,
        _cascades,
        "Held if no cell has more cascades a task than levels less one.",
    ),
    Claim(
        "A delay queue of buckets is touched far less often than one of tasks, so its O(log n) does not matter.",
        MATSUDA,
        _bucket_queue,
        "Held if with 1 ms and 20 buckets every trace has less than 1 operation a task; in part if some has.",
    ),
]
