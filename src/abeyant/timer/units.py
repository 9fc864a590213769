"""Convert between the seconds of the API and the nanoseconds used inside; check limits."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.clock import monotonic_ns, whole
else:
    from cython.cimports.abeyant.timer.clock import monotonic_ns, whole

from abeyant.engine import MAX_TIME

# Stands for times of 4e9 seconds (126 years) or more and for deadlines past MAX_TIME (146 years of the timer's clock).
# No driver's clock reaches it, so such a task stays pending until it is cancelled; it never runs early.
NEVER = MAX_TIME
_NEVER = NEVER  # a C constant when compiled
_NANOSECONDS = 1e9  # in a second
_MANY_SECONDS = 4e9  # smaller values in nanoseconds are below NEVER
_NO_NUMBERS = ("b", "m", "M")  # NumPy's bool, timedelta64 and datetime64, which can be converted to floats


def whole_nanoseconds(seconds: float) -> int:
    """Convert seconds, below 4e9, to nanoseconds, rounded to the nearest."""
    return whole(seconds * _NANOSECONDS + 0.5)


def to_nanoseconds(seconds: float | timedelta, name: str) -> int:
    """Convert seconds to nanoseconds, rounded to the nearest. Infinite and huge values become +-NEVER.

    Raises TypeError for an object that is not a time and ValueError for NaN, each naming the argument `name`.
    """
    if type(seconds) is float:
        value = seconds
    else:
        value = as_float(seconds, name)
        if isinstance(seconds, timedelta) and -_MANY_SECONDS < value < _MANY_SECONDS:
            return _exact(seconds)
    if -_MANY_SECONDS < value < _MANY_SECONDS:
        return whole_nanoseconds(value)
    if value != value:
        raise ValueError(f"{name} must be a number of seconds, not NaN")
    return _NEVER if value > 0 else -_NEVER


def as_float(seconds: Any, name: str) -> float:
    """Return a time (any number but bool, or a timedelta) in seconds as float; infinity if it is too large.

    Raises TypeError, naming the argument `name`, for any other object, NumPy's times included.
    """
    try:
        if isinstance(seconds, timedelta):
            return seconds.total_seconds() if type(seconds) is timedelta else _exact(seconds) / _NANOSECONDS
        if type(seconds) is int or (type(seconds) is not bool and _kind(seconds) not in _NO_NUMBERS):
            return math.copysign(seconds, seconds)  # converts any number to float; float() would accept strings
    except OverflowError:
        return math.inf if seconds > 0 else -math.inf
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must be seconds (a number or a timedelta), not {seconds!r}")


def _kind(value: Any) -> str:
    """Return the kind letter of a NumPy value's type; "" for other values."""
    return str(getattr(getattr(value, "dtype", None), "kind", ""))


def _exact(seconds: timedelta) -> int:
    """Convert a timedelta to nanoseconds, exactly, with the nanoseconds of subclasses such as pandas' Timedelta."""
    rest: int = getattr(seconds, "nanoseconds", 0)
    return seconds // timedelta(microseconds=1) * 1000 + rest


def to_seconds(nanoseconds: int) -> float:
    """Convert nanoseconds to seconds, as float; infinity for NEVER."""
    return math.inf if nanoseconds >= _NEVER else nanoseconds / _NANOSECONDS


def machine_time() -> float:
    """Return the time on the machine's monotonic clock, in seconds. Ignore patches of `time.monotonic`."""
    return monotonic_ns() / _NANOSECONDS
