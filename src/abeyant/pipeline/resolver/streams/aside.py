"""Rows that have no part in any outcome, written aside whole: their table, the reason, and the row as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.resolver.reasons import DUPLICATE
from abeyant.pipeline.resolver.streams.clock import Clock
from abeyant.pipeline.resolver.streams.layout import SET_ASIDE

__all__ = ["LATE", "TIME_FORMAT", "duplicates_aside", "late_events_aside", "late_operations_aside", "torn_aside"]

LATE: Final = "late: "
"""How the reasons of rows that come too late begin."""

TIME_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""How Spark is to write a time in JSON, so that all look the same."""


def late_operations_aside(watches: pa.RecordBatch, clock: Clock) -> pa.RecordBatch:
    """Set operations aside that began before the watermark. Of one with several watches only the first makes a row."""
    return _operations_aside(watches, lambda row: _late("start", row["start"], clock))


def duplicates_aside(watches: pa.RecordBatch) -> pa.RecordBatch:
    """Set operations aside of whose id another row counts."""
    return _operations_aside(watches, lambda row: DUPLICATE)


def torn_aside(reports: pa.RecordBatch) -> pa.RecordBatch:
    """Set operations aside of which some watches counted for another row of the same id; given a report of each."""
    rows = reports.to_pylist()
    return _set_aside([("operations", f"{DUPLICATE}, with other watches", _shared(row)) for row in rows])


def late_events_aside(events: pa.RecordBatch, clock: Clock) -> pa.RecordBatch:
    """Set events aside that happened before the watermark."""
    rows = [("events", _late("at", row["at"], clock), _event(row)) for row in events.to_pylist()]
    return _set_aside(rows)


def _operations_aside(watches: pa.RecordBatch, reason: Callable[[dict[str, Any]], str]) -> pa.RecordBatch:
    first = watches.filter(pc.equal(watches.column("watch"), 0))
    return _set_aside([("operations", reason(row), _operation(row)) for row in first.to_pylist()])


def _set_aside(rows: list[tuple[str, str, dict[str, Any]]]) -> pa.RecordBatch:
    texts = [(table, reason, json.dumps(row, ensure_ascii=False, separators=(",", ":"))) for table, reason, row in rows]
    return pa.RecordBatch.from_pylist([dict(zip(SET_ASIDE.names, text, strict=True)) for text in texts], SET_ASIDE)


def _late(column: str, time_us: int, clock: Clock) -> str:
    if clock.ended:
        return f"{LATE}the input has ended"
    return f"{LATE}{column} {_time(time_us)} is before the watermark {_time(clock.watermark)}"


def _operation(watch: dict[str, Any]) -> dict[str, Any]:
    only = [{"key": watch["key"], "required": watch["required"]}]
    watches = only if watch["watches"] is None else json.loads(watch["watches"])
    return _shared(watch) | {"watches": watches}


def _shared(row: dict[str, Any]) -> dict[str, Any]:
    """What watches and reports know of their operation."""
    return {
        "instance": row["instance"],
        "op_id": row["op_id"],
        "kind": row["kind"],
        "start": _time(row["start"]),
        "timeout_ms": (row["deadline"] - row["start"]) // 1000,
        "condition": "any" if row["combine"] < 0 else "all",
    }


def _event(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "instance": event["instance"],
        "key": event["key"],
        "at": _time(event["at"]),
        "progress": event["progress"],
    }


def _time(time_us: int) -> str:
    return f"{np.datetime64(time_us, 'us')}Z"
