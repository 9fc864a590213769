"""Count predictions by explanation, by error, and by logged and predicted wait; and list the worst."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.replication.explanations import BIN_MS, CLOCK, EDGE_MS

__all__ = ["agreement", "errors", "explanations", "outliers"]

_BINS_A_DECADE: Final = 10
_MOST_OUTLIERS: Final = 100


def explanations(predictions: DataFrame) -> DataFrame:
    """Count predictions by explanation, with the least, the median and the greatest error (ms)."""
    return predictions.groupBy("explanation").agg(
        F.count("*").alias("produces"),
        F.min("error_ms").alias("least_ms"),
        F.median("error_ms").alias("median_ms"),
        F.max("error_ms").alias("most_ms"),
    )


def errors(predictions: DataFrame) -> DataFrame:
    """Count predictions by instance, explanation and error; bins of errors are `BIN_MS` wide and begin at `low_ms`."""
    low = F.floor(F.col("error_ms") / BIN_MS) * BIN_MS
    cut = F.greatest(F.least(low, F.lit(EDGE_MS)), F.lit(-EDGE_MS - BIN_MS))
    return predictions.groupBy("instance", "explanation", cut.alias("low_ms")).agg(F.count("*").alias("produces"))


def agreement(predictions: DataFrame) -> DataFrame:
    """Count predictions by logged and by predicted wait, ten bins per decade; less than 0.1 ms counts as 0.1 ms."""

    def middle(wait: str) -> Column:
        step = F.floor(F.log10(F.greatest(F.col(wait), F.lit(0.1))) * _BINS_A_DECADE)
        return F.pow(F.lit(10.0), (step + 0.5) / _BINS_A_DECADE)

    group = ("instance", middle("logged_ms").alias("logged_ms"), middle("predicted_ms").alias("predicted_ms"))
    return predictions.groupBy(*group, "logged").agg(F.count("*").alias("produces"))


def outliers(predictions: DataFrame) -> DataFrame:
    """Return the 100 predictions that are furthest from the log, beyond the resolution of its clock."""
    beyond = predictions.where(F.col("explanation") != CLOCK)
    return beyond.orderBy(F.abs("error_ms").desc(), "instance", "op_id").limit(_MOST_OUTLIERS)
