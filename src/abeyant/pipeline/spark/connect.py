"""Spark Connect: a session whose Spark is a server's, perhaps on another machine, and answers by messages alone.

What only a driver's own JVM has is not to be had there. Such calls stand behind `is_connect`, each beside what Connect
has in its place.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

__all__ = ["is_connect"]


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is Spark Connect's, by its class's name: Connect may not be installed."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")
