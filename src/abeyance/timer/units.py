"""Seconds outside, nanoseconds inside: the conversion and its limits."""

from __future__ import annotations

import math
from datetime import timedelta

from abeyance.engine import MAX_TIME

NANOSECONDS = 1_000_000_000  # in a second

# What a delay that reaches past MAX_TIME (146 years of the timer's clock) is filed as. No driver's clock gets
# there, so such a task stays pending until it is cancelled; it never runs early.
NEVER = MAX_TIME


def to_nanoseconds(seconds: float | timedelta, name: str) -> int:
    """Whole nanoseconds, to the nearest. Infinite and huge values become +-NEVER.

    Raises TypeError for what is no time and ValueError for NaN, each naming the argument `name`.
    """
    if isinstance(seconds, timedelta):
        value = seconds // timedelta(microseconds=1) * 1000
    else:
        try:
            if math.isnan(seconds):
                raise ValueError(f"{name} must be a number of seconds, not NaN")
            value = NEVER if seconds >= NEVER else -NEVER if seconds <= -NEVER else round(seconds * NANOSECONDS)
        except TypeError:
            raise TypeError(f"{name} must be seconds (float or timedelta), not {seconds!r}") from None
    return max(-NEVER, min(value, NEVER))


def to_seconds(nanoseconds: int) -> float:
    """Seconds as float; infinity for NEVER."""
    return math.inf if nanoseconds >= NEVER else nanoseconds / NANOSECONDS
