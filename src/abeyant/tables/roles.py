"""The watches of operations by what they do: complete, cancel, extend, pause."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.columns import integers, missing
from abeyant.tables.keys import Integers
from abeyant.tables.validity import Operations
from abeyant.tables.words import ROLES, Role

__all__ = ["RoleWatches", "has_roles", "spans", "watches_by_role"]

_ROLE_COLUMNS = {role: f"{role}_key" for role in ROLES[1:]}


class RoleWatches(NamedTuple):
    """The watches of one role, by operation, and in the order of its list."""

    operation: Integers  # the row of each
    key: pa.ChunkedArray
    required: Integers


def spans(operation: Integers) -> tuple[Integers, Integers]:
    """Return which operations a sorted column names, and where the rows of each begin. O(rows)."""
    first = np.flatnonzero(np.concatenate(([True], operation[1:] != operation[:-1]))[: len(operation)])
    return operation[first], first


def has_roles(operations: Operations) -> bool:
    """Return whether any watch may do something else than complete."""
    return operations.watches.role is not None or any(
        name in operations.table.column_names for name in _ROLE_COLUMNS.values()
    )


def watches_by_role(operations: Operations) -> dict[Role, RoleWatches]:
    """Return the watches of valid operations; those of a column such as `cancel_key` follow those of the list."""
    watches, table = operations.watches, operations.table
    if not has_roles(operations):
        required = integers(watches.required, "operations: required")
        none = np.empty(0, np.int64)
        nothing = RoleWatches(none, pa.chunked_array([], pa.string()), none)
        key = watches.key.cast(pa.string())
        return {ROLES[0]: RoleWatches(watches.operation(), key, required), **dict.fromkeys(ROLES[1:], nothing)}
    roles = np.zeros(len(watches.key), np.int64)
    if watches.role is not None:
        numbers = pc.index_in(watches.role.fill_null(ROLES[0]), value_set=pa.array(ROLES))
        roles = integers(numbers, "operations: role")
    columns = [(watches.operation(), watches.key, integers(watches.required, "operations: required"), roles)]
    for role, name in _ROLE_COLUMNS.items():
        if name in table.column_names:
            rows = np.flatnonzero(~missing(table[name]))
            needed, role_of = np.ones(len(rows), np.int64), np.full(len(rows), ROLES.index(role))
            columns.append((rows, table[name].take(pa.array(rows)), needed, role_of))
    operation, required, role_of = (np.concatenate([column[n] for column in columns]) for n in (0, 2, 3))
    key = pa.chunked_array([chunk for column in columns for chunk in column[1].cast(pa.string()).chunks], pa.string())
    found: dict[Role, RoleWatches] = {}
    for number, role in enumerate(ROLES):
        rows = np.flatnonzero(role_of == number)
        rows = rows[np.argsort(operation[rows], kind="stable")]
        found[role] = RoleWatches(operation[rows], key.take(pa.array(rows)), required[rows])
    return found
