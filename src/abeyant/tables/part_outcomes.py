"""Compute outcomes and their times for a part (see `parts`) of the operations, from the timelines of their keys.

    deadline ── by calendar, pauses and extensions ─┐
    completed ─ the first instant of the condition ─┼── the earliest of the three
    cancelled ─ the first instant of a watch ───────┘

The three times can be computed one after the other: only events before the deadline extend it, and an operation that
has ended needs no extension. Each time is computed for all operations at once. Some steps have to be repeated
(extensions, several watches that must be met at one instant), but only for the operations that still change.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from abeyant.kernels.buffers import writable_integers
from abeyant.kernels.radix import sort_by_key
from abeyant.kernels.serving import Waiting
from abeyant.kernels.timelines import NEVER, Count
from abeyant.tables.columns import Mask
from abeyant.tables.duplicates import codes
from abeyant.tables.keys import Integers
from abeyant.tables.parts import Part, PartWatches
from abeyant.tables.roles import spans
from abeyant.tables.rules import Role

__all__ = ["CANCELLED", "COMPLETED", "EXPIRED", "PENDING", "By", "PartOutcomes", "PartResolver"]

COMPLETED, CANCELLED, EXPIRED, PENDING = range(4)
_LATEST: Final = NEVER - 1


class By(NamedTuple):
    """For each operation, the watch that decided it (index among its role's watches, or -1), and when it was met."""

    watch: Integers
    at: Integers


class PartOutcomes(NamedTuple):
    """The outcomes of a part's operations, one row per operation."""

    outcome: Integers
    at: Integers  # undefined for pending operations
    completed_by: By | None = None  # with `details`, as the two below
    cancelled_by: By | None = None
    counted: Integers | None = None
    lacking: Integers | None = None  # with `serves`: progress still required
    served: Integers | None = None  # with `serves`: number of events that served it


class PartResolver:
    """Computes the outcomes of the operations of one part."""

    def __init__(self, part: Part, *, keep_unused: bool = False) -> None:
        """With `keep_unused`, collect in `unused` the events that serve no operation: place, identity, progress, at."""
        self._part, self._rules, self._rows = part, part.whole.rules, len(part.start)
        self._start, self._any, self._then = part.start, part.any_of, part.then
        self._lines, self._levels, self._watches = part.whole.lines, part.whole.levels, part.watches
        self._keep_unused = keep_unused
        self.unused: list[Integers] = []

    def outcomes(self) -> PartOutcomes:
        """Return the outcome of each operation."""
        deadlines = self._deadlines()
        self._step_deadline = deadlines
        lacking = served = None
        if self._rules.serves != "every":  # cancelled operations are served no more, so cancellations come first
            cancelled, cancelled_by = self._cancelled(deadlines)
            completed, by, lacking, served = self._served(deadlines, cancelled)
        else:  # steps may move the deadline, so they come first
            completed, by = self._completed(deadlines)
            deadlines = self._step_deadline
            cancelled, cancelled_by = self._cancelled(deadlines)
        outcome = np.where(deadlines == NEVER, PENDING, EXPIRED)
        outcome[cancelled != NEVER] = CANCELLED
        outcome[(completed != NEVER) & (completed <= cancelled)] = COMPLETED
        at = np.where(outcome == COMPLETED, completed, np.where(outcome == CANCELLED, cancelled, deadlines))
        if not self._rules.details:
            return PartOutcomes(outcome, at, lacking=lacking, served=served)
        last = self._last(self._start, deadlines)
        lasts = np.where(outcome == EXPIRED, last, np.where(outcome == PENDING, _LATEST, at))
        if self._rules.holds == "at_deadline":
            lasts = np.where(outcome == COMPLETED, last, lasts)
        counted = self._counted(lasts, served)
        return PartOutcomes(outcome, at, by, cancelled_by, counted, lacking, served)

    # -- the deadline

    def _due(self, rows: Integers, times: Integers, amounts: Integers) -> Integers:
        """Return when the countdowns of `rows`, started at `times`, will have run for `amounts`, or `NEVER`."""
        calendar = self._rules.calendar
        readings = times if calendar is None else calendar.elapsed(times)
        due = np.where(amounts > _LATEST - np.maximum(readings, 0), NEVER, readings + amounts)
        watches, clock = self._watches["pause"], self._part.whole.clock
        if len(rows) == self._rows and watches.one_each:
            due = self._levels.run(self._watches["pause"].keyed, times, readings, amounts, clock)
        elif len(watches.operation):
            watch_of = np.full(self._rows, -1)
            watch_of[watches.operation] = np.arange(len(watches.operation))
            indices = np.flatnonzero(watch_of[rows] >= 0)
            due[indices] = self._levels.run(
                self._watches["pause"].keyed.take(watch_of[rows[indices]]),
                times[indices],
                readings[indices],
                amounts[indices],
                clock,
            )
        return due if calendar is None else calendar.due(times, due)

    def _last(self, starts: Integers, deadlines: Integers) -> Integers:
        """Return for each operation the last instant at which an event counts."""
        if self._rules.deadline == "inclusive":
            return np.minimum(deadlines, _LATEST)
        return np.minimum(np.maximum(starts, deadlines - 1), _LATEST)

    def _deadlines(self) -> Integers:
        deadlines = self._part.deadline
        timeout = self._timeout = deadlines - self._start
        if self._rules.calendar is not None or len(self._watches["pause"].operation):
            deadlines = self._due(np.arange(self._rows), self._start, timeout)
        watches = self._watches["extend"]
        if not len(watches.operation):
            return deadlines
        extension = timeout if self._part.extension is None else self._part.extension
        rows, first = spans(watches.operation)
        begin = self._start - 1 if self._rules.count == "from_start" else self._start
        deadlines = deadlines.copy()
        while len(rows):  # each iteration applies one extension
            groups = _spans(first, watches.operation, rows)
            lasts = self._last(self._start[rows], deadlines[rows])
            counts = np.diff(np.append(groups.begins, len(groups.watches)))
            latest = self._lines.last_up_to(
                self._watches["extend"].keyed.take(groups.watches), np.repeat(lasts, counts)
            )
            latest = np.maximum.reduceat(latest, groups.begins)
            counted = latest > begin[rows]
            rows, first, latest = rows[counted], first[counted], latest[counted]
            later = self._due(rows, latest, extension[rows])
            changed = later > deadlines[rows]
            rows, first = rows[changed], first[changed]
            deadlines[rows] = later[changed]
        return deadlines

    # -- the condition

    def _completed(self, deadlines: Integers) -> tuple[Integers, By]:
        """Return when each condition first holds, or `NEVER`, and the watch that decided."""
        rules, no_watch = self._rules, np.full(self._rows, -1)
        lasts = self._last(self._start, deadlines)
        if rules.holds == "at_deadline":
            met = np.where(deadlines == NEVER, NEVER, lasts)
            holds, by = self._holding(met)
            return np.where(holds, deadlines, NEVER), by._replace(at=deadlines)
        reached = self._met_together(lasts)
        by = self._holding(reached)[1] if rules.details else By(no_watch, no_watch)
        if self._then.any():
            self._step_deadline = deadlines.copy()
            steps, last_step = self._in_order(lasts)
            reached = np.where(self._then, steps, reached)
            by = By(np.where(self._then, last_step, by.watch), np.where(self._then, steps, by.at))
        return reached, by

    def _met_together(self, lasts: Integers) -> Integers:
        """Return when `all` or `any` watches of each operation, by its condition, are first met at once, up to `lasts`.

        The time is `NEVER` where that does not happen, or the condition is `then`.
        """
        watches, keyed = self._watches["complete"], self._watches["complete"].keyed
        search = self._start
        if watches.one_each and not self._then.any():
            return self._lines.first_met(keyed, search, search, lasts, self._rules.count)
        reached = np.full(self._rows, NEVER)
        rows, first = spans(watches.operation)
        search, mask = search.copy(), ~self._then[rows]
        rows, first = rows[mask], first[mask]
        while len(rows):
            groups = _spans(first, watches.operation, rows)
            operation = np.repeat(rows, np.diff(np.append(groups.begins, len(groups.watches))))
            met = self._lines.first_met(
                keyed.take(groups.watches),
                self._start[operation],
                search[operation],
                lasts[operation],
                self._rules.count,
            )
            all_met, any_met = np.maximum.reduceat(met, groups.begins), np.minimum.reduceat(met, groups.begins)
            # One watch may no longer be met when the last one is: search again from there. (The maximum never falls.)
            pending = ~self._any[rows] & (any_met != all_met) & (all_met != NEVER) & (self._rules.combine != "max")
            reached[rows] = np.where(self._any[rows], any_met, all_met)
            search[rows] = all_met
            rows, first = rows[pending], first[pending]
        return reached

    def _holding(self, times: Integers) -> tuple[Mask, By]:
        """Return whether each condition, other than 'then', holds at `times`, and the watch that decided."""
        watches, keyed, no_watch = self._watches["complete"], self._watches["complete"].keyed, np.full(self._rows, -1)
        at_deadline = self._rules.holds == "at_deadline"
        operation, start = watches.operation, self._start
        is_met = times != NEVER
        if not watches.one_each:
            times, start, is_met = times[operation], start[operation], is_met[operation]
        elif not at_deadline:  # one watch: it is met when its operation completes
            return is_met, self._decided(watches, is_met, self._lines.since(keyed, start, times, self._rules.count))
        if at_deadline or len(operation) > self._rows or len(spans(operation)[0]) < len(operation):
            is_met &= self._lines.held_at(keyed, start, np.minimum(times, _LATEST), self._rules.count) != 0
        holds = np.zeros(self._rows, np.bool_)
        rows, first = spans(operation)
        if len(rows):
            all_met, any_met = np.logical_and.reduceat(is_met, first), np.logical_or.reduceat(is_met, first)
            holds[rows] = np.where(self._any[rows], any_met, all_met)
        if not self._rules.details:
            return holds, By(no_watch, no_watch)
        if at_deadline:
            return holds, self._decided(watches, is_met, np.zeros(len(operation), np.int64))
        since = self._lines.since(keyed, start, times, self._rules.count)
        early, late = (self._decided(watches, is_met, since, latest=latest) for latest in (False, True))
        return holds, By(np.where(self._any, early.watch, late.watch), np.where(self._any, early.at, late.at))

    def _decided(self, watches: PartWatches, mask: Mask, since: Integers, *, latest: bool = False) -> By:
        """Return, of each operation's watches in `mask`, the one met earliest (or `latest`); on a tie the first."""
        if watches.one_each:
            return By(np.where(mask, watches.operation, -1), np.where(mask, since, NEVER))
        number, at = np.full(self._rows, -1), np.full(self._rows, NEVER)
        indices = np.flatnonzero(mask)
        operation = watches.operation[indices]
        rows, first = spans(operation)
        if len(rows):
            decisive = (np.maximum if latest else np.minimum).reduceat(since[indices], first)
            at[rows] = decisive
            indices = indices[since[indices] == at[operation]]
            rows, first = spans(watches.operation[indices])
            number[rows] = indices[first]
        return By(number, at)

    def _in_order(self, lasts: Integers) -> tuple[Integers, Integers]:
        """Return when the last watch of each operation with condition 'then' was met in turn, and its number."""
        watches, keyed = self._watches["complete"], self._watches["complete"].keyed
        count: Count = "after_start" if self._rules.count == "always" else self._rules.count
        rows, first = spans(watches.operation)
        steps = np.diff(np.append(first, len(watches.operation)))
        mask = self._then[rows]
        rows, first, steps = rows[mask], first[mask], steps[mask]
        at, last_step = np.full(self._rows, NEVER), np.full(self._rows, -1)
        last_step[rows] = first + steps - 1
        now, lasts = self._start.copy(), lasts.copy()
        number = 0
        while len(rows):
            if number and self._rules.within == "step":
                deadlines = self._due(rows, now[rows], self._timeout[rows])
                self._step_deadline[rows] = deadlines
                lasts[rows] = self._last(now[rows], deadlines)
            met = self._lines.first_met(keyed.take(first + number), now[rows], now[rows], lasts[rows], count)
            number += 1
            is_met = met != NEVER
            is_done = is_met & (steps == number)
            at[rows[is_done]] = met[is_done]
            remaining = is_met & ~is_done
            rows, first, steps, met = rows[remaining], first[remaining], steps[remaining], met[remaining]
            now[rows] = met
        return at, last_step

    _step_deadline: Integers
    """The deadline of each operation; with `within="step"`, the deadline of the last step that began."""

    def _served(self, deadlines: Integers, cancelled: Integers) -> tuple[Integers, By, Integers, Integers]:
        """Assign each event to one operation that has not ended (O7).

        Return what `_completed` returns, and for each operation the progress still required and how many events served.
        """
        rules, watches = self._rules, self._watches["complete"]
        newest = rules.serves == "newest"
        lasts = np.minimum(self._last(self._start, deadlines), cancelled)
        spans_of, required = watches.keyed
        region = self._part.whole.serving.region(self._part.shards)
        begins = np.append(region.begins, region.begin + len(region.at)) - region.begin
        # Operations on keys without events come first, as one group without events.
        keys = np.where(spans_of[:, 0] < spans_of[:, 1], spans_of[:, 0] - region.begin + 1, 0)
        order = np.argsort(self._start[watches.operation])
        keys, order = _sorted_by_key(keys[order], order)
        order = order[self._by_ids(watches.operation[order], keys, newest=newest)]
        operation, required = watches.operation[order], required[order]
        results = [np.zeros(len(operation), np.int64) for _ in range(3)]
        owners = np.full(len(region.at), -1)
        Waiting(len(operation), len(region.at)).serve(
            begins.data,
            region.at.data,
            region.values.data,
            np.searchsorted(keys, np.append(0, begins[:-1] + 1), side="right").data,
            self._start[operation].data,
            lasts[operation].data,
            required.data,
            *(column.data for column in results),
            *([owners.data] if self._keep_unused else ()),
            newest=newest,
            count=rules.count,
            add=rules.combine == "sum",
        )
        if self._keep_unused:
            events = [np.repeat(hashes, np.diff(begins)) for hashes in (region.places, region.identities)]
            self.unused.append(np.column_stack([*events, region.values, region.at])[owners < 0])
        met, number = np.full(self._rows, NEVER), np.full(self._rows, -1)
        since, served, lacking = (np.zeros(self._rows, np.int64) for _ in range(3))
        met[operation], since[operation], served[operation] = results
        lacking[operation], number[operation] = required, order
        return met, By(number, since), lacking, served

    def _by_ids(self, rows: Integers, keys: Integers, *, newest: bool) -> Integers:
        """Return an order of `rows` that sorts operations of equal key and start by id, descending with `newest`."""
        start = self._start[rows]
        same = np.concatenate(([False], (keys[1:] == keys[:-1]) & (start[1:] == start[:-1]), [False]))
        tied = np.flatnonzero(same[1:] | same[:-1])
        order = np.arange(len(rows))
        if not len(tied):
            return order
        ids = codes(self._part.ids.take(pa.array(self._part.in_table(rows[tied]))))
        order[tied] = tied[np.lexsort((-ids if newest else ids, np.cumsum(~same[tied])))]
        return order

    # -- cancelled

    def _cancelled(self, deadlines: Integers) -> tuple[Integers, By]:
        watches = self._watches["cancel"]
        at, no_watch = np.full(self._rows, NEVER), np.full(self._rows, -1)
        operation = watches.operation
        if not len(operation):
            return at, By(no_watch, no_watch)
        keyed, lasts = self._watches["cancel"].keyed, self._last(self._start, deadlines)
        met = self._lines.first_met(
            keyed, self._start[operation], self._start[operation], lasts[operation], self._rules.count
        )
        rows, first = spans(operation)
        at[rows] = np.minimum.reduceat(met, first)
        if not self._rules.details:
            return at, By(no_watch, no_watch)
        now = np.minimum(at[operation], _LATEST)
        is_met = (self._lines.held_at(keyed, self._start[operation], now, self._rules.count) != 0) & (
            at[operation] != NEVER
        )
        since = self._lines.since(keyed, self._start[operation], now, self._rules.count)
        return at, self._decided(watches, is_met, since)

    def _counted(self, lasts: Integers, served: Integers | None) -> Integers:
        """Return how many events count up to `lasts`: of `extend` watches if there are any, else of `complete` ones."""
        after: Count = "from_start" if self._rules.count == "from_start" else "after_start"
        counts = np.zeros(self._rows, np.int64)

        def add(role: Role, watches: Any, count: Count) -> None:
            rows = self._watches[role].operation[watches]
            counted = self._lines.counted(
                self._watches[role].keyed.take(watches), self._start[rows], lasts[rows], count
            )
            np.add.at(counts, rows, counted)

        watches = self._watches["complete"]
        extending, operation = self._watches["extend"].operation, watches.operation
        if served is None and not len(extending) and watches.one_each and not self._then.any():
            return self._lines.counted(self._watches["complete"].keyed, self._start, lasts, self._rules.count)
        extended = np.zeros(self._rows, np.bool_)
        extended[extending] = True
        if len(extending):
            add("extend", slice(None), after)
        if served is not None:
            return np.where(extended, counts, served)
        add("complete", np.flatnonzero(self._then[operation] & ~extended[operation]), after)
        add("complete", np.flatnonzero(~self._then[operation] & ~extended[operation]), self._rules.count)
        return counts


def _sorted_by_key(keys: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Return `keys` (not negative) sorted, and `rows` in the same order; stable. O(rows)."""
    numbers = np.arange(len(keys), dtype=np.int32)
    sort_by_key(writable_integers(keys.data, "keys"), numbers.data)
    return keys, rows[numbers]


class _Spans(NamedTuple):
    watches: Integers  # numbers of the watches, operation by operation
    begins: Integers  # where each operation's watches begin


def _spans(first: Integers, operation: Integers, rows: Integers) -> _Spans:
    """Return all watches of the operations `rows`; `first` has the number of each operation's first watch."""
    counts = np.bincount(operation, minlength=int(rows.max()) + 1)[rows]
    begins = np.cumsum(counts) - counts
    return _Spans(np.repeat(first - begins, counts) + np.arange(counts.sum()), begins)
