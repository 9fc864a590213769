"""Process a batch of a shard. A shard is a purgatory: its keys' progress, the operations that wait, and a clock.

Spark is not used here: `process_batch` takes the state and the rows of a batch, and returns the new state and the
output. The result does not depend on the order of the rows, so a repeated batch has the same result.

What happened below the watermark is final, so there only the greatest progress of each key matters: one step. Above the
watermark the key's staircase is kept (see `kernels.resolve`), without events that cannot decide anything any more.

An operation with one watch ends in this shard. An operation with several watches has each of them in the shard of its
key. Each shard reports its watch in every batch, from when the watch is reached until the operation's deadline has
passed, and `combined` joins the reports of a batch. So no state of an operation is kept anywhere else.

Cost of a batch: O(n log n) for n rows of the batch and the state; compiled, or in NumPy and Arrow, without Python code
per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from abeyant.kernels.resolve import NEVER, Staircases
from abeyant.pipeline.resolver.streams.clock import Clock, Mark, time_range_of
from abeyant.pipeline.resolver.streams.columns import Flags, Longs, column, filter_rows, set_columns, split_rows, table
from abeyant.pipeline.resolver.streams.duplicates import repeated
from abeyant.pipeline.resolver.streams.layout import EVENTS, REJECTED, REPORTS, WATCHES, joined
from abeyant.pipeline.resolver.streams.options import Deadline, Options
from abeyant.pipeline.resolver.streams.outcomes import outcomes_at
from abeyant.pipeline.resolver.streams.rejected import reject_duplicates, reject_late_events, reject_late_operations
from abeyant.pipeline.resolver.streams.state import ShardState
from abeyant.pipeline.resolver.streams.steps import select_steps

__all__ = ["BatchInput", "BatchOutput", "clock_after", "moved", "process_batch", "reached_by"]


@dataclass(frozen=True)
class BatchInput:
    """A batch's input to one shard: its `watches` and `events`, and the `marks` that all shards receive."""

    watches: Sequence[pa.RecordBatch]
    events: Sequence[pa.RecordBatch]
    marks: Sequence[Mark]
    wall: int
    """The wall-clock time at which the batch began, in microseconds since 1970."""


@dataclass(frozen=True)
class BatchOutput:
    """A shard's output for a batch."""

    outcomes: pa.RecordBatch  # layout.OUTCOMES
    reports: pa.RecordBatch  # layout.REPORTS
    rejected: pa.RecordBatch  # layout.REJECTED


def process_batch(state: ShardState, arrived: BatchInput, options: Options) -> tuple[ShardState, BatchOutput]:
    """Process a batch. Return the new state, and the outcomes, reports and rejected rows."""
    clock = clock_after(state.clock, arrived, options)
    new_watches, new_events, late = _accepted(state.clock, clock, arrived, options)
    watches, duplicates = split_rows(joined([state.watches, new_watches], WATCHES), repeated)
    rows = np.concatenate([state.steps, table(new_events, *_STEP)])
    staircases = Staircases(rows.reshape(-1).data)
    reached = reached_by(staircases, watches, options.deadline)

    past_deadline = clock.are_final(column(watches, "deadline"))
    known = past_deadline | clock.are_final(reached)
    single = column(watches, "combine") == 0
    ended = BatchOutput(
        outcomes_at(filter_rows(watches, known & single), reached[known & single]),
        _reports(filter_rows(watches, known & ~single), reached[known & ~single], state.clock, clock),
        joined([*late, reject_duplicates(duplicates)], REJECTED),
    )
    pending = filter_rows(watches, ~(past_deadline | (known & single)))
    steps = select_steps(staircases, rows, clock, column(pending, "place"), options.forget_after_us)
    return ShardState(clock, pending, steps), ended


_STEP: Final = ("place", "identity", "progress", "at")


def reached_by(staircases: Staircases, watches: pa.RecordBatch, kind: Deadline) -> Longs:
    """Return the time in microseconds at which each watch was reached within its operation's time, or `NEVER`."""
    reached = np.empty(watches.num_rows, np.int64)
    place, identity, required, start, deadline = (
        column(watches, name).data for name in ("place", "identity", "required", "start", "deadline")
    )
    staircases.first_reached(place, identity, required, start, deadline, reached.data, deadline=kind)
    return reached


def clock_after(clock: Clock, arrived: BatchInput, options: Options) -> Clock:
    """Return the clock after a batch."""
    ended = time_range_of(arrived.marks, "end") is not None
    if options.time == "processing":
        return clock.at_processing(arrived.wall, ended=ended)
    return clock.after(
        time_range_of(arrived.marks, "operations"),
        time_range_of(arrived.marks, "events"),
        wall=arrived.wall,
        ticking=options.ticking,
        lateness=options.lateness_us,
        ended=ended,
    )


def _accepted(
    before: Clock, after: Clock, arrived: BatchInput, options: Options
) -> tuple[pa.RecordBatch, pa.RecordBatch, list[pa.RecordBatch]]:
    """Return the accepted watches and events, and the late rows as `layout.REJECTED`."""
    watches, events = joined(arrived.watches, WATCHES), joined(arrived.events, EVENTS)
    if options.time == "processing" and not before.ended:
        assert after.wall is not None
        return moved(watches, after.wall, "start", "deadline"), moved(events, after.wall, "at"), []
    watches, late_watches = split_rows(watches, lambda rows: before.are_final(column(rows, "start")))
    events, late_events = split_rows(events, lambda rows: before.are_final(column(rows, "at")))
    return watches, events, [reject_late_operations(late_watches, before), reject_late_events(late_events, before)]


def moved(rows: pa.RecordBatch, to: int, first: str, *others: str) -> pa.RecordBatch:
    """Shift the times of rows, in the columns `first` and `others`, so that `first` is `to` (microseconds)."""
    shift = to - column(rows, first)
    return set_columns(rows, **{name: column(rows, name) + shift for name in (first, *others)})


def _reports(watches: pa.RecordBatch, reached: Longs, before: Clock, after: Clock) -> pa.RecordBatch:
    in_time: Flags = reached != NEVER
    columns = [watches.column(name) for name in REPORTS.names[:-3]]
    fresh = in_time & ~before.are_final(reached)
    last = after.are_final(column(watches, "deadline"))
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array(reached, mask=~in_time), pa.array(fresh), pa.array(last)], schema=REPORTS
    )
