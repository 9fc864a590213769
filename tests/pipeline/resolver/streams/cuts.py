"""Traces as streams: rows in an order of arrival that is out of order by a bounded time, cut into micro-batches.

And the same stream through all that runs in Spark's workers, in this process: rows packed by tasks, shards' turns with
their state written and read, reports brought together. RowKind Spark adds is in `test_stream`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from abeyant.pipeline.resolver.streams.clock import Clock
from abeyant.pipeline.resolver.streams.columns import column, filter_rows
from abeyant.pipeline.resolver.streams.combined import combined
from abeyant.pipeline.resolver.streams.layout import EVENTS, REPORTS, WATCHES, RowKind, joined, mark_from, unpack_rows
from abeyant.pipeline.resolver.streams.map_side import pack, pack_marks
from abeyant.pipeline.resolver.streams.options import Options, checked
from abeyant.pipeline.resolver.streams.shard import BatchInput, process_batch
from abeyant.pipeline.resolver.streams.state import ShardState, decode_shard, encode_shard
from abeyant.tables.rules import Rules
from pipeline.resolve_traces import Event, Op, Outcomes, Trace

ASIDE = [pa.field("reason", pa.string()), pa.field("row", pa.string())]


def how(**other: Any) -> Options:
    """Options for tests: no clock, nothing may be out of order."""
    rules = Rules(deadline=other.pop("deadline", "inclusive"))
    plain: dict[str, Any] = {"lateness": 0.0, "time": "event", "tick": None}
    return checked(rules, **plain | {"forget_after": None, "shards": 3} | other)


@dataclass(frozen=True)
class Batch:
    operations: Sequence[tuple[str, Op]] = ()
    events: Sequence[tuple[str, Event]] = ()
    wall: int = 0
    end: bool = False


def cut(traces: Sequence[Trace], dice: random.Random, *, batches: int, disorder_us: int) -> list[Batch]:
    """All traces in one stream, each an instance; each table is cut by itself. The last batch is the end."""
    operations = [(f"t{n}", op) for n, trace in enumerate(traces) for op in trace.operations]
    events = [(f"t{n}", event) for n, trace in enumerate(traces) for event in trace.events]
    operations = _arriving([(op.start, (instance, op)) for instance, op in operations], dice, disorder_us)
    events = _arriving([(event.at, (instance, event)) for instance, event in events], dice, disorder_us)
    slices = zip(_sliced(operations, dice, batches), _sliced(events, dice, batches), strict=True)
    return [*(Batch(some, others) for some, others in slices), Batch(end=True)]


def _arriving(rows: list[tuple[int, Any]], dice: random.Random, disorder_us: int) -> list[Any]:
    """A row comes at most so much later than its time; rows of one time in any order."""
    return [row for _, _, row in sorted((at + dice.randint(0, disorder_us), dice.random(), row) for at, row in rows)]


def _sliced(rows: list[Any], dice: random.Random, count: int) -> list[list[Any]]:
    edges = [0, *sorted(dice.randint(0, len(rows)) for _ in range(count - 1)), len(rows)]
    return [rows[begin:end] for begin, end in pairwise(edges)]


@dataclass
class Stream:
    """A stream that lives in this process."""

    options: Options
    states: dict[int, ShardState] = field(default_factory=lambda: defaultdict(ShardState.first))
    state_bytes: int = 0
    rejected: list[dict[str, Any]] = field(default_factory=list)
    outcomes: dict[str, Outcomes] = field(default_factory=dict)

    @property
    def clock(self) -> Clock:
        """The clock of all shards: they agree."""
        clocks = {state.clock for state in self.states.values()}
        assert len(clocks) == 1, clocks
        return clocks.pop()

    @property
    def pending(self) -> int:
        return sum(state.watches.num_rows for state in self.states.values())

    def take(self, batch: Batch) -> dict[str, Outcomes]:
        """Run a batch; return its outcomes, having checked that each is given once (O4) and is final."""
        packed = list(pack([_watches(batch.operations)], "operations", self.options.shards))
        packed += pack([_events(batch.events)], "events", self.options.shards)
        packed += pack_marks([pa.record_batch({"value": ["end"] * batch.end})], "end", self.options.shards)
        by_shard: dict[int, dict[RowKind, list[bytes]]] = defaultdict(lambda: defaultdict(list))
        for rows in packed:
            for row in rows.to_pylist():
                by_shard[row["shard"]][RowKind(row["what"])].append(row["payload"])
        assert sorted(by_shard) == list(range(self.options.shards)), "every shard hears of every batch"
        found: list[pa.RecordBatch] = []
        reports: list[pa.RecordBatch] = []
        self.state_bytes = 0
        found += [self._turn(shard, payloads, batch.wall, reports) for shard, payloads in by_shard.items()]
        told = joined(reports, REPORTS)
        for shard in range(self.options.shards):
            outcomes, rejected = combined(filter_rows(told, column(told, "operation") % self.options.shards == shard))
            found.append(outcomes)
            self.rejected += rejected.to_pylist()
        return self._noted(found)

    def _turn(
        self, shard: int, payloads: dict[RowKind, list[bytes]], wall: int, reports: list[pa.RecordBatch]
    ) -> pa.RecordBatch:
        arrived = BatchInput(
            [unpack_rows(payload, WATCHES) for payload in payloads[RowKind.WATCHES]],
            [unpack_rows(payload, EVENTS) for payload in payloads[RowKind.EVENTS]],
            [mark_from(payload) for payload in payloads[RowKind.MARK]],
            wall,
        )
        after, ended = process_batch(self.states[shard], arrived, self.options)
        version, encoded = encode_shard(after, self.options)
        self.state_bytes += len(encoded)
        self.states[shard] = decode_shard(version, encoded, self.options)
        reports.append(ended.reports)
        self.rejected += ended.rejected.to_pylist()
        return ended.outcomes

    def _noted(self, outcomes: Iterable[pa.RecordBatch]) -> dict[str, Outcomes]:
        found: dict[str, Outcomes] = defaultdict(dict)
        for rows in outcomes:
            rows = rows.set_column(4, "at", rows.column("at").cast(pa.int64()))
            for row in rows.to_pylist():
                at, ends = row["at"], self.outcomes.setdefault(row["instance"], {})
                assert row["op_id"] not in ends, f"O4: {row} is a second outcome"
                assert self.clock.ended or at < self.clock.watermark, f"{row} could still change"
                ends[row["op_id"]] = found[row["instance"]][row["op_id"]] = (row["outcome"], at)
        return dict(found)


def number(*values: object) -> int:
    """A hash, as the rows have them from Spark."""
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=8).digest(), "little", signed=True)


def _watches(operations: Sequence[tuple[str, Op]]) -> pa.RecordBatch:
    rows = []
    for instance, op in operations:
        sign = -1 if op.condition == "any" else 1
        for place, watch in enumerate(op.watches):
            row = {"instance": instance, "op_id": op.op_id, "kind": "TEST", "key": watch.key, "watch": place}
            row |= {"place": number(instance, watch.key), "identity": number(1, instance, watch.key)}
            row |= {"required": watch.required, "start": op.start, "deadline": op.deadline}
            row |= {"combine": sign * len(op.watches) if len(op.watches) > 1 else 0}
            row |= {"operation": number(instance, op.op_id), "version": number(op.condition, op.watches)}
            rows.append(row)
    return pa.RecordBatch.from_pylist(rows, pa.schema([*WATCHES, *ASIDE]))


def _events(events: Sequence[tuple[str, Event]]) -> pa.RecordBatch:
    rows = []
    for instance, event in events:
        hashes = {"place": number(instance, event.key), "identity": number(1, instance, event.key)}
        rows.append({"instance": instance} | event._asdict() | hashes)
    return pa.RecordBatch.from_pylist(rows, pa.schema([*EVENTS, *ASIDE]))


def run(batches: Iterable[Batch], options: Options) -> Stream:
    """Run a whole stream."""
    stream = Stream(options)
    for batch in batches:
        stream.take(batch)
    return stream


def steps_of(stream: Stream) -> int:
    return int(np.sum([len(state.steps) for state in stream.states.values()]))
