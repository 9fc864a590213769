"""Which query a batch belongs to: its checkpoint's, so the same after a restart, and another for another checkpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, is_remote
from pyspark.sql.streaming.query import StreamingQuery

from abeyant.errors import AbeyantError
from abeyant.pipeline.results.local_claims import hold, let_go
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.location import location

__all__ = ["checkpoint_of", "hold_while_it_runs", "query_of", "run_of", "when_it_ends"]


def checkpoint_of(sink: str, checkpoint: str | Path | None) -> str | None:
    """Return where the checkpoint is that a sink was told of.

    Raises `AbeyantError` on Spark Connect when it was told of none: a batch knows nothing of its query there.
    """
    if checkpoint is None and is_remote():
        raise AbeyantError(
            f"on Spark Connect a batch does not tell its query: give {sink} the checkpoint of the query, as "
            f'{sink}(..., checkpoint="/the/checkpointLocation")'
        )
    return None if checkpoint is None else location(str(checkpoint))


def query_of(batch: DataFrame, checkpoint: str | None) -> str:
    """Return the id of the query in whose `foreachBatch` we are; `AbeyantError` when in none.

    It is told by the thread of the batch, on Spark Connect by the `checkpoint`.
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
        raise AbeyantError("this sink is for writeStream.foreachBatch: there is no query here")
    return found


def hold_while_it_runs(batch: DataFrame, query: str, claim: Path, out: Path) -> None:
    """Hold the claim to `out` from the first batch of a query until the query ends.

    Until the process ends on Spark Connect, where that is one of the query, and for a query that is not of the
    process's first session. Raises `AbeyantError` that names another process that holds it.
    """
    run = run_of(batch)
    if hold(claim, out, run or query) and run is not None:
        when_it_ends(query, partial(let_go, claim, run))


def run_of(batch: DataFrame) -> str | None:
    """Return what tells this run of a query from its later ones; None on Spark Connect."""
    spark = batch.sparkSession
    return None if is_connect(spark) else spark.sparkContext.getLocalProperty("spark.jobGroup.id")


def when_it_ends(query: str, do: Callable[[], object]) -> None:
    """Do something when a query ends, in a thread of its own; never for one that is not of the first session."""
    # Not the batch's session: that is a copy, which knows of no queries.
    running = SparkSession.builder.getOrCreate().streams.get(query)
    if running is not None:
        threading.Thread(target=_do_after, args=(running, do), name=_THREAD, daemon=True).start()


_THREAD: Final = "abeyant-claim"


def _do_after(running: StreamingQuery, do: Callable[[], object]) -> None:
    with suppress(Exception):  # however it ends
        running.awaitTermination()
    do()
