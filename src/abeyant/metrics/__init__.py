"""Metrics for Prometheus: the counts of timers, purgatories, idle detectors, event loops and brokers.

    >>> from abeyant import SystemTimer
    >>> from abeyant.metrics import Collector
    >>> collector = Collector(SystemTimer("rpc"))  # in prometheus-client's registry: the program's /metrics has it
    >>> collector.close()

Needs the extra `metrics`: pip install '.[metrics]'. Importing this package alone does not import prometheus-client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.metrics.collector import Collector

__all__ = ["Collector"]

__getattr__, __dir__ = lazy_names(__name__, {"Collector": "collector"}, "metrics", ("prometheus_client",))
