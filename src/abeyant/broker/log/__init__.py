"""One replica's log: batches as bytes, offsets, leader epochs, producer state and a time index, in memory or on disk.

No thread, no clock, no event loop: time is an argument, in milliseconds since 1970. A log is used by one thread at a
time, the broker's loop. Batches are immutable bytes, so the replicas of one process share them.
"""

from __future__ import annotations

from abeyant.broker.log.batch import Batch, split
from abeyant.broker.log.config import LogConfig
from abeyant.broker.log.errors import LogError
from abeyant.broker.log.log import Appended, Log

__all__ = ["Appended", "Batch", "Log", "LogConfig", "LogError", "split"]
