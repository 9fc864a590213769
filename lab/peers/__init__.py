"""Whom we measure: each timer behind one small interface, called as its own users call it."""

from __future__ import annotations

from importlib import import_module

from lab.peers.rival import Rival

# name -> (module, class, how a page calls it)
PYTHON = {
    "system": ("system_timer", "SystemTimerRival", "abeyant SystemTimer"),
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
    """The class of a Python rival. Raises ImportError where what it measures is not installed."""
    module, kind, _ = PYTHON[name]
    rival: type[Rival] = getattr(import_module(f"lab.peers.{module}"), kind)
    rival.require()
    return rival
