"""Bounds on the work of a measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Bounds on a measurement in one process. A round does as many operations as fit in `seconds`, at most `most`."""

    rounds: int
    seconds: float  # per round
    most: int  # operations per round
    time_limit: float  # seconds after which no further round begins, once there are three
    lateness: tuple[int, float]  # real-clock timers, seconds they are spread over
    enqueue: int  # operations per round of the enqueue benchmark


FULL = Effort(rounds=7, seconds=0.1, most=100_000, time_limit=25, lateness=(100_000, 10.0), enqueue=100_000)
QUICK = Effort(rounds=3, seconds=0.01, most=10_000, time_limit=5, lateness=(2_000, 0.5), enqueue=5_000)
TINY = Effort(rounds=1, seconds=0.0001, most=20, time_limit=1, lateness=(20, 0.02), enqueue=20)  # for the tests

BY_NAME = {"full": FULL, "quick": QUICK, "tiny": TINY}
