"""Spark Connect: a session whose Spark runs in a server, perhaps on another machine.

Calls that need the driver's own JVM are guarded by `is_connect`, next to what Connect offers instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_connect"]


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is Spark Connect's, by its class's module, since Connect may not be installed."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")
