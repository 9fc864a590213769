"""Count the outcomes of a DataFrame with Spark, which returns only the counts."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame

from abeyant.errors import AbeyantError
from abeyant.pipeline.analysis.outcomes import binned, most_expired
from abeyant.pipeline.report.outcomes import Outcomes, named, ranked
from abeyant.pipeline.resolver.given import as_dataframe
from abeyant.pipeline.results.waits import Waits
from abeyant.pipeline.schemas import OUTCOMES
from abeyant.pipeline.sources.tables import complete
from abeyant.pipeline.spark.columns import check_table, columns_of, operations_schema
from abeyant.pipeline.spark.notebook import watch_cells

__all__ = ["MOST_COUNTS", "look"]

MOST_COUNTS: Final = 1_000_000
"""Maximum rows of counts that are collected. A kind has up to some 9,000 rows."""


def look(outcomes: DataFrame, operations: Any) -> Outcomes:
    """Count the outcomes and, unless `operations` is None, find the keys on which most operations expired."""
    if outcomes.isStreaming:
        raise AbeyantError("outcomes are a stream, which has no end: pass the table that its sink has written")
    check_table(outcomes, OUTCOMES, "outcomes")
    outcomes = columns_of(outcomes, OUTCOMES)
    spark = outcomes.sparkSession
    watch_cells(spark)
    counts, waits = binned(outcomes).limit(MOST_COUNTS + 1).toArrow(), Waits()
    if counts.num_rows > MOST_COUNTS:
        raise AbeyantError(
            "outcomes have too many different kinds to be drawn: replace them by fewer kinds, as by "
            "outcomes.withColumn('kind', functions.lit(''))"
        )
    waits.add(counts.to_pandas())
    keys = None
    if operations is not None:
        operations = complete(as_dataframe(operations, "operations", spark), "operations")
        schema = operations_schema(operations)
        check_table(operations, schema, "operations")
        expired = outcomes.where("outcome = 'expired'").select("instance", "op_id")
        struck = columns_of(operations, schema).join(expired, ["instance", "op_id"], "left_semi")
        keys = ranked(most_expired(struck).toArrow().to_pandas())
    made = {"pending_for_ever": waits.pending} if waits.pending else {}
    return Outcomes(waits=named(waits.table().to_pandas()), keys=keys, rejected={}, made=made)
