"""Return the rows that `resolve` rejects, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.defaults import REJECT_REASON
from abeyant.tables.duplicates import id_hashes, repeated
from abeyant.tables.keys import PairHash
from abeyant.tables.reading import normalize_table, table_of
from abeyant.tables.reasons import DUPLICATE, EVENT_REASONS, reason_column
from abeyant.tables.rules import ALL_CONDITIONS
from abeyant.tables.schemas import EVENTS, OPERATIONS
from abeyant.tables.validity import VALID, event_reasons, read_operations

__all__ = ["invalid_events", "invalid_operations", "rejected_events", "rejected_operations", "rejected_rows"]


def rejected_operations(operations: Any) -> pa.Table:
    """Return the operations that `resolve` rejects, in their order, with their own columns and a `reason`.

    The reasons: a number that is not whole or a text that is not a duration, with its text; no `instance`, `op_id`,
    `start`, `timeout_ms` (or `timeout` or `deadline`) or `watches`; a watch without `key` or `required`; a negative
    `timeout_ms`, a `deadline` before `start`; a deadline beyond the last timestamp; a `condition` other than `all`,
    `any` and `then` (null is `all`); a watch with an unknown role; several watches that pause. Several valid rows with
    the same (instance, op_id) are sorted by `start`, `timeout_ms` and the further columns; all but the first are
    duplicates. All other operations have an outcome. If the table has a column `reason`, ours is called `reason_2`.

    Raises as `resolve` does.
    """
    table = table_of(operations, OPERATIONS, "operations")
    return _rejected_operations(table, normalize_table(table, OPERATIONS))


def rejected_events(events: Any) -> pa.Table:
    """Return the events that `resolve` rejects, in their order, with their own columns and a `reason`.

    The reasons: a `progress` that is not a whole number, with its text; no `instance`, `key`, `at` or `progress`.

    If the table has a column `reason`, ours is called `reason_2`. Raises as `resolve` does.
    """
    table = table_of(events, EVENTS, "events")
    return _rejected_events(table, normalize_table(table, EVENTS))


def rejected_rows(normalized: pa.Table, name: Literal["operations", "events"]) -> pa.Table:
    """Return the rejected rows of a normalized table, each with its reason; values stay as normalized."""
    table = normalized.drop_columns(REJECT_REASON) if REJECT_REASON in normalized.column_names else normalized
    return (_rejected_operations if name == "operations" else _rejected_events)(table, normalized)


# Their former names
invalid_operations = rejected_operations
invalid_events = rejected_events


def _rejected_operations(table: pa.Table, normalized: pa.Table) -> pa.Table:
    operations = read_operations(normalized, ALL_CONDITIONS)
    reason = operations.reason.copy()
    hashes = id_hashes(operations.table, operations.valid, PairHash())
    duplicates = repeated(
        operations.table, operations.start, operations.timeout, operations.watches, operations.valid, hashes
    )
    reason[duplicates] = len(operations.reasons)
    return _rejected(table, operations.table, reason, (*operations.reasons, DUPLICATE))


def _rejected_events(table: pa.Table, normalized: pa.Table) -> pa.Table:
    return _rejected(table, normalized, event_reasons(normalized), EVENT_REASONS)


def _rejected(table: pa.Table, normalized: pa.Table, reason: npt.NDArray[np.int8], rules: Sequence[str]) -> pa.Table:
    mask = reason != VALID
    reasons = pa.array(rules, pa.string()).take(pa.array(reason[mask]))
    if REJECT_REASON in normalized.column_names:
        reasons = pc.coalesce(normalized[REJECT_REASON].filter(pa.array(mask)), reasons)
    return table.filter(pa.array(mask)).append_column(reason_column(table.column_names), reasons)
