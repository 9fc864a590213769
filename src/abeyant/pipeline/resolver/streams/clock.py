"""Compute a stream's watermark, from the times in the rows of both tables and from the wall clock.

Spark's own watermark is not used: it stands still on an idle stream, lags by a batch, and drops late rows silently.
Here each task sends, in every batch, the least and the greatest time of its rows of a table to all shards (*marks*),
and each shard keeps a clock for each table. All shards receive the same marks, so all clocks agree; and Spark replays
marks, batches and their times unchanged, so a repeated batch has the same result.

    clock of a table   the greatest time in its rows. In a batch without rows of the table, its clock advances with the
                       wall clock, by the time since the previous batch. (After an outage a batch has rows, the backlog,
                       so the clock advances by their times only.) The clock of a table without any rows so far begins
                       at the least time of the other table, and advances with the wall clock.
    watermark          the lesser of both clocks, less the lateness. It never goes back.
    end of input       all times are final.

A row is late if its time is below the watermark after the *previous* batch. Everything below the watermark after this
batch is final.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from abeyant.pipeline.resolver.streams.columns import Flags, Longs

__all__ = ["START", "Clock", "Mark", "TimeRange", "time_range_of"]

START: Final = -(1 << 63)
"""The watermark until the clocks of both tables are known, in microseconds."""

Source = Literal["operations", "events", "tick", "end"]


class Mark(NamedTuple):
    """The least and greatest time that one task read of one source, in microseconds; 0 if the source has no times."""

    source: Source
    least: int
    greatest: int


class TimeRange(NamedTuple):
    """The least and the greatest time of a table's rows in one batch, in microseconds."""

    least: int
    greatest: int


def time_range_of(marks: Iterable[Mark], source: Source) -> TimeRange | None:
    """Return the least and greatest time of a source in a batch, over all tasks; None if no task sent its mark."""
    source_marks = [mark for mark in marks if mark.source == source]
    if not source_marks:
        return None
    return TimeRange(min(mark.least for mark in source_marks), max(mark.greatest for mark in source_marks))


@dataclass(frozen=True)
class Clock:
    """The clocks of both tables, the wall clock and the watermark, in microseconds; None where not known yet."""

    operations: int | None = None
    events: int | None = None
    wall: int | None = None
    """The wall-clock time of the last batch."""
    watermark: int = START
    ended: bool = False

    def after(
        self,
        operations: TimeRange | None,
        events: TimeRange | None,
        *,
        wall: int,
        ticking: bool,
        lateness: int,
        ended: bool,
    ) -> Clock:
        """Return the clock after a batch at `wall` with these times; idle tables' clocks advance only if `ticking`."""
        elapsed = max(wall - self.wall, 0) if ticking and self.wall is not None else 0
        clock = Clock(
            operations=_moved(self.operations, operations, events, elapsed, ticking),
            events=_moved(self.events, events, operations, elapsed, ticking),
            wall=wall if self.wall is None else max(wall, self.wall),
            watermark=self.watermark,
            ended=self.ended or ended,
        )
        if clock.operations is None or clock.events is None:
            return clock
        watermark = max(min(clock.operations, clock.events) - lateness, START)
        return dataclasses.replace(clock, watermark=max(watermark, self.watermark))

    def at_processing(self, wall: int, *, ended: bool) -> Clock:
        """Return the clock after a batch at `wall` in processing time: all times up to `wall`, inclusive, are final."""
        now = wall if self.wall is None else max(wall, self.wall)
        return Clock(now, now, now, now + 1, self.ended or ended)

    def are_final(self, times: Longs) -> Flags:
        """Mark the final times, at which no more rows can come: below the watermark, or all after the end of input."""
        return np.ones(len(times), np.bool_) if self.ended else times < self.watermark


def _moved(
    current: int | None, own_range: TimeRange | None, other_range: TimeRange | None, elapsed: int, ticking: bool
) -> int | None:
    if own_range is not None:
        return own_range.greatest if current is None else max(current, own_range.greatest)
    if current is not None:
        return current + elapsed
    return other_range.least if ticking and other_range is not None else None
