"""Make requests as the published benchmark does: Poisson arrivals, log-normal latencies set by two percentiles.

Source: Apache Kafka `TestPurgatoryPerformance`; the percentiles are those of "Apache Kafka, Purgatory, and
Hierarchical Timing Wheels" (Matsuda, 2015).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

TIMEOUT_MS: Final = 200
_QUARTILE: Final = 0.674490  # of the normal distribution: its 75th percentile, in standard deviations


class Load(NamedTuple):
    """The 50th and the 75th percentile of the latency to completion, in milliseconds."""

    p50: float
    p75: float


LOADS: Final = {"low": Load(20, 60), "high": Load(200, 400)}
"""Loads with few and with many time-outs: some 8 % and 50 % of requests take longer than the time-out of 200 ms."""


def arrivals(count: int, rate: float, random: Any) -> Any:
    """Return when `count` requests arrive, at `rate` per second: ns from the beginning (NumPy int64, ascending)."""
    return (random.exponential(1e9 / rate, count)).cumsum().astype("int64")


def latencies(count: int, load: Load, random: Any) -> Any:
    """Return the latency of each of `count` requests, in ns (NumPy int64)."""
    sigma = math.log(load.p75 / load.p50) / _QUARTILE
    return (random.lognormal(math.log(load.p50 * 1e6), sigma, count)).astype("int64")


def timed_out_share(load: Load) -> float:
    """Return the share of requests that take longer than the time-out."""
    sigma = math.log(load.p75 / load.p50) / _QUARTILE
    return 0.5 * math.erfc(math.log(TIMEOUT_MS / load.p50) / sigma / math.sqrt(2))
