"""The machine's monotonic clock and two helpers, as the interpreted timers use them (compiled: clock.pxd).

It is the machine's own even if `time.monotonic` is patched: its users sleep in the system, really, or measure how
long something took. So the names below are bound where nobody who looks through modules for Python's clocks finds them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import floor as whole

__all__ = ["bit_length", "monotonic_ns", "whole"]

bit_length = int.bit_length

monotonic_ns: Callable[[], int]
if hasattr(time, "CLOCK_UPTIME_RAW"):  # macOS
    monotonic_ns = partial(time.clock_gettime_ns, time.CLOCK_UPTIME_RAW)
elif hasattr(time, "CLOCK_MONOTONIC"):
    monotonic_ns = partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC)
else:  # Windows
    monotonic_ns = partial(time.monotonic_ns)
