"""Process a shard's batch, and unpack the answers: the reduce side, in Spark's Python workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from abeyant.pipeline.resolver.streams.columns import column, filter_rows
from abeyant.pipeline.resolver.streams.combined import combined
from abeyant.pipeline.resolver.streams.layout import (
    EVENTS,
    OUTCOMES,
    REJECTED,
    REPORTS,
    STATUS,
    WATCHES,
    RowKind,
    joined,
    mark_from,
    pack_rows,
    unpack_rows,
)
from abeyant.pipeline.resolver.streams.options import Options
from abeyant.pipeline.resolver.streams.shard import BatchInput, process_batch
from abeyant.pipeline.resolver.streams.state import ShardState, decode_shard, encode_shard
from abeyant.pipeline.spark.chunks import freeze_imports

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

__all__ = ["answered", "ended_rows", "packed", "shards_turn", "unpack_input"]


def shards_turn(
    key: tuple[Any, ...], arrived_rows: Iterable[pd.DataFrame], state: GroupState, options: Options
) -> Iterator[pd.DataFrame]:
    """Process a shard's batch: update its state, and yield its output and status as `layout.PACKED`."""
    freeze_imports()
    shard = int(key[0])
    before = decode_shard(state.get[0], state.get[1], options) if state.exists else ShardState.first()
    arrived, invalid = unpack_input(arrived_rows, state, WATCHES, EVENTS)
    after, ended = process_batch(before, arrived, options)
    version, encoded = encode_shard(after, options)
    state.update((version, encoded))

    standing = {"pending": after.watches.num_rows, "watermark": after.clock.watermark, "state_bytes": len(encoded)}
    yield from ended_rows(shard, standing, ended.outcomes, [ended.rejected, *invalid])
    target = column(ended.reports, "operation") % options.shards
    for number in np.unique(target).tolist():
        yield packed(number, RowKind.REPORTS, filter_rows(ended.reports, target == number))


def unpack_input(
    rows: Iterable[pd.DataFrame], state: GroupState, watches: pa.Schema, events: pa.Schema
) -> tuple[BatchInput, list[pa.RecordBatch]]:
    """Unpack a shard's batch: its watches and events, of these schemas, and the rows that the map side rejected."""
    payloads = payloads_of((batch["what"], batch["payload"]) for batch in rows)
    arrived = BatchInput(
        [unpack_rows(payload, watches) for payload in payloads[RowKind.WATCHES]],
        [unpack_rows(payload, events) for payload in payloads[RowKind.EVENTS]],
        [mark_from(payload) for payload in payloads[RowKind.MARK]],
        state.getCurrentProcessingTimeMs() * 1000,
    )
    return arrived, [unpack_rows(payload, REJECTED) for payload in payloads[RowKind.REJECTED]]


def ended_rows(
    shard: int, standing: Mapping[str, int | None], outcomes: pa.RecordBatch, rejected: list[pa.RecordBatch]
) -> Iterator[pd.DataFrame]:
    """Yield a shard's status, outcomes and rejected rows as `layout.PACKED`."""
    yield packed(shard, RowKind.STATUS, pa.RecordBatch.from_pylist([standing], STATUS))
    for kind, rows in ((RowKind.OUTCOMES, outcomes), (RowKind.REJECTED, joined(rejected, REJECTED))):
        if rows.num_rows:
            yield packed(shard, kind, rows)


def answered(batches: Iterable[pa.RecordBatch], outcomes: pa.Schema = OUTCOMES) -> Iterator[pa.RecordBatch]:
    """Unpack a batch's `layout.PACKED` into answers. All reports of an operation must be in the same task.

    A row is an outcome, a rejected row, or a shard's status: columns of the other kinds are null.
    """
    freeze_imports()
    schema = pa.schema([*outcomes, *REJECTED, *STATUS])
    reports = []
    for batch in batches:
        payloads = payloads_of([(batch.column("what").to_pylist(), batch.column("payload").to_pylist())])
        for kind, rows in ((RowKind.OUTCOMES, outcomes), (RowKind.REJECTED, REJECTED), (RowKind.STATUS, STATUS)):
            for payload in payloads[kind]:
                yield _widened(unpack_rows(payload, rows), schema)
        reports += [unpack_rows(payload, REPORTS) for payload in payloads[RowKind.REPORTS]]
    for rows in combined(joined(reports, REPORTS)):
        if rows.num_rows:
            yield _widened(rows, schema)


def payloads_of(batches: Iterable[tuple[Iterable[int], Iterable[bytes]]]) -> dict[RowKind, list[bytes]]:
    """Group payloads by kind. `batches` has pairs of columns: kinds and payloads."""
    by_kind: dict[RowKind, list[bytes]] = defaultdict(list)
    for kinds, payloads in batches:
        for kind, payload in zip(kinds, payloads, strict=True):
            by_kind[RowKind(kind)].append(payload)
    return by_kind


def packed(shard: int, what: RowKind, rows: pa.RecordBatch) -> pd.DataFrame:
    """Pack rows into a single row of `layout.PACKED`."""
    return pd.DataFrame({"shard": [shard], "what": [int(what)], "payload": [pack_rows(rows).to_pybytes()]})


def _widened(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        rows.column(field.name) if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
