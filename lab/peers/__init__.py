"""The timers that are measured: all have one small interface (`Rival`), and are called as their own users call them."""

from __future__ import annotations

from importlib import import_module

from lab import jvm
from lab.peers.rival import Rival

# name -> (module, class, label on the pages)
PYTHON = {
    "system": ("system_timer", "SystemTimerRival", "abeyant SystemTimer"),
    "system-measured": ("system_timer", "MeasuredTimerRival", "abeyant SystemTimer, measure()"),
    "system-measured-all": ("system_timer", "AllMeasuredTimerRival", "abeyant SystemTimer, measure(every=1)"),
    "manual": ("manual_timer", "ManualTimerRival", "abeyant ManualTimer"),
    "engine": ("engine", "EngineRival", "abeyant TimingWheel (engine)"),
    "aio": ("loops", "OurLoopRival", "abeyant aio.EventLoop"),
    "aio-uvloop": ("loops", "OurUvloopRival", "abeyant aio.UvloopEventLoop"),
    "idle": ("loops", "IdleRival", "abeyant IdleDetector"),
    "asyncio": ("loops", "AsyncioRival", "asyncio"),
    "uvloop": ("loops", "UvloopRival", "uvloop"),
    "heapq": ("delay_queue", "DelayQueueRival", "heapq delay queue"),
    "sched": ("scheduler", "SchedRival", "sched"),
    "threading": ("thread_each", "ThreadEachRival", "threading.Timer"),
}
PURGATORY = {"purgatory": "abeyant Purgatory"}
COLUMNS = {"columns": "abeyant, columns", "heap-loop": "heapq, event by event"}
JVM = {"kafka": "Apache Kafka (JVM)", "jvm-heap": "JVM thread-pool heap"}

LABELS = {name: label for name, (_, _, label) in PYTHON.items()} | PURGATORY | COLUMNS | JVM


def load(name: str) -> type[Rival]:
    """Return the class of a Python rival, even if the timer it measures is not installed."""
    module, kind, _ = PYTHON[name]
    rival: type[Rival] = getattr(import_module(f"lab.peers.{module}"), kind)
    return rival


def why_missing(name: str) -> str | None:
    """Return why a rival cannot be measured on this machine; None if it can."""
    if name in JVM:
        return jvm.why_no_jvm()
    try:
        if name in PYTHON:
            load(name).require()
    except ImportError as error:
        return f"{error} (pip install -r requirements/bench.txt)"
    return None
