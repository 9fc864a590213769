"""Measure how a wheel's tick and size affect cascades, bucket-queue operations, wake-ups, memory and lateness.

Uses the engine's columnar replay, on synthetic traces and on traces of real logs, on a virtual clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from abeyant.kernels.replay import replay
from abeyant.pages.heat import heat_map
from lab.claim import MATSUDA, VARGHESE, Claim, Finding
from lab.experiment import Experiment, Measure, Parameters
from lab.experiments.traces import SYNTHETIC, trace
from lab.panels import (
    tick_words,
)
from lab.run import Run

TICKS_US = (100, 1_000, 10_000, 100_000)
SIZES = (2, 4, 8, 20, 64, 256, 1_024)
_SLOT = 36  # bytes of a slot: links, generation, deadline, item and payload


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """Return the grid: every tick with every wheel size, on every synthetic trace."""
    names = ["low"] if quick else list(SYNTHETIC)
    return on_traces(names, quick)


def on_traces(names: list[str], quick: bool = False) -> list[tuple[str, Parameters]]:
    """Return the grid over these traces: every tick with every wheel size."""
    return [
        ("wheel", {"trace": name, "tick_us": tick, "wheel_size": size})
        for name in names
        for tick in (TICKS_US[1:3] if quick else TICKS_US)
        for size in (SIZES[1::2] if quick else SIZES)
    ]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Measure one replay of a trace."""
    starts, timeouts, ends = trace(str(parameters["trace"]))
    size = int(parameters["wheel_size"])
    stats = replay(starts, timeouts, ends, tick=int(parameters["tick_us"]), wheel_size=size).stats
    tasks, expired = max(stats.started, 1), max(stats.expired, 1)
    return [
        Measure("cascades", stats.cascaded / tasks, "a task"),
        Measure("bucket-queue operations", stats.bucket_operations / tasks, "a task"),
        Measure("wake-ups", stats.wakeups / tasks, "a task"),
        Measure("levels", stats.levels, "wheels"),
        Measure("memory of the buckets", stats.levels * size * _SLOT / 1024, "KiB"),
        Measure("memory of the tasks, most", stats.max_pending * _SLOT / 1024, "KiB"),
        Measure("mean lateness", stats.lateness_sum / expired, "us"),
        Measure("latest", stats.lateness_max, "us"),
        Measure("tasks", stats.started, "tasks"),
    ]


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


def figure(run: Run) -> str:
    """Return, in HTML, heat maps of cascades and of bucket-queue operations per task by tick and wheel size.

    There is a row for each trace.
    """
    traces = sorted(run.choices("trace"), key=lambda trace: (Path(trace).suffix != "", trace))
    metrics = [("cascades", "cascades a task"), ("bucket-queue operations", "bucket-queue operations a task")]
    maps = []
    for name in traces:
        for metric, words in metrics:
            grid = run.of(trace=name).pivot_table(index="tick_us", columns="wheel_size", values=metric)
            shown = grid.rename(index=tick_words, columns=lambda size: f"{size:,}")
            maps.append(heat_map(f"{Path(name).stem}: {words}", shown, "tick", "buckets a wheel", lambda n: f"{n:.2f}"))
    return f'<div class="heats">{"".join(maps)}</div>'


READING: Final = (
    "The engine's columnar replay of each trace (low and high: the requests of the first experiment), for every "
    "tick and wheel size. Left: how often a task is filed anew before it is due. Right: how often the delay queue "
    "of buckets is touched. A queue of tasks is touched twice per task."
)

EXPERIMENT = Experiment(
    "geometry", "Tick and wheel size", "virtual", grid, measure, claims=CLAIMS, figure=figure, reading=READING
)
