"""Plan the map side of a stream with options in Spark."""

from __future__ import annotations

from functools import partial
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.resolver.rejected import EVENT_REASON, REJECTED_ROWS, operation_reason
from abeyant.pipeline.resolver.rules import has_own_rules
from abeyant.pipeline.resolver.streams.layout import PACKED
from abeyant.pipeline.resolver.streams.map_side import pack
from abeyant.pipeline.resolver.streams.options import Options
from abeyant.pipeline.resolver.streams.rules.layout import Columns
from abeyant.pipeline.resolver.streams.rules.stages import read_events, read_operations
from abeyant.pipeline.resolver.streams.with_reason import with_reason
from abeyant.pipeline.schemas import DETAILS, EVENTS, OUTCOMES
from abeyant.pipeline.sources.tables import ONE_KEY
from abeyant.pipeline.spark.columns import is_case_sensitive, operations_schema
from abeyant.tables.contradictions import check_deadline
from abeyant.tables.rules import Rules

__all__ = ["answers_of", "columns_of_rules", "packed_by_rules"]

_ROLES: Final = ("cancel_key", "extend_key", "pause_key")


def answers_of(rules: Rules) -> StructType:
    """Return the columns of answers: outcomes (`reason` is null) and rejected rows (`outcome` is null)."""
    return StructType([*(DETAILS if rules.details else OUTCOMES).fields, *REJECTED_ROWS.fields])


def columns_of_rules(operations: DataFrame, rules: Rules) -> Columns | None:
    """Return the features of the operations' columns; None if neither they nor the options need `streams.rules`.

    Raises `SchemaError` for a column that contradicts the options, or another column.
    """
    schema = operations_schema(operations)
    if not has_own_rules(schema, rules):
        return None
    check_deadline(schema.fieldNames(), rules)
    alike = str if is_case_sensitive(operations.sparkSession) else str.lower
    names = {alike(name) for name in operations.columns}
    in_list = "role" in schema["watches"].dataType.simpleString()
    listed = any(alike(field.name) == "watches" and ONE_KEY not in field.metadata for field in operations.schema.fields)
    return Columns(
        several_keys=listed or not names.isdisjoint(_ROLES),
        deadline="deadline" in schema.fieldNames(),
        roles=in_list or not names.isdisjoint(_ROLES[:2]),
        pauses=in_list or "pause_key" in names,
    )


def packed_by_rules(operations: DataFrame, events: DataFrame, options: Options) -> DataFrame:
    """Pack operations and events, as `sources.tables.complete` returns them, into rows of `layout.PACKED`."""
    columns = options.columns
    assert columns is not None
    schema = operations_schema(operations)
    first = F.get("watches", F.lit(0))["key"]
    rows = with_reason(operations, schema, F.expr(operation_reason(schema)))
    rows = rows.select(*schema.fieldNames(), _place(columns, first), "reason", "row")
    others = with_reason(events, EVENTS, F.expr(EVENT_REASON))
    others = others.select(
        "instance",
        "key",
        "progress",
        F.unix_micros("at").alias("at"),
        _place(columns, F.col("key")),
        "reason",
        "row",
    )
    pack_operations = partial(
        pack, table="operations", shards=options.shards, read=partial(read_operations, options=options)
    )
    pack_events = partial(pack, table="events", shards=options.shards, read=read_events)
    return rows.mapInArrow(pack_operations, PACKED).union(others.mapInArrow(pack_events, PACKED))


def _place(columns: Columns, key: Column) -> Column:
    """Return the hash that chooses a row's shard: of the instance, or of instance and key."""
    hashed = F.xxhash64("instance") if columns.several_keys else F.xxhash64(F.col("instance"), key)
    return hashed.alias("place")
