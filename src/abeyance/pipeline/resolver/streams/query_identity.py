"""Which query a batch belongs to: its checkpoint's, so the same after a restart, and another for another checkpoint."""

from __future__ import annotations

from pyspark.sql import DataFrame

from abeyance.errors import AbeyanceError

__all__ = ["query_of"]


def query_of(batch: DataFrame) -> str:
    """Return the id of the query in whose `foreachBatch` we are; `AbeyanceError` when in none."""
    found = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        raise AbeyanceError("this sink is for writeStream.foreachBatch: there is no query here")
    return found
