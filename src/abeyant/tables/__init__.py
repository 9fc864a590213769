"""Find which operations completed and which expired, over whole tables in this process, without Spark or Java.

    >>> import pandas as pd
    >>> from abeyant import tables
    >>> start = pd.Timestamp("2026-11-26 09:00")
    >>> operations = pd.DataFrame({"op_id": ["order-1"], "key": ["paid/1"], "start": [start], "timeout": ["15 min"]})
    >>> events = pd.DataFrame({"key": ["paid/1"], "at": [start + pd.Timedelta("10 min")]})
    >>> tables.resolve(operations, events)["outcome"].to_pylist()
    ['completed']

A table is anything with an Arrow interface (pandas, Polars, DuckDB, pyarrow), or the path of a Parquet file or folder.
Outcomes, columns and laws are the same as in `abeyant.pipeline.resolve`, which runs on Spark.

    operations ── valid ── watches by key ──────────────────────┐
                                                                ├── reached ── combined ── outcomes
    events ────── valid ── rows by key ── shards ─ staircases ──┘

Keys are represented by hashes, see `keys`. The keys' hashes divide the events into 1,024 *shards*. A shard keeps, as
events arrive, only those that raise their key's greatest progress, its *staircase* (see `kernels.resolve`), so memory
grows with the steps of the staircases and not with the events. Several threads work on chunks of rows, then on shards;
the kernels and Arrow release the GIL.

Needs the extra `tables` (`pip install '.[tables]'`): pyarrow and NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.errors import RejectedRowsWarning, SchemaError
from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.tables.calendar import Calendar
    from abeyant.tables.rejected import invalid_events, invalid_operations, rejected_events, rejected_operations
    from abeyant.tables.resolving import resolve, resolve_batches

__all__ = [
    "Calendar",
    "RejectedRowsWarning",
    "SchemaError",
    "invalid_events",
    "invalid_operations",
    "rejected_events",
    "rejected_operations",
    "resolve",
    "resolve_batches",
]

_HOMES: Final = {
    "Calendar": "calendar",
    "invalid_events": "rejected",
    "invalid_operations": "rejected",
    "rejected_events": "rejected",
    "rejected_operations": "rejected",
    "resolve": "resolving",
    "resolve_batches": "resolving",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES, "tables", ("pyarrow", "numpy"))
