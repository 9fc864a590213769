"""Resolve operations with any options to a table of outcomes, from the timelines (ordered events) of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.columns import Mask
from abeyant.tables.keys import Integers, PairHash
from abeyant.tables.part_outcomes import CANCELLED, COMPLETED, PENDING, By, PartResolver
from abeyant.tables.parts import Part, WatchedOperations
from abeyant.tables.rules import Role, Rules
from abeyant.tables.schemas import DETAILS, OUTCOMES
from abeyant.tables.sharded_timelines import Each, EventRows
from abeyant.tables.validity import Operations

__all__ = ["TimelineResolver", "resolve_by_timelines"]

_OUTCOMES: Final = ("completed", "cancelled", "expired", "pending")  # by number
_ROLES: Final[tuple[Role, Role]] = ("complete", "cancel")  # roles whose watch an outcome may name


def resolve_by_timelines(
    operations: Operations, events: Sequence[EventRows], rules: Rules, pairs: PairHash, each: Each[Any, Any]
) -> pa.Table:
    """Return the outcomes of valid operations, given all events.

    Raises `SchemaError` for columns and watches that contradict the options.
    """
    return TimelineResolver(operations, events, rules, pairs, each).outcomes()


class TimelineResolver:
    """A resolver of valid operations, which looks their keys' events up in timelines."""

    def __init__(
        self,
        operations: Operations,
        events: Sequence[EventRows],
        rules: Rules,
        pairs: PairHash,
        each: Each[Any, Any],
        *,
        levels: Sequence[EventRows] | None = None,
        unserved: Sequence[EventRows] | None = None,
    ) -> None:
        """Build timelines. `levels` are the events that may pause, `unserved` those that may serve (default: all)."""
        self._watched = WatchedOperations(operations, events, rules, pairs, each, levels=levels, unserved=unserved)
        self._table, self._start, self._rules, self._each = operations.table, operations.start, rules, each
        self.lacking = self.served = np.empty(0, np.int64)
        """Progress still required, and number of events that served, by operation. Set by `outcomes`, with `serves`."""
        self.unused: list[Integers] = []
        """Events of watched keys that served no operation, as rows; filled by `outcomes` if `unserved` is given."""
        self._keep_unused = unserved is not None

    def outcomes(self) -> pa.Table:
        """Return the outcomes in the order of the operations. Call it once."""
        rows = len(self._start)
        outcome, at, counted = np.empty(rows, np.int8), np.empty(rows, np.int64), np.empty(rows, np.int64)
        decisions: dict[Role, By] = {}
        if self._rules.details:
            for role in _ROLES:
                decisions[role] = By(np.empty(rows, np.int64), np.empty(rows, np.int64))
        if self._rules.serves != "every":
            self.lacking, self.served = np.empty(rows, np.int64), np.empty(rows, np.int64)

        def resolve(part: Part) -> None:
            resolver = PartResolver(part, keep_unused=self._keep_unused)
            ends = resolver.outcomes()
            outcome[part.rows], at[part.rows] = ends.outcome, ends.at
            for role, by in zip(_ROLES, (ends.completed_by, ends.cancelled_by), strict=True):
                if by is not None:
                    first = part.watches[role].first
                    decisions[role].watch[part.rows] = np.where(by.watch < 0, -1, by.watch + first)
                    decisions[role].at[part.rows] = by.at
            if ends.counted is not None:
                counted[part.rows] = ends.counted
            if ends.lacking is not None and ends.served is not None:
                self.lacking[part.rows], self.served[part.rows] = ends.lacking, ends.served
            self.unused += resolver.unused

        for _ in self._each(resolve, self._watched.parts()):
            pass
        never_ends = outcome == PENDING
        at[never_ends] = 0
        mask = never_ends if never_ends.any() else None
        columns: dict[str, Any] = {
            **{name: self._table[name].cast(pa.string()) for name in ("instance", "op_id", "kind")},
            "outcome": pa.DictionaryArray.from_arrays(pa.array(outcome), pa.array(_OUTCOMES)).cast(pa.string()),
            "at": pa.array(at, mask=mask).cast(pa.timestamp("us", "UTC")),
            "waited_ms": pa.array((at - self._start) / 1000, mask=mask),
        }
        if not self._rules.details:
            return pa.table(columns, OUTCOMES)
        columns["completed_by"] = self._struct("complete", decisions["complete"], outcome == COMPLETED)
        columns["cancelled_by"] = self._struct("cancel", decisions["cancel"], outcome == CANCELLED)
        columns["counted"] = pa.array(counted)
        return pa.table(columns, DETAILS)

    def _struct(self, role: Role, by: By, selected: Mask) -> pa.Array:
        """Return structs of the deciding watch's key and when it was met; null outside the mask `selected`."""
        selected &= by.watch >= 0
        fields = [DETAILS.field("completed_by").type.field(n) for n in range(2)]
        if not selected.any():
            return pa.nulls(len(selected), pa.struct(fields))
        watches, mask = self._watched.watches[role], None if selected.all() else ~selected
        if watches.one_each:
            key = watches.key if mask is None else pc.if_else(pa.array(selected), watches.key, None)
        else:
            rows, order = by.watch, self._watched.watch_rows[role]
            key = watches.key.take(pa.array(rows if isinstance(order, slice) else order[rows], mask=mask))
        at = pa.array(by.at, mask=mask).cast(pa.timestamp("us", "UTC"))
        nulls = None if mask is None else pa.array(mask)
        return pa.StructArray.from_arrays([key.combine_chunks(), at], fields=fields, mask=nulls)
