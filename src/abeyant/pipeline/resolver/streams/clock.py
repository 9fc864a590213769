"""How far a stream has come: the watermark, from what was seen of both tables and from the wall clock.

Spark's own watermark is not used: it stands still on an idle stream, lags by a batch, and drops late rows out of sight.
Here every shard receives in every batch the least and the greatest time that any task saw of each table (*marks*), and
keeps a clock of each table of its own. All shards receive the same, so all clocks agree; and marks, batches and their
times are replayed as they were, so a batch that is done again comes to the same.

    clock of a table   the greatest time seen of it. In a batch without a row of it, it goes on by what passed on the
                       wall since the batch before: an idle table's time passes as everyone's does. (A backlog after an
                       outage is rows, so it moves the clock by its own times only.) A table of which no row was ever
                       seen begins with the least time of the other, and goes on by the wall.
    watermark          the lesser of both clocks, less the lateness. It never goes back.
    end of input       all is known.

A row below the watermark of the batches *before* is late. What happened below the watermark after this batch is known,
and final.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from abeyant.pipeline.resolver.streams.columns import Flags, Longs

__all__ = ["START", "Clock", "Mark", "Seen", "seen_of"]

START: Final = -(1 << 63)
"""The watermark before anything was seen of both tables."""

Source = Literal["operations", "events", "tick", "end"]


class Mark(NamedTuple):
    """What one task saw of one source; times in microseconds, 0 where there are none."""

    source: Source
    least: int
    greatest: int


class Seen(NamedTuple):
    """The least and the greatest time of a table's rows in one batch."""

    least: int
    greatest: int


def seen_of(marks: Iterable[Mark], source: Source) -> Seen | None:
    """Return what all tasks together saw of a table in a batch; None when there was no row."""
    found = [mark for mark in marks if mark.source == source]
    if not found:
        return None
    return Seen(min(mark.least for mark in found), max(mark.greatest for mark in found))


@dataclass(frozen=True)
class Clock:
    """All times in microseconds; None where nothing is known yet."""

    operations: int | None = None
    events: int | None = None
    wall: int | None = None
    """The time of the last batch."""
    watermark: int = START
    ended: bool = False

    def after(
        self,
        operations: Seen | None,
        events: Seen | None,
        *,
        wall: int,
        ticking: bool,
        lateness: int,
        ended: bool,
    ) -> Clock:
        """Return the clock after a batch at `wall` in which that was seen. Unless `ticking` the wall plays no part."""
        passed = max(wall - self.wall, 0) if ticking and self.wall is not None else 0
        moved = Clock(
            operations=_moved(self.operations, operations, events, passed, ticking),
            events=_moved(self.events, events, operations, passed, ticking),
            wall=wall if self.wall is None else max(wall, self.wall),
            watermark=self.watermark,
            ended=self.ended or ended,
        )
        if moved.operations is None or moved.events is None:
            return moved
        known = max(min(moved.operations, moved.events) - lateness, START)
        return dataclasses.replace(moved, watermark=max(known, self.watermark))

    def at_processing(self, wall: int, *, ended: bool) -> Clock:
        """Return the clock after a batch at `wall` when time is that of processing: all up to and with it is known."""
        now = wall if self.wall is None else max(wall, self.wall)
        return Clock(now, now, now, now + 1, self.ended or ended)

    def are_final(self, times: Longs) -> Flags:
        """Mark the times of which all is known: nothing that is still to come can change what happened then."""
        return np.ones(len(times), np.bool_) if self.ended else times < self.watermark


def _moved(own: int | None, seen: Seen | None, other: Seen | None, passed: int, ticking: bool) -> int | None:
    if seen is not None:
        return seen.greatest if own is None else max(own, seen.greatest)
    if own is not None:
        return own + passed
    return other.least if ticking and other is not None else None
