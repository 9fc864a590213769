"""Identify a batch's query by its checkpoint: the id is the same after a restart, and differs between checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, is_remote

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.location import location

__all__ = ["checkpoint_of", "query_of"]


def checkpoint_of(sink: str, checkpoint: str | Path | None) -> str | None:
    """Return the location of a sink's checkpoint; None if no checkpoint is given.

    Raises `AbeyantError` on Spark Connect without a checkpoint, because a batch does not have its query's id there.
    """
    if checkpoint is None and is_remote():
        raise AbeyantError(
            f"on Spark Connect a batch does not have its query's id: give {sink} the checkpoint of the query, as in "
            f'{sink}(..., checkpoint="/the/checkpointLocation")'
        )
    return None if checkpoint is None else location(str(checkpoint))


def query_of(batch: DataFrame, checkpoint: str | None) -> str:
    """Return the id of the query whose `foreachBatch` is running; raise `AbeyantError` if none is running.

    The id is a property of the batch's thread; on Spark Connect it is read from the `checkpoint`.
    """
    spark = batch.sparkSession
    if is_connect(spark) and checkpoint is not None:
        try:
            rows = spark.read.text(f"{checkpoint}/metadata").collect()
            return str(json.loads(rows[0]["value"])["id"])
        except (PySparkException, LookupError, ValueError) as error:
            raise AbeyantError(f"{checkpoint} is the checkpoint of no query: its file `metadata` has no id") from error
    found = None if is_connect(spark) else spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        raise AbeyantError("this sink works only in writeStream.foreachBatch: no streaming query is running here")
    return found
