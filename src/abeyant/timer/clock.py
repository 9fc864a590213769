"""The machine's monotonic clock and two helpers, as the interpreted timers use them (compiled: clock.pxd).

`monotonic_ns` ignores patches of `time.monotonic`, as its callers sleep in the operating system or measure real
durations. So it is a `partial`, which tools that search modules for Python's clocks do not replace.
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
