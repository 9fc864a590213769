"""Several readers of one shuffle."""

from __future__ import annotations

from pyspark.sql import DataFrame

__all__ = ["part_of"]


def part_of(shuffled: DataFrame, condition: str) -> DataFrame:
    """Filter a shuffled table of which others want other parts, so that Spark shuffles it once for all of them.

    Spark would move each filter below the shuffle, and then find no two alike. It leaves what it takes for random.
    """
    return shuffled.where(f"({condition}) OR monotonically_increasing_id() < 0")
