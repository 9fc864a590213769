"""Which rows can be resolved, and why the others cannot. The same as on Spark: see `reasons`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.columns import Mask, Watches, flags, integers, microseconds, missing, watches_of
from abeyant.tables.keys import Integers
from abeyant.tables.schemas import EVENTS

__all__ = ["VALID", "Operations", "first_that_holds", "read_operations", "valid_events", "valid_operations"]

VALID: Final = -1
_MOST: Final = 2**63 - 1


class Operations(NamedTuple):
    """What is looked at of some operations, row by row, and why a row cannot be resolved."""

    table: pa.Table
    start: Integers  # microseconds since 1970
    timeout_ms: Integers
    watches: Watches
    reason: npt.NDArray[np.int8]  # its number in OPERATION_REASONS, or -1

    @property
    def valid(self) -> Mask:
        """Which rows can be resolved, as far as one row tells."""
        return np.asarray(self.reason == VALID)

    @property
    def deadline(self) -> Integers:
        """The end of each operation's time, where it is valid."""
        return self.start + self.timeout_ms * 1000

    def select(self, kept: Mask) -> Operations:
        """Return the rows that are kept."""
        return Operations(
            self.table.filter(pa.array(kept)),
            self.start[kept],
            self.timeout_ms[kept],
            self.watches.select(kept),
            self.reason[kept],
        )


def read_operations(table: pa.Table) -> Operations:
    """Look at every row. Raises `AbeyantError` for a number beyond 64 bits."""
    start = microseconds(table["start"], "operations: start")
    timeout_ms = integers(table["timeout_ms"], "operations: timeout_ms")
    watches = watches_of(table["watches"])
    operation = watches.operation()

    def lacks(column: pa.ChunkedArray) -> Mask:
        found = np.zeros(table.num_rows, np.bool_)
        found[operation[missing(column)]] = True
        return found

    condition = table["condition"].cast(pa.string())
    known = pc.is_in(condition, value_set=pa.array(["all", "any", None]))
    holds = (
        *(missing(table[name]) for name in ("instance", "op_id", "start", "timeout_ms")),
        timeout_ms < 0,
        _beyond(start, timeout_ms),
        watches.counts == 0,
        lacks(watches.key),
        lacks(watches.required),
        ~flags(known),
    )
    return Operations(table, start, timeout_ms, watches, first_that_holds(holds, table.num_rows))


def valid_operations(table: pa.Table) -> Operations:
    """Return the operations that can be resolved, as far as one row tells. Raises as `read_operations`."""
    operations = read_operations(table)
    return operations if operations.valid.all() else operations.select(operations.valid)


def valid_events(table: pa.Table) -> pa.Table:
    """Return the events that have every column."""
    lacking = np.logical_or.reduce([missing(table[name]) for name in EVENTS])
    return table.filter(pa.array(~lacking)) if lacking.any() else table


def _beyond(start: Integers, timeout_ms: Integers) -> Mask:
    """Whether the deadline does not fit 64 bits, of time-outs that are not negative."""
    too_long = timeout_ms > _MOST // 1000
    rest = _MOST - np.maximum(start, 0)
    return too_long | (np.where(too_long, 0, timeout_ms) * 1000 > rest)


def first_that_holds(holds: Sequence[Mask], rows: int) -> npt.NDArray[np.int8]:
    """Return for each row the number of the first that holds, or -1."""
    first = np.full(rows, VALID, np.int8)
    for number in range(len(holds) - 1, -1, -1):
        first[holds[number]] = number
    return first
