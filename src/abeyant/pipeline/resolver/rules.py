"""Resolve operations with options in Spark's Python workers, by the code of `abeyant.tables`.

So outcomes are equal to those of `abeyant.tables.resolve` if a worker has all events of the keys that its operations
watch. Whole tables and streams share this module.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from abeyant.pipeline.schemas import OPERATIONS
from abeyant.tables import schemas as in_process
from abeyant.tables.by_timelines import resolve_by_timelines
from abeyant.tables.keys import Integers, PairHash
from abeyant.tables.normalizing import normalize
from abeyant.tables.roles import RoleWatches, spans, watches_by_role
from abeyant.tables.rules import ALL_CONDITIONS, ROLES, Rules
from abeyant.tables.sharded_timelines import EventRows
from abeyant.tables.validity import Operations, read_operations

__all__ = ["HashedWatches", "has_own_rules", "outcomes_of_rows", "read_batch"]


def has_own_rules(operations: StructType, rules: Rules) -> bool:
    """Return whether an option or a column needs `abeyant.tables`.

    `operations` is the schema of the columns that are read (`operations_schema`). So the condition `then`, which needs
    `abeyant.tables` too, is not noticed here.
    """
    return not rules.plain or operations.simpleString() != OPERATIONS.simpleString()


def read_batch(operations: pa.RecordBatch | pa.Table) -> Operations:
    """Return valid operations, read from Arrow rows of Spark with the columns of `operations_schema`."""
    batches = operations.to_batches() if isinstance(operations, pa.Table) else [operations]
    normalized = [normalize(batch, in_process.OPERATIONS) for batch in batches]
    return read_operations(pa.Table.from_batches(normalized), ALL_CONDITIONS)


class HashedWatches:
    """The watches of some operations by role, with the hashes of their keys."""

    def __init__(self, operations: Operations, pairs: PairHash) -> None:
        instance = operations.table["instance"]
        watches = watches_by_role(operations)
        hashes = [self._hashes(instance, watches[role], pairs) for role in ROLES]
        self._by_role = [(watches[role].operation, places) for role, (places, _) in zip(ROLES, hashes, strict=True)]
        self.operation = np.concatenate([operation for operation, _ in self._by_role])
        self.places, self.identities = (np.concatenate([pair[n] for pair in hashes]) for n in range(2))

    @staticmethod
    def _hashes(instance: pa.ChunkedArray, watches: RoleWatches, pairs: PairHash) -> tuple[Integers, Integers]:
        places, identities = pairs(instance.take(pa.array(watches.operation)), watches.key)
        return places.copy(), identities.copy()

    def homes(self, rows: int) -> Integers:
        """Return each operation's home: the hash that decides to which worker it goes, with all events of its keys.

        It is the place of the operation's first `complete` watch, or else of another watch. So if an event serves one
        operation, all operations that it may serve have the same home.
        """
        homes = np.empty(rows, np.int64)
        for operation, places in reversed(self._by_role):
            operations, first = spans(operation)
            homes[operations] = places[first]
        return homes


def outcomes_of_rows(operations: Operations, rows: Sequence[Integers], rules: Rules, pairs: PairHash) -> pa.Table:
    """Return the outcomes of operations, given rows (place, identity, progress, at) of all events of their keys.

    Raises `SchemaError` for columns and watches that contradict the options.
    """
    columns = [np.ascontiguousarray(array.T) for array in rows]
    events = [EventRows.of(*array) for array in columns]
    return resolve_by_timelines(operations, events, rules, pairs, map)
