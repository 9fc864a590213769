"""One replica's log: batches as bytes, offsets, leader epochs, producer state and a time index, in memory or on disk.

A log has no thread, clock or event loop: time is an argument, in milliseconds since 1970. Use a log from one thread,
as the broker's event loop does. Batches are immutable bytes, so the replicas of one process share them.
"""

from __future__ import annotations

from abeyant.broker.log.batch import Batch, split
from abeyant.broker.log.config import LogConfig
from abeyant.broker.log.errors import LogError
from abeyant.broker.log.log import Appended, Log

__all__ = ["Appended", "Batch", "Log", "LogConfig", "LogError", "split"]
