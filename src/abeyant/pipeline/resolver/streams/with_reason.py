"""Add the reason for a rejection, and the row as JSON, to the rows of a stream."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.resolver.rejected import TIME_FORMAT
from abeyant.pipeline.schemas import REJECT_REASON, REJECTED_ROW

__all__ = ["with_reason"]


def with_reason(rows: DataFrame, schema: StructType, reason: Column) -> DataFrame:
    """Add `reason`, null for a valid row, and `row`, JSON of a rejected row, unless a source has added them already."""
    columns = [F.col(name) for name in schema.fieldNames()]
    json = F.to_json(
        F.struct(*columns), {"ignoreNullFields": "false", "timestampFormat": TIME_FORMAT, "timeZone": "UTC"}
    )
    if REJECT_REASON in rows.columns:
        reason = F.coalesce(REJECT_REASON, reason)
    if REJECTED_ROW in rows.columns:
        json = F.coalesce(REJECTED_ROW, json)
    return rows.select(*columns, reason.alias("reason"), F.when(reason.isNotNull(), json).alias("row"))
