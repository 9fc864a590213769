"""Detect sessions of Spark Connect, whose Spark runs in a server, perhaps on another machine.

Callers check `is_connect` before they use the driver's JVM, and use the substitutes of Spark Connect instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_connect"]


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is of Spark Connect, by the module of its class: Connect may not be installed."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")
