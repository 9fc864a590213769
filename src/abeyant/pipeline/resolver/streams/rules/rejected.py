"""Make the rejected operations of a stream with options. See `streams.rejected`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from abeyant.pipeline.resolver.rejected import DUPLICATE
from abeyant.pipeline.resolver.streams.clock import Clock
from abeyant.pipeline.resolver.streams.rejected import late_reason, rejected_rows, time_text
from abeyant.pipeline.resolver.streams.rules.layout import Columns

__all__ = ["reject_duplicates", "reject_late_operations", "reject_operations"]


def reject_late_operations(operations: pa.RecordBatch, clock: Clock, columns: Columns) -> pa.RecordBatch:
    """Reject operations that began before the watermark."""
    return _reject(operations, lambda row: late_reason("start", row["start"], clock), columns)


def reject_duplicates(operations: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """Reject operations whose id another row already holds."""
    return reject_operations(operations, DUPLICATE, columns)


def reject_operations(operations: pa.RecordBatch, why: str, columns: Columns) -> pa.RecordBatch:
    """Reject operations, all for the reason `why`."""
    return _reject(operations, lambda row: why, columns)


def _reject(operations: pa.RecordBatch, reason: Callable[[dict[str, Any]], str], columns: Columns) -> pa.RecordBatch:
    rows = operations.to_pylist()
    return rejected_rows([("operations", reason(row), _operation(row, columns)) for row in rows])


def _operation(row: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return an operation for the JSON, from its row in the state: durations in milliseconds, watches with roles."""
    operation = {name: row[name] for name in ("instance", "op_id", "kind")} | {"start": time_text(row["start"])}
    if columns.deadline:
        operation["deadline"] = time_text(row["deadline"])
    else:
        operation["timeout_ms"] = _milliseconds(row["deadline"] - row["start"])
    if row["extend"] is not None:
        operation["extend_ms"] = _milliseconds(row["extend"])
    return operation | {"condition": row["condition"], "watches": row["watches"]}


def _milliseconds(micros: int) -> float:
    return micros / 1000 if micros % 1000 else micros // 1000
