"""Group the watches of operations by role: complete, cancel, extend, pause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.columns import integers, missing
from abeyant.tables.keys import Integers
from abeyant.tables.rules import ROLES, Role
from abeyant.tables.validity import Operations

__all__ = ["ROLE_COLUMNS", "RoleWatches", "spans", "watches_by_role"]

ROLE_COLUMNS = {role: f"{role}_key" for role in ROLES[1:]}


class RoleWatches(NamedTuple):
    """The watches of one role, sorted by operation, and within an operation in the order of its list."""

    operation: Integers  # row of each watch's operation
    key: pa.ChunkedArray
    required: Integers
    one_each: bool  # whether `operation` is 0, 1, 2, ...: one watch per operation


def spans(operation: Integers) -> tuple[Integers, Integers]:
    """Return the distinct operations of a sorted column, and where the rows of each begin. O(rows)."""
    first = np.flatnonzero(np.concatenate(([True], operation[1:] != operation[:-1]))[: len(operation)])
    return operation[first], first


def watches_by_role(operations: Operations) -> dict[Role, RoleWatches]:
    """Return the watches of valid operations by role; watches from columns such as `cancel_key` follow the list's."""
    watches, table = operations.watches, operations.table
    single, operation, required = (
        watches.single,
        watches.operation(),
        integers(watches.required, "operations: required"),
    )
    by_role: dict[Role, list[RoleWatches]] = {role: [] for role in ROLES}
    if watches.role is None:
        by_role["complete"].append(RoleWatches(operation, watches.key.cast(pa.string()), required, single))
    else:
        numbers = pc.index_in(watches.role.fill_null(ROLES[0]), value_set=pa.array(ROLES))
        role_of = integers(numbers, "operations: role")
        for number, role in enumerate(ROLES):
            rows = np.flatnonzero(role_of == number)
            key = watches.key.take(pa.array(rows)).cast(pa.string())
            by_role[role].append(
                RoleWatches(operation[rows], key, required[rows], single and len(rows) == len(operation))
            )
    for role, name in ROLE_COLUMNS.items():
        if name in table.column_names:
            column = table[name].cast(pa.string())
            rows = np.flatnonzero(~missing(column))
            every = len(rows) == len(column)
            key = column if every else column.take(pa.array(rows))
            by_role[role].append(RoleWatches(rows, key, np.ones(len(rows), np.int64), every))
    return {role: _merge(parts) for role, parts in by_role.items()}


def _merge(parts: Sequence[RoleWatches]) -> RoleWatches:
    """Merge watches from several columns, sorted by operation."""
    if len(parts) == 1:
        return parts[0]
    operation, required = (np.concatenate([np.empty(0, np.int64), *(part[n] for part in parts)]) for n in (0, 2))
    key = pa.chunked_array([chunk for part in parts for chunk in part.key.chunks], pa.string())
    order = np.argsort(operation, kind="stable")
    return RoleWatches(operation[order], key.take(pa.array(order)), required[order], one_each=False)
