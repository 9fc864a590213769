"""Warn if all operations expired because none of their keys occurs among the events. See `tables.unmatched`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.resolver.tables.validity import valid_events
from abeyant.pipeline.results.outcome_counts import OutcomeCounts
from abeyant.pipeline.schemas import FURTHER
from abeyant.tables.unmatched import LEAST_UNMATCHED, key_column, unmatched_keys

__all__ = ["unmatched_of"]

_PAIR: Final = ["instance", "key"]
_LOOKED_AT: Final = 1_000


def unmatched_of(ended: OutcomeCounts, operations: DataFrame, events: DataFrame, columns: list[str]) -> str | None:
    """Return a warning if all operations expired and none of their keys occurs among the events; else None.

    Looks up at most `_LOOKED_AT` keys. Runs no job unless there are `LEAST_UNMATCHED` operations and all expired; then
    one job reads operations, and one or two read events. `columns` are the columns of the user's table of operations.
    """
    if not ended.all_expired or ended.expired < LEAST_UNMATCHED:
        return None
    further = [F.col(name) for name in operations.columns if name in FURTHER and name.endswith("_key")]
    keys = F.concat("watches.key", F.array(*further)) if further else F.col("watches.key")
    exploded = operations.select("instance", F.explode(keys).alias("key")).dropna()
    sample = exploded.limit(_LOOKED_AT).toArrow().group_by(_PAIR, use_threads=False).aggregate([])
    events = valid_events(events).select(*_PAIR)
    sample_frame = operations.sparkSession.createDataFrame(sample.combine_chunks())
    if not sample.num_rows or not events.join(F.broadcast(sample_frame), _PAIR, "left_semi").isEmpty():
        return None
    event_keys = events.limit(_LOOKED_AT).toArrow()
    if not event_keys.num_rows:
        return None
    subject = f"the {ended.expired:,} operations"
    if sample.num_rows > _LOOKED_AT // 2 or ended.expired >= _LOOKED_AT:  # there may be more keys
        subject = f"{subject} (looked for {sample.num_rows:,} of their keys)"
    pairs = ([*zip(*table.select(_PAIR).to_pydict().values(), strict=True)] for table in (sample, event_keys))
    return unmatched_keys(subject, key_column(columns), *pairs)
