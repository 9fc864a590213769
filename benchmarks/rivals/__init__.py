"""Whom we measure: each timer behind one small interface, called as its own users call it."""

from __future__ import annotations

from importlib import import_module

from benchmarks.rivals.rival import Rival

# name -> (module, class, how a page calls it)
PYTHON = {
    "system": ("system_timer", "SystemTimerRival", "abeyance SystemTimer"),
    "manual": ("manual_timer", "ManualTimerRival", "abeyance ManualTimer"),
    "engine": ("engine", "EngineRival", "abeyance TimingWheel (engine)"),
    "asyncio": ("loops", "AsyncioRival", "asyncio"),
    "uvloop": ("loops", "UvloopRival", "uvloop"),
    "heapq": ("delay_queue", "DelayQueueRival", "heapq delay queue"),
    "sched": ("scheduler", "SchedRival", "sched"),
    "threading": ("thread_each", "ThreadEachRival", "threading.Timer"),
}
PURGATORY = {"purgatory": "abeyance Purgatory"}
COLUMNS = {"columns": "abeyance, columns", "heap-loop": "heapq, event by event"}
JVM = {"kafka": "Apache Kafka (JVM)", "jvm-heap": "JVM thread-pool heap"}

LABELS = {name: label for name, (_, _, label) in PYTHON.items()} | PURGATORY | COLUMNS | JVM


def load(name: str) -> type[Rival]:
    """The class of a Python rival. Raises ImportError where what it measures is not installed."""
    module, kind, _ = PYTHON[name]
    rival: type[Rival] = getattr(import_module(f"benchmarks.rivals.{module}"), kind)
    rival.require()
    return rival
