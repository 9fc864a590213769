"""Make rows for what a shard rejects: the table of the rejected row, the reason, and the row as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.resolver.rejected import DUPLICATE, LATE
from abeyant.pipeline.resolver.streams.clock import Clock
from abeyant.pipeline.resolver.streams.layout import REJECTED

__all__ = [
    "late_reason",
    "reject_duplicates",
    "reject_late_events",
    "reject_late_operations",
    "reject_torn",
    "rejected_rows",
    "time_text",
]


def reject_late_operations(watches: pa.RecordBatch, clock: Clock) -> pa.RecordBatch:
    """Reject operations that began before the watermark: one row each, however many watches."""
    return _reject_operations(watches, lambda row: late_reason("start", row["start"], clock))


def reject_duplicates(watches: pa.RecordBatch) -> pa.RecordBatch:
    """Reject operations whose id another row already holds."""
    return _reject_operations(watches, lambda row: DUPLICATE)


def reject_torn(reports: pa.RecordBatch) -> pa.RecordBatch:
    """Reject operations with missing watches, which lost to another row of the same id; `reports` has one of each."""
    rows = reports.to_pylist()
    return rejected_rows([("operations", f"{DUPLICATE}, with other watches", _shared(row)) for row in rows])


def reject_late_events(events: pa.RecordBatch, clock: Clock) -> pa.RecordBatch:
    """Reject events that happened before the watermark."""
    rows = [("events", late_reason("at", row["at"], clock), _event(row)) for row in events.to_pylist()]
    return rejected_rows(rows)


def _reject_operations(watches: pa.RecordBatch, reason: Callable[[dict[str, Any]], str]) -> pa.RecordBatch:
    first = watches.filter(pc.equal(watches.column("watch"), 0))
    return rejected_rows([("operations", reason(row), _operation(row)) for row in first.to_pylist()])


def rejected_rows(rows: list[tuple[str, str, dict[str, Any]]]) -> pa.RecordBatch:
    """Return rows of (table, reason, row) as `layout.REJECTED`."""
    texts = [(table, reason, json.dumps(row, ensure_ascii=False, separators=(",", ":"))) for table, reason, row in rows]
    return pa.RecordBatch.from_pylist([dict(zip(REJECTED.names, text, strict=True)) for text in texts], REJECTED)


def late_reason(column: str, time_us: int, clock: Clock) -> str:
    """Return the reason for a late row: its time, in `column`, and the watermark, or the end of input."""
    if clock.ended:
        return f"{LATE}the input has ended"
    return f"{LATE}{column} {time_text(time_us)} is before the watermark {time_text(clock.watermark)}"


def _operation(watch: dict[str, Any]) -> dict[str, Any]:
    only = [{"key": watch["key"], "required": watch["required"]}]
    watches = only if watch["watches"] is None else json.loads(watch["watches"])
    return _shared(watch) | {"watches": watches}


def _shared(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an operation that rows of watches and of reports have in common."""
    return {
        "instance": row["instance"],
        "op_id": row["op_id"],
        "kind": row["kind"],
        "start": time_text(row["start"]),
        "timeout_ms": (row["deadline"] - row["start"]) // 1000,
        "condition": "any" if row["combine"] < 0 else "all",
    }


def _event(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "instance": event["instance"],
        "key": event["key"],
        "at": time_text(event["at"]),
        "progress": event["progress"],
    }


def time_text(time_us: int) -> str:
    """Return a time in microseconds as text, in the format of the JSON of rejected rows."""
    return f"{np.datetime64(time_us, 'us')}Z"
