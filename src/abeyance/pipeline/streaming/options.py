"""What a stream is resolved with: checked once, and told to every shard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

__all__ = ["DEFAULT_LATENESS", "DEFAULT_SHARDS", "Deadline", "Options", "Time", "options"]

Deadline = Literal["inclusive", "exclusive"]
Time = Literal["event", "processing"]
Seconds = float | timedelta

DEFAULT_LATENESS: Final = 60.0
DEFAULT_SHARDS: Final = 8

_MOST_SHARDS: Final = 4096


@dataclass(frozen=True)
class Options:
    """Times in microseconds; `forget_after_us` is None for never."""

    shards: int
    deadline: Deadline
    time: Time
    lateness_us: int
    ticking: bool
    forget_after_us: int | None


def options(
    *,
    shards: int,
    deadline: str,
    time: str,
    lateness: Seconds,
    ticking: bool,
    forget_after: Seconds | None,
) -> Options:
    """Check what the user gave; ValueError names the value and what it may be."""
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    if time not in ("event", "processing"):
        raise ValueError(f"time must be 'event' or 'processing', not {time!r}")
    if not 1 <= shards <= _MOST_SHARDS:
        raise ValueError(f"shards must be from 1 to {_MOST_SHARDS}, not {shards!r}")
    return Options(
        shards=shards,
        deadline="exclusive" if deadline == "exclusive" else "inclusive",
        time="processing" if time == "processing" else "event",
        lateness_us=microseconds(lateness, "lateness"),
        ticking=ticking,
        forget_after_us=None if forget_after is None else microseconds(forget_after, "forget_after"),
    )


def microseconds(span: Seconds, name: str) -> int:
    """A span of time in whole microseconds, to the nearest; ValueError for a negative or endless one."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"{name} must be a number of seconds from 0 on, or a timedelta, not {span!r}")
    if isinstance(span, timedelta):
        return span // timedelta(microseconds=1)
    return round(seconds * 1e6)
