"""Read rows and process a shard's batch in Spark's Python workers, for a stream with options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.resolver.rules import read_batch
from abeyant.pipeline.resolver.streams.columns import column, filter_rows
from abeyant.pipeline.resolver.streams.layout import REJECTED, as_schema, joined
from abeyant.pipeline.resolver.streams.map_side import Read
from abeyant.pipeline.resolver.streams.options import Options
from abeyant.pipeline.resolver.streams.rules.layout import EVENTS, WAITS
from abeyant.pipeline.resolver.streams.rules.rejected import reject_operations
from abeyant.pipeline.resolver.streams.rules.state import decode_rules, encode_rules
from abeyant.pipeline.resolver.streams.rules.step import RulesState, process_batch
from abeyant.pipeline.resolver.streams.stages import ended_rows, unpack_input
from abeyant.pipeline.spark.chunks import freeze_imports
from abeyant.tables.columns import flags, integers, missing
from abeyant.tables.contradictions import contradictions
from abeyant.tables.roles import watches_by_role
from abeyant.tables.rules import ROLES
from abeyant.tables.validity import Operations

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

__all__ = ["read_events", "read_operations", "turn"]

_PAUSED = "has a watch with role 'pause', which a column deadline excludes: a deadline is a fixed instant"


def read_events(valid: pa.RecordBatch) -> Read:
    """Convert valid events to the rows that are sent to shards."""
    rows = as_schema(valid.select(EVENTS.names), EVENTS)
    return Read(rows, column(valid, "place"), joined([], REJECTED))


def read_operations(valid: pa.RecordBatch, options: Options) -> Read:
    """Convert valid operations to the rows that are sent to shards; reject operations that contradict the options."""
    columns = options.columns
    assert columns is not None
    operations = read_batch(valid)
    rows, places = _waits(operations), column(valid, "place")
    by_role = watches_by_role(operations)
    then = flags(pc.equal(operations.table["condition"].cast(pa.string()), "then"))
    wrong = contradictions(by_role, then, options.rules)
    if columns.deadline:
        paused = np.zeros(len(then), np.bool_)
        paused[by_role["pause"].operation] = True
        wrong.append((paused, _PAUSED))
    fine, rejected = np.ones(len(then), np.bool_), []
    for mask, reason in wrong:
        if (mask & fine).any():
            rejected.append(reject_operations(filter_rows(rows, mask & fine), reason, columns))
            fine &= ~mask
    return Read(filter_rows(rows, fine), places[fine], joined(rejected, REJECTED))


def _waits(operations: Operations) -> pa.RecordBatch:
    """Return operations as rows of `layout.WAITS`.

    The watches of an operation, from its list and from columns such as `cancel_key`, are sorted by role.
    """
    by_role = watches_by_role(operations)
    operation = np.concatenate([by_role[role].operation for role in ROLES])
    roles = np.repeat(np.arange(len(ROLES)), [len(by_role[role].operation) for role in ROLES])
    order = np.argsort(operation, kind="stable")
    keys = pa.chunked_array([chunk for role in ROLES for chunk in by_role[role].key.chunks], pa.string())
    required = np.concatenate([by_role[role].required for role in ROLES])
    watches = pa.StructArray.from_arrays(
        [
            keys.take(pa.array(order)).combine_chunks(),
            pa.array(required[order]),
            pa.array(ROLES).take(pa.array(roles[order])),
        ],
        ["key", "required", "role"],
    )
    rows = len(operations.start)
    ends = np.cumsum(np.bincount(operation, minlength=rows))
    table = operations.table
    extend = pa.nulls(rows, pa.int64())
    for name, unit in (("extend_ms", 1000), ("extend", 1)):
        if name in table.column_names:
            most = (2**63 - 2) // unit
            values = np.minimum(integers(table[name], f"operations: {name}"), most) * unit
            extend = pa.array(values, mask=missing(table[name]))
            break
    texts = [table[name].cast(pa.string()).combine_chunks() for name in ("instance", "op_id", "kind", "condition")]
    lists = pa.ListArray.from_arrays(pa.array(np.append(0, ends).astype(np.int32)), watches)
    columns = [
        *texts,
        pa.array(operations.start),
        pa.array(operations.deadline),
        extend,
        lists,
        pa.nulls(rows, pa.int64()),
        pa.array(np.zeros(rows, np.int64)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=WAITS)


def turn(
    key: tuple[Any, ...], arrived_rows: Iterable[pd.DataFrame], state: GroupState, options: Options
) -> Iterator[pd.DataFrame]:
    """Process a shard's batch as `streams.stages.shards_turn` does, with options."""
    freeze_imports()
    shard = int(key[0])
    before = decode_rules(state.get[0], state.get[1], options) if state.exists else RulesState.first()
    arrived, invalid = unpack_input(arrived_rows, state, WAITS, EVENTS)
    after, ended = process_batch(before, arrived, options)
    version, encoded = encode_rules(after, options)
    state.update((version, encoded))

    pending = len(pc.list_flatten(after.operations.column("watches")))
    standing = {"pending": pending, "watermark": after.clock.watermark, "state_bytes": len(encoded)}
    yield from ended_rows(shard, standing, ended.outcomes, [ended.rejected, *invalid])
