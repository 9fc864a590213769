"""Count operations by key, to find the keys on which operations wait longest and expire most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from abeyant.pipeline.analysis.columns import keys_of, observed, tables
from abeyant.pipeline.analysis.ranked import Ranked, percentile_columns, rank_by_group
from abeyant.pipeline.analysis.summary import expired_share
from abeyant.pipeline.schemas import BY_KEY

__all__ = ["KEY", "by_key", "by_key_rows", "with_keys"]

KEY: Final = ("instance", "kind", "key")

_WATCHED: Final = StructType(
    [StructField(name, LongType() if name == "wait_us" else StringType()) for name in (*KEY, "wait_us", "outcome")]
)


def by_key(operations: DataFrame) -> DataFrame:
    """Count the operations of each (instance, kind, key) and rank their waits (`schemas.BY_KEY`).

    An operation that watches several keys counts under each key; an operation without keys does not count.
    """
    watched = observed(operations, "keys").mapInArrow(_watched, _WATCHED)
    return rank_by_group(watched, KEY, by_key_rows, BY_KEY)


def by_key_rows(ranked: Ranked) -> pa.Table:
    """Return a row of `BY_KEY` for each group."""
    counts = {name: ranked.sums(getattr(ranked, name)) for name in ("completed", "expired")}
    columns = {
        **{name: ranked.groups[name] for name in KEY},
        "operations": ranked.total,
        **counts,
        "expired_share": expired_share(counts["completed"], counts["expired"]),
        **percentile_columns(ranked),
        "total_waited_ms": ranked.sums(ranked.wait_us * ranked.operations) / 1000,
    }
    return pa.table(columns).select(BY_KEY.fieldNames())


def with_keys(table: pa.Table) -> pa.Table:
    """Return the operations once for each key that they watch, with a column `key` in place of `keys`."""
    rows, keys = keys_of(table)
    return table.drop_columns(["keys"]).take(pa.array(rows)).append_column("key", keys)


def _watched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in tables(batches):
        yield from with_keys(table).select(_WATCHED.fieldNames()).combine_chunks().to_batches()
