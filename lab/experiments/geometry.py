"""The wheel's geometry: tick and wheel size against cascades, bucket-queue operations, wake-ups, memory, lateness.

The engine's columnar replay, on synthetic traces and on real ones. On a virtual clock.
"""

from __future__ import annotations

from abeyant.kernels.replay import replay
from lab.experiment import Experiment, Measure, Parameters
from lab.experiments.traces import SYNTHETIC, trace

TICKS_US = (100, 1_000, 10_000, 100_000)
SIZES = (2, 4, 8, 20, 64, 256, 1_024)
_SLOT = 36  # bytes of a slot: links, generation, deadline, item and payload


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """Every tick with every wheel size, on every synthetic trace."""
    names = ["low"] if quick else list(SYNTHETIC)
    return on_traces(names, quick)


def on_traces(names: list[str], quick: bool = False) -> list[tuple[str, Parameters]]:
    """The grid over these traces."""
    return [
        ("wheel", {"trace": name, "tick_us": tick, "wheel_size": size})
        for name in names
        for tick in (TICKS_US[1:3] if quick else TICKS_US)
        for size in (SIZES[1::2] if quick else SIZES)
    ]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """One replay."""
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


EXPERIMENT = Experiment("geometry", "Tick and wheel size", "virtual", grid, measure)
