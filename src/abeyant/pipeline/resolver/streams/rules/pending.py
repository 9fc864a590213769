"""List the pending watches of a shard with options."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.resolver.streams.rules.step import RulesState
from abeyant.tables.columns import watches_of

__all__ = ["pending_by_rules"]


def pending_by_rules(state: RulesState, names: Sequence[str]) -> pa.RecordBatch:
    """Return a row for each watch that may complete a pending operation, with the columns `names`."""
    rows = state.operations
    watches = watches_of(pa.chunked_array([rows.column("watches")]))
    role = pa.nulls(len(watches.key), pa.string()) if watches.role is None else watches.role
    of = watches.operation()
    watched = rows.take(pa.array(of))
    columns = {name: watched.column(name) for name in ("instance", "op_id", "kind", "start", "deadline")}
    columns["key"] = watches.key.combine_chunks()
    columns["required"] = pc.coalesce(watched.column("lacking"), watches.required.combine_chunks())
    columns["combine"] = pa.array(np.zeros(len(of), np.int32))
    columns["reached"] = pa.array(np.zeros(len(of), np.bool_))
    completes = pc.equal(pc.fill_null(role, "complete"), "complete")
    table = pa.table([columns[name] for name in names], list(names)).filter(completes)
    return table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], table.schema)
