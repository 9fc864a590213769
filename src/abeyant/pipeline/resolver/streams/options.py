"""The options of a stream: checked once, and passed to every shard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from abeyant.pipeline.resolver.streams.rules.layout import Columns
from abeyant.tables.rules import Deadline, Rules

__all__ = ["DEFAULT_LATENESS", "DEFAULT_SHARDS", "Deadline", "Options", "Time", "checked"]

Time = Literal["event", "processing"]
Seconds = float | timedelta

DEFAULT_LATENESS: Final = 60.0
DEFAULT_SHARDS: Final = 16

_MOST_SHARDS: Final = 4096


@dataclass(frozen=True)
class Options:
    """A stream's options. If `forget_after_us` is None, all keys are kept; if `rate` is None, no ticks are sent."""

    shards: int
    rules: Rules
    time: Time
    lateness_us: int
    rate: int | None
    forget_after_us: int | None
    columns: Columns | None = None
    """The features that the operations' columns use; None if neither they nor the options need `streams.rules`."""

    @property
    def deadline(self) -> Deadline:
        """Whether progress at the very deadline counts ('inclusive') or not ('exclusive')."""
        return self.rules.deadline

    @property
    def ticking(self) -> bool:
        """Whether the clock of an idle table advances with the wall clock."""
        return self.rate is not None


def checked(
    rules: Rules,
    *,
    lateness: Seconds,
    time: str,
    tick: Seconds | None,
    forget_after: Seconds | None,
    shards: int,
) -> Options:
    """Return the options, checked. Raises ValueError that names the wrong value and the values allowed."""
    if time not in ("event", "processing"):
        raise ValueError(f"time must be 'event' or 'processing', not {time!r}")
    if not 1 <= shards <= _MOST_SHARDS:
        raise ValueError(f"shards must be from 1 to {_MOST_SHARDS:,}, not {shards!r}")
    return Options(
        shards=shards,
        rules=rules,
        time="processing" if time == "processing" else "event",
        lateness_us=_microseconds(lateness, "lateness"),
        rate=None if tick is None else _rate(tick),
        forget_after_us=None if forget_after is None else _microseconds(forget_after, "forget_after"),
    )


def _microseconds(span: Seconds, name: str) -> int:
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"{name} must be a number of seconds from 0 on, or a timedelta, not {span!r}")
    return round(seconds * 1e6)


def _rate(tick: Seconds) -> int:
    micros = _microseconds(tick, "tick")
    if not 1_000 <= micros <= 1_000_000:
        raise ValueError(
            f"tick must be from 0.001 to 1 second, or None, not {tick!r}: for fewer batches than one a second give the "
            "query a trigger, trigger(processingTime='10 seconds')"
        )
    return round(1_000_000 / micros)
