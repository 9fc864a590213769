"""Outcomes by all the words: the end of each operation from the timelines of its keys.

    deadline ── by calendar, pauses and extensions ─┐
    completed ─ the first instant of the condition ─┼── the earliest of the three
    cancelled ─ the first instant of a watch ───────┘

The three do not depend on each other, as far as each stays within the deadline: what extends it comes before it, and
what has ended needs no deadline. All are computed for all operations at once; where a step may have to be repeated
(extensions; watches that are to be met at one instant) it is for those operations that still change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import SchemaError
from abeyant.kernels.serving import Waiting
from abeyant.kernels.timelines import NEVER, Count, Timelines
from abeyant.tables.columns import flags, integers, missing
from abeyant.tables.contradictions import contradictions
from abeyant.tables.duplicates import codes
from abeyant.tables.keys import Integers, PairHash
from abeyant.tables.lines import Each, EventRows, Keyed, Lines
from abeyant.tables.roles import RoleWatches, spans, watches_by_role
from abeyant.tables.schemas import DETAILS, OUTCOMES
from abeyant.tables.validity import Operations
from abeyant.tables.words import Role, Words

__all__ = ["outcomes_by_words"]

_OUTCOMES: Final = ("completed", "cancelled", "expired", "pending")
_COMPLETED, _CANCELLED, _EXPIRED, _PENDING = range(4)
_LATEST: Final = NEVER - 1


class _By(NamedTuple):
    """The watch that decided: its number among those of its role, or -1, and since when it was met."""

    watch: Integers
    at: Integers


def outcomes_by_words(
    operations: Operations, events: Sequence[EventRows], words: Words, pairs: PairHash, each: Each[Any, Any]
) -> pa.Table:
    """Return the outcomes of valid operations. `events` are all of them.

    Raises `SchemaError` for columns and watches that do not go with the words.
    """
    return Waits(operations, events, words, pairs, each).outcomes()


class Waits:
    """Some valid operations, and the timelines of all keys."""

    def __init__(
        self,
        operations: Operations,
        events: Sequence[EventRows],
        words: Words,
        pairs: PairHash,
        each: Each[Any, Any],
        *,
        levels: Sequence[EventRows] | None = None,
        unserved: Sequence[EventRows] | None = None,
    ) -> None:
        """Hash the keys. `levels` are the events of pauses, `unserved` those that may serve; else all events."""
        self._operations, self._words, self._each = operations, words, each
        self._events, self._own_levels = events, levels
        self._unserved = events if unserved is None else unserved
        self.lacking = self.served = np.empty(0, np.int64)
        """With `serves`: what each operation still requires after `outcomes`, and how many events served it."""
        self.unused: list[Integers] = []
        """With `unserved`: those events of keys that are watched which serve nobody, as rows."""
        self._keep_unused = unserved is not None
        self._start, self._rows = operations.start, len(operations.start)
        instance = operations.table["instance"]
        self._watches = watches_by_role(operations)
        self._keyed: dict[Role, Keyed] = {}
        for role, watches in self._watches.items():
            places, identities = pairs(instance.take(pa.array(watches.operation)), watches.key)
            self._keyed[role] = Keyed(places.copy(), identities.copy(), watches.required)
        condition = operations.table["condition"].cast(pa.string())
        self._any, self._then = (flags(pc.equal(condition, value)) for value in ("any", "then"))
        self._check()

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._events, self._words.combine, self._each)

    @cached_property
    def _levels(self) -> Lines:
        if self._own_levels is None and self._words.combine != "sum":  # a level is the last value, of either's lines
            return self._lines
        return Lines(self._events if self._own_levels is None else self._own_levels, "last", self._each)

    def _check(self) -> None:
        """Raise `SchemaError` where the words and the watches contradict each other."""
        for wrong, why in contradictions(self._watches, self._then, self._words):
            if wrong.any():
                op_id = self._operations.table["op_id"][int(np.flatnonzero(wrong)[0])].as_py()
                raise SchemaError(f"operations: {op_id!r} {why}")
        if "deadline" in self._operations.table.column_names and (
            self._words.calendar is not None or len(self._watches["pause"].operation)
        ):
            raise SchemaError(
                "operations: a column deadline does not go with a calendar or a watch that pauses: it is an instant; "
                "give a column timeout or timeout_ms"
            )

    # -- the deadline

    def _due(self, rows: Integers, times: Integers, amounts: Integers) -> Integers:
        """Return the first instant from `times` at which each operation's countdown has run for its amount."""
        calendar = self._words.calendar
        readings = times if calendar is None else calendar.elapsed(times)
        due = np.where(amounts > _LATEST - np.maximum(readings, 0), NEVER, readings + amounts)
        watches = self._watches["pause"]
        if len(watches.operation):
            watch_of = np.full(self._rows, -1)
            watch_of[watches.operation] = np.arange(len(watches.operation))
            some = np.flatnonzero(watch_of[rows] >= 0)
            due[some] = self._levels.run(
                self._keyed["pause"].take(watch_of[rows[some]]),
                times[some],
                readings[some],
                amounts[some],
                (lambda at: at) if calendar is None else calendar.elapsed,
            )
        return due if calendar is None else calendar.due(times, due)

    def _last(self, starts: Integers, deadlines: Integers) -> Integers:
        """Return the last instant at which an event is in time."""
        if self._words.deadline == "inclusive":
            return np.minimum(deadlines, _LATEST)
        return np.minimum(np.maximum(starts, deadlines - 1), _LATEST)

    def _deadlines(self) -> Integers:
        deadlines = self._operations.deadline
        timeout = self._timeout = deadlines - self._start
        if "deadline" not in self._operations.table.column_names:
            deadlines = self._due(np.arange(self._rows), self._start, timeout)
        watches = self._watches["extend"]
        if not len(watches.operation):
            return deadlines
        extension = self._extension(timeout)
        rows, first = spans(watches.operation)
        begin = self._start - 1 if self._words.count == "from_start" else self._start
        deadlines = deadlines.copy()
        while len(rows):  # an iteration goes as far as one extension reaches
            of = _spans(first, watches.operation, rows)
            lasts = self._last(self._start[rows], deadlines[rows])
            counts = np.diff(np.append(of.begins, len(of.watches)))
            latest = self._lines.last_up_to(self._keyed["extend"].take(of.watches), np.repeat(lasts, counts))
            latest = np.maximum.reduceat(latest, of.begins)
            counted = latest > begin[rows]
            rows, first, latest = rows[counted], first[counted], latest[counted]
            later = self._due(rows, latest, extension[rows])
            changed = later > deadlines[rows]
            rows, first = rows[changed], first[changed]
            deadlines[rows] = later[changed]
        return deadlines

    def _extension(self, timeout: Integers) -> Integers:
        table = self._operations.table
        for name, unit in (("extend_ms", 1000), ("extend", 1)):
            if name in table.column_names:
                own = integers(table[name], f"operations: {name}")
                return np.where(missing(table[name]), timeout, np.minimum(own, _LATEST // unit) * unit)
        return timeout

    # -- the condition

    def _completed(self, deadlines: Integers) -> tuple[Integers, _By, Integers]:
        """Return when the condition first holds or `NEVER`, by which watch, and how many events served."""
        words, none = self._words, np.full(self._rows, -1)
        lasts = self._last(self._start, deadlines)
        if words.holds == "at_deadline":
            met = np.where(deadlines == NEVER, NEVER, lasts)
            holds, by = self._holding(met)
            return np.where(holds, deadlines, NEVER), by._replace(at=deadlines), none
        reached = self._met_together(lasts)
        by = self._holding(reached)[1] if words.details else _By(none, none)
        if self._then.any():
            steps, last_step = self._in_order(lasts)
            reached = np.where(self._then, steps, reached)
            by = _By(np.where(self._then, last_step, by.watch), np.where(self._then, steps, by.at))
        return reached, by, none

    def _met_together(self, lasts: Integers) -> Integers:
        """Return the first instant at which all, or any, of the watches are met; `NEVER` for steps."""
        watches, keyed = self._watches["complete"], self._keyed["complete"]
        reached = np.full(self._rows, NEVER)
        search = self._start
        rows, first = spans(watches.operation)
        if len(rows) == len(watches.operation) and not self._then.any():
            reached[rows] = self._lines.first_met(keyed, search[rows], search[rows], lasts[rows], self._words.count)
            return reached
        search, keep = search.copy(), ~self._then[rows]
        rows, first = rows[keep], first[keep]
        while len(rows):
            of = _spans(first, watches.operation, rows)
            each = np.repeat(rows, np.diff(np.append(of.begins, len(of.watches))))
            met = self._lines.first_met(
                keyed.take(of.watches), self._start[each], search[each], lasts[each], self._words.count
            )
            alls, some = np.maximum.reduceat(met, of.begins), np.minimum.reduceat(met, of.begins)
            # Met by one watch and no more by another: from there on, once more. (The greatest never falls.)
            again = ~self._any[rows] & (some != alls) & (alls != NEVER) & (self._words.combine != "max")
            reached[rows] = np.where(self._any[rows], some, alls)
            search[rows] = alls
            rows, first = rows[again], first[again]
        return reached

    def _holding(self, times: Integers) -> tuple[npt.NDArray[np.bool_], _By]:
        """Return whether the condition holds at `times`, and by which watch: not of steps."""
        watches, keyed, none = self._watches["complete"], self._keyed["complete"], np.full(self._rows, -1)
        of = watches.operation
        rows, first = spans(of)
        at, held = np.minimum(times[of], _LATEST), times[of] != NEVER
        if self._words.holds == "at_deadline" or len(rows) < len(of):  # else it is met where its operation is
            held &= self._lines.held_at(keyed, self._start[of], at, self._words.count) != 0
        holds = np.zeros(self._rows, np.bool_)
        if len(rows):
            every, some = np.logical_and.reduceat(held, first), np.logical_or.reduceat(held, first)
            holds[rows] = np.where(self._any[rows], some, every)
        if not self._words.details:
            return holds, _By(none, none)
        if self._words.holds == "at_deadline":
            return holds, self._decided(watches, held, np.zeros(len(of), np.int64), latest=False)
        since = self._lines.since(keyed, self._start[of], at, self._words.count)
        early, late = (self._decided(watches, held, since, latest=latest) for latest in (False, True))
        return holds, _By(np.where(self._any, early.watch, late.watch), np.where(self._any, early.at, late.at))

    def _decided(self, watches: RoleWatches, held: npt.NDArray[np.bool_], since: Integers, *, latest: bool) -> _By:
        """Return each operation's earliest or latest watch of those that hold; of several at once the first."""
        number, at = np.full(self._rows, -1), np.full(self._rows, NEVER)
        some = np.flatnonzero(held)
        of = watches.operation[some]
        rows, first = spans(of)
        if len(rows) == len(some):
            number[rows], at[rows] = some, since[some]
        elif len(rows):
            decisive = (np.maximum if latest else np.minimum).reduceat(since[some], first)
            at[rows] = decisive
            some = some[since[some] == at[of]]
            rows, first = spans(watches.operation[some])
            number[rows] = some[first]
        return _By(number, at)

    def _in_order(self, lasts: Integers) -> tuple[Integers, Integers]:
        """Return when the last step was met, of operations with steps, and which watch that is."""
        watches, keyed = self._watches["complete"], self._keyed["complete"]
        count: Count = "after_start" if self._words.count == "always" else self._words.count
        rows, first = spans(watches.operation)
        steps = np.diff(np.append(first, len(watches.operation)))
        keep = self._then[rows]
        rows, first, steps = rows[keep], first[keep], steps[keep]
        at, last_step = np.full(self._rows, NEVER), np.full(self._rows, -1)
        last_step[rows] = first + steps - 1
        now, lasts = self._start.copy(), lasts.copy()
        number = 0
        while len(rows):
            if number and self._words.within == "step":
                deadlines = self._due(rows, now[rows], self._timeout[rows])
                self._step_deadline[rows] = deadlines
                lasts[rows] = self._last(now[rows], deadlines)
            met = self._lines.first_met(keyed.take(first + number), now[rows], now[rows], lasts[rows], count)
            number += 1
            ended = met != NEVER
            over = ended & (steps == number)
            at[rows[over]] = met[over]
            going = ended & ~over
            rows, first, steps, met = rows[going], first[going], steps[going], met[going]
            now[rows] = met
        return at, last_step

    _step_deadline: Integers
    """With steps of their own time-outs: the deadline that stands at the end."""

    def _served(self, deadlines: Integers, cancelled: Integers) -> tuple[Integers, _By, Integers]:
        """Hand out each event to one operation that has not ended (O7). Return as `_completed`."""
        words, keyed = self._words, self._keyed["complete"]
        newest = words.serves == "newest"
        lasts = np.minimum(self._last(self._start, deadlines), cancelled)
        met, brought, self.served, self.lacking = (np.zeros(self._rows, np.int64) for _ in range(4))

        def serve(lines: Timelines, rows: Integers, keys: Integers) -> None:
            order = np.lexsort((self._start[rows], keys))
            rows, keys = self._by_ids(rows[order], keys[order], newest=newest), keys[order]
            # Operations of keys without events come first: their key is an empty one before all others.
            ends = np.searchsorted(keys, np.arange(-1, len(lines.begins) - 1), side="right").astype(np.int64)
            required, out = keyed.required[rows], [np.zeros(len(rows), np.int64) for _ in range(3)]
            owners = np.full(len(lines.at), -1)
            Waiting(len(rows), len(lines.at)).serve(
                lines.begins,
                lines.at,
                lines.values,
                ends.data,
                self._start[rows].data,
                lasts[rows].data,
                required.data,
                *(column.data for column in out),
                *([owners.data] if self._keep_unused else ()),
                newest=newest,
                count=words.count,
                add=words.combine == "sum",
            )
            met[rows], brought[rows], self.served[rows] = out
            self.lacking[rows] = required
            if self._keep_unused:
                keys = np.repeat(np.stack([lines.places, lines.identities], axis=1), np.diff(lines.begins), axis=0)
                self.unused.append(np.column_stack([keys, lines.values, lines.at])[owners < 0])

        Lines(self._unserved, "each", self._each).by_shard(keyed, serve)
        return met, _By(np.arange(self._rows), brought), self.served

    def _by_ids(self, rows: Integers, keys: Integers, *, newest: bool) -> Integers:
        """Sort operations of one key and start by their ids, the greatest first with `newest`; the rest is sorted."""
        start = self._start[rows]
        same = np.concatenate(([False], (keys[1:] == keys[:-1]) & (start[1:] == start[:-1]), [False]))
        tied = np.flatnonzero(same[1:] | same[:-1])
        if not len(tied):
            return rows
        ids = codes(self._operations.table["op_id"].take(pa.array(rows[tied])))
        order = np.lexsort((-ids if newest else ids, np.cumsum(~same[tied])))
        rows = rows.copy()
        rows[tied] = rows[tied[order]]
        return rows

    # -- cancelled

    def _cancelled(self, deadlines: Integers) -> tuple[Integers, _By]:
        watches, keyed = self._watches["cancel"], self._keyed["cancel"]
        at, none = np.full(self._rows, NEVER), np.full(self._rows, -1)
        of = watches.operation
        if not len(of):
            return at, _By(none, none)
        lasts = self._last(self._start, deadlines)
        met = self._lines.first_met(keyed, self._start[of], self._start[of], lasts[of], self._words.count)
        rows, first = spans(of)
        at[rows] = np.minimum.reduceat(met, first)
        if not self._words.details:
            return at, _By(none, none)
        now = np.minimum(at[of], _LATEST)
        held = (self._lines.held_at(keyed, self._start[of], now, self._words.count) != 0) & (at[of] != NEVER)
        since = self._lines.since(keyed, self._start[of], now, self._words.count)
        return at, self._decided(watches, held, since, latest=False)

    # -- all together

    def outcomes(self) -> pa.Table:
        deadlines = self._deadlines()
        self._step_deadline = deadlines.copy()
        if self._words.serves != "every":  # whom an event serves depends on who was cancelled before
            cancelled, cancelled_by = self._cancelled(deadlines)
            completed, by, served = self._served(deadlines, cancelled)
        else:  # until when it may be cancelled depends on its steps
            completed, by, served = self._completed(deadlines)
            deadlines = self._step_deadline
            cancelled, cancelled_by = self._cancelled(deadlines)
        outcome = np.where(
            (completed != NEVER) & (completed <= cancelled),
            _COMPLETED,
            np.where(cancelled != NEVER, _CANCELLED, np.where(deadlines == NEVER, _PENDING, _EXPIRED)),
        )
        at = np.choose(outcome, (completed, cancelled, deadlines, np.zeros(self._rows, np.int64)))
        never_ends = outcome == _PENDING
        columns: dict[str, Any] = {
            **{name: self._operations.table[name].cast(pa.string()) for name in ("instance", "op_id", "kind")},
            "outcome": pa.DictionaryArray.from_arrays(pa.array(outcome.astype(np.int8)), pa.array(_OUTCOMES)).cast(
                pa.string()
            ),
            "at": pa.array(at, mask=never_ends).cast(pa.timestamp("us", "UTC")),
            "waited_ms": pa.array((at - self._start) / 1000, mask=never_ends),
        }
        if not self._words.details:
            return pa.table(columns, OUTCOMES)
        lasts = np.where(outcome == _EXPIRED, self._last(self._start, deadlines), np.where(never_ends, _LATEST, at))
        if self._words.holds == "at_deadline":
            lasts = np.where(outcome == _COMPLETED, self._last(self._start, deadlines), lasts)
        columns["completed_by"] = self._struct("complete", by, outcome == _COMPLETED)
        columns["cancelled_by"] = self._struct("cancel", cancelled_by, outcome == _CANCELLED)
        columns["counted"] = pa.array(self._counted(lasts, served))
        return pa.table(columns, DETAILS)

    def _struct(self, role: Role, by: _By, here: npt.NDArray[np.bool_]) -> pa.Array:
        here = here & (by.watch >= 0)
        key = self._watches[role].key.take(pa.array(by.watch, mask=~here)).combine_chunks()
        at = pa.array(np.where(here, by.at, 0), mask=~here).cast(pa.timestamp("us", "UTC"))
        fields = [DETAILS.field("completed_by").type.field(n) for n in range(2)]
        return pa.StructArray.from_arrays([key, at], fields=fields, mask=pa.array(~here))

    def _counted(self, lasts: Integers, served: Integers) -> Integers:
        """Return how many events counted up to `lasts`: of the watches that extend, or of those that complete."""
        after: Count = "from_start" if self._words.count == "from_start" else "after_start"
        counts = np.zeros(self._rows, np.int64)

        def add(role: Role, watches: Integers, count: Count) -> None:
            rows = self._watches[role].operation[watches]
            keyed = self._keyed[role].take(watches)
            np.add.at(counts, rows, self._lines.counted(keyed, self._start[rows], lasts[rows], count))

        extending, of = self._watches["extend"].operation, self._watches["complete"].operation
        extended = np.zeros(self._rows, np.bool_)
        extended[extending] = True
        add("extend", np.arange(len(extending)), after)
        if self._words.serves != "every":
            return np.where(extended, counts, served)
        add("complete", np.flatnonzero(self._then[of] & ~extended[of]), after)
        add("complete", np.flatnonzero(~self._then[of] & ~extended[of]), self._words.count)
        return counts


class _Spans(NamedTuple):
    watches: Integers  # their numbers, operation by operation
    begins: Integers  # where those of each operation begin


def _spans(first: Integers, operation: Integers, rows: Integers) -> _Spans:
    """Return the watches of some operations, whose first ones are known."""
    counts = np.bincount(operation, minlength=int(rows.max()) + 1)[rows]
    begins = np.cumsum(counts) - counts
    return _Spans(np.repeat(first - begins, counts) + np.arange(counts.sum()), begins)
