"""Rows of traces as Arrow tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from pipeline.resolve_traces import Event, Op

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_US: Final = int(EPOCH.timestamp()) * 1_000_000

TIME = pa.timestamp("us", "UTC")
WATCHES = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64())]))
ARROW_OPERATIONS: Final = pa.schema(
    [
        ("instance", pa.string()),
        ("op_id", pa.string()),
        ("kind", pa.string()),
        ("start", TIME),
        ("timeout_ms", pa.int64()),
        ("watches", WATCHES),
        ("condition", pa.string()),
    ]
)
ARROW_EVENTS: Final = pa.schema(
    [("instance", pa.string()), ("key", pa.string()), ("at", TIME), ("progress", pa.int64())]
)


def operation_row(op: Op, instance: str = "i") -> dict[str, Any]:
    """Return the row of an operation."""
    return {
        "instance": instance,
        "op_id": op.op_id,
        "kind": "TEST",
        "start": EPOCH_US + op.start,
        "timeout_ms": op.timeout_ms,
        "watches": [watch._asdict() for watch in op.watches],
        "condition": op.condition,
    }


def event_row(event: Event, instance: str = "i") -> dict[str, Any]:
    """Return the row of an event."""
    return {"instance": instance, "key": event.key, "at": EPOCH_US + event.at, "progress": event.progress}
