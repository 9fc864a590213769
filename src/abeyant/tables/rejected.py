"""The rows that `resolve` rejects, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.defaults import REJECT_REASON
from abeyant.tables.duplicates import id_hashes, repeated
from abeyant.tables.keys import PairHash
from abeyant.tables.reading import normalize_table, table_of
from abeyant.tables.reasons import DUPLICATE, EVENT_REASONS, reason_column
from abeyant.tables.schemas import EVENTS, OPERATIONS
from abeyant.tables.validity import VALID, event_reasons, read_operations
from abeyant.tables.words import ALL_CONDITIONS

__all__ = ["invalid_events", "invalid_operations", "rejected_events", "rejected_operations"]


def rejected_operations(operations: Any) -> pa.Table:
    """Return the operations that `resolve` rejects, in their order, with their own columns and a `reason`.

    The reasons: a number that is not whole, with its text; no `instance`, `op_id`, `start`, `timeout_ms` or `watches`;
    a watch without `key` or `required`; a negative `timeout_ms`; a deadline beyond the last timestamp; a `condition`
    other than `all`, `any` and `then` (null is `all`). Of several valid rows with one (instance, op_id) the first
    counts, by `start`, `timeout_ms` and the further columns; the others are duplicates. All other operations have an
    outcome. If the table has a column `reason`, ours is called `reason_2`.

    Raises as `resolve` does.
    """
    table = table_of(operations, OPERATIONS, "operations")
    read = read_operations(normalize_table(table, OPERATIONS), ALL_CONDITIONS)
    reason = read.reason.copy()
    hashes = id_hashes(read.table, read.valid, PairHash())
    twice = repeated(read.table, read.start, read.timeout, read.watches, read.valid, hashes)
    reason[twice] = len(read.reasons)
    return _rejected(table, read.table, reason, (*read.reasons, DUPLICATE))


def rejected_events(events: Any) -> pa.Table:
    """Return the events that `resolve` rejects, in their order, with their own columns and a `reason`: what is null.

    If the table has a column `reason`, ours is called `reason_2`. Raises as `resolve` does.
    """
    table = table_of(events, EVENTS, "events")
    read = normalize_table(table, EVENTS)
    return _rejected(table, read, event_reasons(read), EVENT_REASONS)


# Their former names
invalid_operations = rejected_operations
invalid_events = rejected_events


def _rejected(table: pa.Table, read: pa.Table, reason: npt.NDArray[np.int8], words: Sequence[str]) -> pa.Table:
    wrong = reason != VALID
    reasons = pa.array(words, pa.string()).take(pa.array(reason[wrong]))
    if REJECT_REASON in read.column_names:
        reasons = pc.coalesce(read[REJECT_REASON].filter(pa.array(wrong)), reasons)
    return table.filter(pa.array(wrong)).append_column(reason_column(table.column_names), reasons)
