"""Process a batch of a shard with options: operations and events arrive, final outcomes are returned.

Proof that an outcome, once returned, cannot change. Let W be the watermark. Every later operation or event has its
time at W or later, or it is rejected as late. So all operations that started before W are known, and all events before
W. By the laws, the state at an instant t depends on what happened up to t, and on nothing later: whether a condition
holds, which operation an event serves (of those that have started by then and have not ended), how far a countdown has
run, how far it was extended. So from the operations that started before W, and the events before W, the
`TimelineResolver` of whole tables computes each outcome before W as it would with all later rows; an outcome at W or
later is provisional, and its operation keeps waiting. Events at W and later are not used before the watermark passes
them.

Dropping state cannot change an outcome either. For events see `select_events`. An operation that has ended affects
other operations only by the events that served it. These events are marked as used up at once, and an operation that
continues keeps the progress that is still required. All events before W have been assigned to the operations that they
serve, so a repeated assignment with the remaining events assigns none: no waiting operation could use an unused event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.resolver.streams.clock import Clock
from abeyant.pipeline.resolver.streams.columns import Flags, Longs, column, filter_rows, set_columns, split_rows
from abeyant.pipeline.resolver.streams.layout import OUTCOMES, REJECTED, joined
from abeyant.pipeline.resolver.streams.options import Options
from abeyant.pipeline.resolver.streams.rejected import reject_late_events
from abeyant.pipeline.resolver.streams.rules.events import select_events
from abeyant.pipeline.resolver.streams.rules.layout import (
    AT,
    COUNTED,
    DETAILS,
    EVENTS,
    IDENTITY,
    PLACE,
    PROGRESS,
    USES,
    WAITS,
    WIDTH,
    Columns,
    Use,
)
from abeyant.pipeline.resolver.streams.rules.rejected import reject_duplicates, reject_late_operations
from abeyant.pipeline.resolver.streams.shard import BatchInput, clock_after, moved
from abeyant.tables.by_timelines import TimelineResolver
from abeyant.tables.columns import Watches, watches_of
from abeyant.tables.duplicates import id_hashes, repeated
from abeyant.tables.keys import PairHash, draw_seed
from abeyant.tables.sharded_timelines import EventRows
from abeyant.tables.validity import Operations

__all__ = ["RulesOutput", "RulesState", "process_batch"]


@dataclass(frozen=True)
class RulesState:
    """A shard's state between batches: the waiting operations, and events with the columns of `layout`."""

    clock: Clock
    seed: bytes  # of the hashes of its keys
    operations: pa.RecordBatch  # layout.WAITS
    events: Longs

    @classmethod
    def first(cls) -> RulesState:
        """Return the state before the first batch."""
        return cls(Clock(), draw_seed(), joined([], WAITS), np.empty((0, WIDTH), np.int64))


@dataclass(frozen=True)
class RulesOutput:
    """A shard's output for a batch."""

    outcomes: pa.RecordBatch  # layout.OUTCOMES, or with details rules.layout.DETAILS
    rejected: pa.RecordBatch  # layout.REJECTED


def process_batch(state: RulesState, arrived: BatchInput, options: Options) -> tuple[RulesState, RulesOutput]:
    """Process a batch. Return the new state, and the outcomes and rejected rows."""
    columns = options.columns
    assert columns is not None
    clock = clock_after(state.clock, arrived, options)
    pairs = PairHash(state.seed)
    new, events, rejected = _accepted(state.clock, clock, arrived, options, columns)
    operations = joined([state.operations, new], WAITS)
    operations, duplicates = split_rows(operations, lambda rows: _repeated(rows, pairs))
    rejected.append(reject_duplicates(duplicates, columns))
    rows = np.concatenate([state.events, _rows_of(events, pairs, options, columns)])

    started = clock.are_final(column(operations, "start"))
    known = clock.are_final(rows[:, AT])
    shard = _Known(filter_rows(operations, started), rows[known], pairs, options, columns)
    ended, outcomes = shard.resolve(clock)
    operations = joined([filter_rows(shard.operations, ~ended), filter_rows(operations, ~started)], WAITS)
    if clock.ended:
        rows = rows[:0]
    else:
        rows = select_events(
            np.concatenate([shard.events, rows[~known]]),
            *_watched(operations, pairs),
            clock.watermark,
            options.rules,
            options.forget_after_us,
        )
    return RulesState(clock, state.seed, operations, rows), RulesOutput(outcomes, joined(rejected, REJECTED))


class _Known:
    """The operations that have started by the watermark, and the events before it."""

    def __init__(
        self, operations: pa.RecordBatch, events: Longs, pairs: PairHash, options: Options, columns: Columns
    ) -> None:
        self.operations, self.events = operations, events
        self._pairs, self._rules, self._columns = pairs, options.rules, columns
        self._schema = DETAILS if options.rules.details else OUTCOMES

    def resolve(self, clock: Clock) -> tuple[Flags, pa.RecordBatch]:
        """Return a mask of the ended operations, and their outcomes. Updates `self.operations` and `self.events`."""
        if not self.operations.num_rows:
            self._use_up(np.empty(0, np.int64), [])
            return np.empty(0, np.bool_), joined([], self._schema)
        places, _ = _watched(self.operations, self._pairs)
        watched = self.events[np.isin(self.events[:, PLACE], places)]
        operations = _operations(self.operations, self._columns)
        lines, levels, unserved = (_of_use(watched, use) for use in (Use.LINES, Use.LEVELS, Use.SERVING))
        waits = TimelineResolver(operations, lines, self._rules, self._pairs, map, levels=levels, unserved=unserved)
        outcomes = waits.outcomes()
        at = pc.fill_null(outcomes["at"].cast(pa.int64()), np.iinfo(np.int64).max).to_numpy()
        ended = clock.are_final(at)
        if self._rules.details:
            outcomes = self._counted(outcomes, operations.watches, watched)
        if self._rules.serves != "every":
            served = column(self.operations, "served") + waits.served
            self.operations = set_columns(self.operations, lacking=waits.lacking, served=served)
            self._use_up(places, waits.unused)
        return ended, joined(outcomes.filter(pa.array(ended)).to_batches(), self._schema)

    def _use_up(self, places: Longs, unused: Sequence[Longs]) -> None:
        """Clear the flag `SERVING` of events that served an operation, or that no operation can use any more."""
        if self._rules.serves == "every":
            return
        serving = self.events[:, USES] & Use.SERVING != 0
        others = self.events.copy()
        others[:, USES] &= ~Use.SERVING
        parts = [others[others[:, USES] != 0]]
        if self._rules.count == "always":
            elsewhere = self.events[serving & ~np.isin(self.events[:, PLACE], places)]
            elsewhere[:, USES] = Use.SERVING
            parts.append(elsewhere)
            parts += [
                np.column_stack([rows, np.ones(len(rows), np.int64), np.full(len(rows), Use.SERVING)])
                for rows in unused
            ]
        self.events = np.concatenate(parts)

    def _counted(self, outcomes: pa.Table, watches: Watches, events: Longs) -> pa.Table:
        """Return the outcomes, with `counted` increased by events that were used up or combined in earlier batches."""
        counted = outcomes["counted"].to_numpy()
        of = watches.operation()
        role = _roles(watches)
        extended = np.zeros(len(counted), np.bool_)
        extended[of[pc.equal(role, "extend").to_numpy()]] = True
        if self._rules.serves != "every":
            further = np.where(extended, 0, column(self.operations, "served"))
        else:
            further = np.zeros(len(counted), np.int64)
            folded = events[(events[:, USES] & Use.LINES != 0) & (events[:, COUNTED] != 1)]
            then = pc.equal(self.operations.column("condition"), "then").fill_null(False).to_numpy(False)
            if len(folded) and self._rules.count == "always":
                places = self._pairs(
                    pa.chunked_array([self.operations.column("instance").take(pa.array(of))]), watches.key
                )[0].copy()
                keys, first = np.unique(folded[:, PLACE], return_inverse=True)
                increments = np.bincount(first, folded[:, COUNTED] - 1).astype(np.int64)
                place = np.minimum(np.searchsorted(keys, places), len(keys) - 1)
                counts = (keys[place] == places) & pc.equal(role, "complete").to_numpy() & ~then[of] & ~extended[of]
                np.add.at(further, of[counts], increments[place[counts]])
        place = outcomes.schema.get_field_index("counted")
        return outcomes.set_column(place, outcomes.schema.field(place), pa.array(counted + further))


def _repeated(operations: pa.RecordBatch, pairs: PairHash) -> Flags:
    table = pa.Table.from_batches([operations])
    valid = np.ones(len(table), np.bool_)
    return repeated(
        table,
        column(operations, "start"),
        column(operations, "deadline"),
        watches_of(table["watches"]),
        valid,
        id_hashes(table, valid, pairs),
    )


def _operations(rows: pa.RecordBatch, columns: Columns) -> Operations:
    """Return waiting operations as `Operations` of `abeyant.tables`; `required` becomes the progress still lacking."""
    table = pa.Table.from_batches([rows])
    watches = watches_of(table["watches"])
    lacking = table["lacking"]
    if lacking.null_count < len(lacking):
        of = watches.operation()
        completes = pc.equal(_roles(watches), "complete").to_numpy()
        remaining = lacking.take(pa.array(of))
        watches = watches._replace(
            required=pc.if_else(pc.and_(pa.array(completes), remaining.is_valid()), remaining, watches.required)
        )
    if not columns.deadline:
        table = table.drop_columns("deadline")
    return Operations(
        table,
        column(rows, "start"),
        column(rows, "deadline"),
        column(rows, "deadline"),
        watches,
        np.full(len(table), -1, np.int8),
        (),
    )


def _roles(watches: Watches) -> pa.ChunkedArray:
    if watches.role is None:
        return pa.chunked_array([pa.array(["complete"] * len(watches.key), pa.string())])
    return watches.role.fill_null("complete")


def _watched(operations: pa.RecordBatch, pairs: PairHash) -> tuple[Longs, Longs]:
    """Return for each watch the place of its key, and the start of its operation."""
    watches = watches_of(pa.chunked_array([operations.column("watches")]))
    of = watches.operation()
    instance = pa.chunked_array([operations.column("instance").take(pa.array(of))], pa.string())
    places, _ = pairs(instance, watches.key)
    return places.copy(), column(operations, "start")[of]


def _of_use(events: Longs, use: int) -> list[EventRows]:
    rows = events[events[:, USES] & use != 0]
    return [EventRows.of(*(np.ascontiguousarray(rows[:, n]) for n in (PLACE, IDENTITY, PROGRESS, AT)))]


def _rows_of(events: pa.RecordBatch, pairs: PairHash, options: Options, columns: Columns) -> Longs:
    """Return new events as rows of the state, with a flag of `Use` for each purpose that they may serve."""
    uses = Use.LEVELS * columns.pauses | Use.SEEN * (options.forget_after_us is not None)
    if options.rules.serves == "every" or columns.roles:
        uses |= Use.LINES
    if options.rules.serves != "every":
        uses |= Use.SERVING
    places, identities = pairs(*(pa.chunked_array([events.column(name)]) for name in ("instance", "key")))
    ones = np.ones(events.num_rows, np.int64)
    return np.column_stack(
        [places, identities, column(events, "progress"), column(events, "at"), ones, uses * ones]
    ).astype(np.int64)


def _accepted(
    before: Clock, after: Clock, arrived: BatchInput, options: Options, columns: Columns
) -> tuple[pa.RecordBatch, pa.RecordBatch, list[pa.RecordBatch]]:
    """Return the accepted operations and events, and the late rows as `layout.REJECTED`."""
    operations, events = joined(arrived.watches, WAITS), joined(arrived.events, EVENTS)
    if options.time == "processing" and not before.ended:
        assert after.wall is not None
        others = () if columns.deadline else ("deadline",)
        operations = moved(operations, after.wall, "start", *others)
        if columns.deadline:
            over = np.maximum(column(operations, "deadline"), after.wall)
            operations = set_columns(operations, deadline=over)
        return operations, moved(events, after.wall, "at"), []
    operations, late = split_rows(operations, lambda rows: before.are_final(column(rows, "start")))
    events, late_events = split_rows(events, lambda rows: before.are_final(column(rows, "at")))
    return (
        operations,
        events,
        [reject_late_operations(late, before, columns), reject_late_events(late_events, before)],
    )
