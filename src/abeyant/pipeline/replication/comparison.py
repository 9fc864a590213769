"""Compare the model with Kafka: when each produce should have completed, and when it did."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.replication.explanations import (
    CLOCK,
    CLOCK_MS,
    EXPIRY,
    HANDLING,
    IN_SYNC,
    LOG_ENDS,
    OUTCOME,
    UNEXPLAINED,
)
from abeyant.pipeline.replication.high_watermarks import high_watermarks
from abeyant.pipeline.replication.produces import acks_all_produces
from abeyant.pipeline.resolver.tables import resolve
from abeyant.pipeline.schemas import EVENTS, PREDICTIONS

__all__ = ["compare_with_kafka"]


def compare_with_kafka(replication: DataFrame, watermarks: DataFrame | None = None) -> DataFrame:
    """Predict when each produce with acks=all completes, and compare with what Kafka logged (`schemas.PREDICTIONS`).

    The prediction is `resolve` over the rebuilt `watermarks` (default: `high_watermarks(replication)`). `error_ms` is
    the predicted wait minus the logged wait; `explanation` is the cause of an error of more than a millisecond, as far
    as the log shows it:

    * the log ends first: the produce completed; the fetch that completed it, and its deadline, are after the log's end
    * another outcome: the log says completed and the prediction expired, or the reverse
    * expired early or late: both say expired; the broker's timer was not on time
    * a change of the replicas in sync: the log has the time of the controller's response, not of the leader's action
    * while the fetch was handled: the logged response falls within the leader's handling of the deciding fetch; the
      prediction is the end of the handling
    * unexplained

    The command `abeyant model` reports this comparison.
    """
    produces = acks_all_produces(replication)
    if watermarks is None:
        watermarks = high_watermarks(replication)
    outcomes = resolve(produces, watermarks.select(*EVENTS.fieldNames()), unique_ids=True)
    predicted = outcomes.select(
        "instance",
        "op_id",
        F.col("outcome").alias("predicted"),
        F.col("waited_ms").alias("predicted_ms"),
        F.col("at").alias("_at"),
    )
    logged = produces.withColumnsRenamed({"outcome": "logged", "waited_ms": "logged_ms"})
    compared = logged.join(predicted, ["instance", "op_id"]).withColumn(
        "error_ms", F.col("predicted_ms") - F.col("logged_ms")
    )
    compared = compared.crossJoin(F.broadcast(replication.agg(F.max("at").alias("_end"))))
    return _with_cause(compared, watermarks).withColumn("explanation", _explanation()).select(*PREDICTIONS.fieldNames())


def _with_cause(compared: DataFrame, watermarks: DataFrame) -> DataFrame:
    """Add `cause`, `replica` and `handling_ms` of the high watermark that completed a produce, if it waited."""
    why = ("cause", "replica", "handling_ms")
    moved = watermarks.select(
        "instance", "key", F.col("at").alias("_at"), F.struct("handling_ms", "cause", "replica").alias("_why")
    )
    waited = compared.where((F.col("predicted") == "completed") & (F.col("predicted_ms") > 0))
    keys = waited.select("instance", "op_id", "_at", F.explode("watches.key").alias("key"))
    found = keys.join(moved, ["instance", "key", "_at"]).groupBy("instance", "op_id").agg(F.max("_why").alias("_why"))
    return compared.join(found, ["instance", "op_id"], "left").withColumns(
        {name: F.col(f"_why.{name}") for name in why}
    )


def _explanation() -> Column:
    error = F.col("error_ms")
    after_end = F.col("_at") > F.col("_end")
    handled = error.between(-CLOCK_MS, F.col("handling_ms") + CLOCK_MS)
    return (
        F.when((F.col("predicted") == "expired") & (F.col("logged") == "completed") & after_end, LOG_ENDS)
        .when(F.col("predicted") != F.col("logged"), OUTCOME)
        .when(F.abs(error) <= CLOCK_MS, CLOCK)
        .when(F.col("predicted") == "expired", EXPIRY)
        .when(F.col("cause") == "isr", IN_SYNC)
        .when(handled, HANDLING)
        .otherwise(UNEXPLAINED)
    )
