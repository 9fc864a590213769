"""Check each row, and find the reason to reject it, if any. The reasons are the same as on Spark: see `reasons`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.columns import Mask, Watches, flags, integers, microseconds, missing, watches_of
from abeyant.tables.defaults import REJECT_REASON
from abeyant.tables.keys import Integers
from abeyant.tables.reasons import operation_reasons
from abeyant.tables.rules import CONDITIONS, ROLES
from abeyant.tables.schemas import EVENTS

__all__ = [
    "VALID",
    "Operations",
    "event_reasons",
    "first_true",
    "read_operations",
    "valid_events",
    "valid_operations",
]

VALID: Final = -1
_MOST: Final = 2**63 - 1


class Operations(NamedTuple):
    """Operations as columns of integers, with the reason to reject each row, if any."""

    table: pa.Table
    start: Integers  # microseconds since 1970
    timeout: Integers  # as in the table: `timeout_ms`, `timeout` in microseconds, or `deadline`
    deadline: Integers  # microseconds since 1970; undefined for rejected rows
    watches: Watches
    reason: npt.NDArray[np.int8]  # index in `reasons`, or -1 for valid rows
    reasons: tuple[str, ...]

    @property
    def valid(self) -> Mask:
        """Return a mask of the valid rows, duplicate ids included."""
        return np.asarray(self.reason == VALID)

    def select(self, kept: Mask) -> Operations:
        """Return the operations in the mask `kept`."""
        return Operations(
            self.table.filter(pa.array(kept)),
            self.start[kept],
            self.timeout[kept],
            self.deadline[kept],
            self.watches.select(kept),
            self.reason[kept],
            self.reasons,
        )

    def only_valid(self) -> Operations:
        """Return the valid rows, duplicate ids included; return self if all rows are valid."""
        return self if self.valid.all() else self.select(self.valid)


def read_operations(table: pa.Table, conditions: Sequence[str] = CONDITIONS) -> Operations:
    """Read the operations of a normalized table, check every row. Raises `AbeyantError` for a number beyond 64 bits."""
    start = microseconds(table["start"], "operations: start")
    name, timeout, deadline, negative, beyond = _time_of(table, start)
    watches = watches_of(table["watches"])
    operation = watches.operation()

    def lacks(column: pa.ChunkedArray) -> Mask:
        mask = np.zeros(table.num_rows, np.bool_)
        mask[operation[missing(column)]] = True
        return mask

    condition = table["condition"].cast(pa.string())
    known = pc.is_in(condition, value_set=pa.array([*conditions, None]))
    holds = (
        *(missing(table[column]) for column in ("instance", "op_id", "start", name)),
        negative,
        beyond,
        watches.counts == 0,
        lacks(watches.key),
        lacks(watches.required),
        ~flags(known),
        *_roles_wrong(watches, operation, table),
    )
    return Operations(
        table, start, timeout, deadline, watches, first_true(holds, table.num_rows), operation_reasons(name)
    )


def valid_operations(table: pa.Table, conditions: Sequence[str] = CONDITIONS) -> Operations:
    """Return the valid operations, duplicate ids included. Raises as `read_operations`."""
    return read_operations(table, conditions).only_valid()


def valid_events(table: pa.Table) -> pa.Table:
    """Return the events without nulls."""
    lacking = event_reasons(table) != VALID
    return table.filter(pa.array(~lacking)) if lacking.any() else table


def event_reasons(table: pa.Table) -> npt.NDArray[np.int8]:
    """Return for each event the index in `EVENT_REASONS` of the reason to reject it, or -1."""
    return first_true([missing(table[name]) for name in EVENTS], table.num_rows)


def _time_of(table: pa.Table, start: Integers) -> tuple[str, Integers, Integers, Mask, Mask]:
    """Return the time limit's column, its values, the deadlines, and masks: negative limit, deadline beyond 64 bits."""
    if "deadline" in table.column_names:
        deadline = microseconds(table["deadline"], "operations: deadline")
        return "deadline", deadline, deadline, deadline < start, np.zeros(len(start), np.bool_)
    name = "timeout" if "timeout" in table.column_names else "timeout_ms"
    unit = 1 if name == "timeout" else 1000
    timeout = integers(table[name], f"operations: {name}")
    too_long = timeout > _MOST // unit
    micros = np.where(too_long, 0, timeout) * unit
    beyond = too_long | (micros > _MOST - np.maximum(start, 0))
    return name, timeout, start + micros, timeout < 0, beyond


def _roles_wrong(watches: Watches, operation: Integers, table: pa.Table) -> list[Mask]:
    """Return for each of `reasons.ROLE_REASONS` a mask of the rows to reject for it."""
    unknown, completes, pauses = (np.zeros(table.num_rows, kind) for kind in (np.bool_, np.int64, np.int64))
    if watches.role is None:
        completes += watches.counts
    else:
        role = watches.role.fill_null("complete")
        unknown[operation[~flags(pc.is_in(role, value_set=pa.array(ROLES)))]] = True
        np.add.at(completes, operation[flags(pc.equal(role, "complete"))], 1)
        np.add.at(pauses, operation[flags(pc.equal(role, "pause"))], 1)
    if "pause_key" in table.column_names:
        pauses += ~missing(table["pause_key"])
    unread = np.zeros(table.num_rows, np.bool_)
    if REJECT_REASON in table.column_names:
        unread = ~missing(table[REJECT_REASON])
    return [unknown, pauses > 1, unread]


def first_true(holds: Sequence[Mask], rows: int) -> npt.NDArray[np.int8]:
    """Return for each row the index of the first mask that is true, or -1."""
    first = np.full(rows, VALID, np.int8)
    for number in range(len(holds) - 1, -1, -1):
        first[holds[number]] = number
    return first
