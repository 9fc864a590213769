"""The machine's monotonic clock and one conversion, as the interpreted timers use them (compiled: clock.pxd)."""

from __future__ import annotations

from math import floor as whole
from time import monotonic_ns

__all__ = ["monotonic_ns", "whole"]
