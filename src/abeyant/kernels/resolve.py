"""Find when each key first reached a progress: build a staircase per key from events, and look operations up in it.

Progress need not be monotone. Over the *running maximum* of a key's progress the condition "at least `required`" comes
true once and stays true, at

    F(required) = min { at : progress >= required }

over all events of the key, whatever the operation's start. So the outcome laws O1-O3 need only this function F for each
key. Its graph is a staircase: walk the key's events from the greatest progress down, and keep each event (a *step*)
that came earlier than all events before it. Resolving an operation is one binary search for F: with F at or before the
start it completes at the start, with F at or before the deadline it completes at F, else it expires.

Staircases are merged by building one from the steps of both, because an event that is no step of its chunk is no step
overall. So a table's events can be reduced chunk by chunk, anywhere, in any order.

Because the start plays no part, the events of a key may be split into ranges of *progress*. A range needs no events of
other ranges, only the least `at` of all events with a greater progress. (The pipeline splits hot keys in this way.)

A key is two 64-bit integers, `place` and `identity`: the caller's hashes, or row numbers. Ties in time need no sorting:
one comparison decides about an event at the very start or deadline, because progress comes first (O3).

Cost: O(1) per operation where places are spread evenly, O(log n) in any case: a *directory* of the places shows which
few steps to search. Building sorts, see `rows`: O(n) where places are spread evenly. Memory: 32 bytes per event while
building, twice as much if one key has all events; then 32 bytes per step, and 8 bytes for every four steps.

When compiled, building and looking up release the global interpreter lock. Staircases never change once built.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.kernels.buffers import integers, same_length, writable_integers, zeros

if TYPE_CHECKING or not cython.compiled:
    from abeyant.kernels.rows import WIDTH, coarse_buckets, fine_buckets, half_place, sort, spread
else:
    from cython.cimports.abeyant.kernels.rows import WIDTH, coarse_buckets, fine_buckets, half_place, sort, spread

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from abeyant.kernels.rows import Integers

NEVER = (1 << 63) - 1  # written by `first_reached` for "not in time"

_NEVER = NEVER  # C constants when compiled
_WIDTH = WIDTH
_SPAN = 4  # steps to an entry of the directory, on the average


class Staircases:
    """The staircases of all keys of some events."""

    __slots__ = ("_count", "_directory", "_low", "_shift", "_steps")

    def __init__(self, events: ReadableBuffer) -> None:
        """Build from rows of four integers: place, identity, progress, at; in any order, duplicates allowed.

        Raises TypeError for a buffer of anything but 64-bit integers, ValueError unless it has a whole number of rows.
        """
        rows = integers(events, "events")
        if len(rows) % _WIDTH:
            raise ValueError(f"events has {len(rows)} integers, not a multiple of {_WIDTH}, the width of a row")
        steps = zeros("q", len(rows))
        ends = zeros("q", coarse_buckets(len(rows) // _WIDTH))
        del ends[self._spread(rows, steps, ends) :]
        largest = max((high - low for low, high in pairwise((0, *ends))), default=0)
        self._count = self._keep(steps, ends, zeros("q", largest * _WIDTH), zeros("q", fine_buckets(largest)))
        del steps[self._count * _WIDTH :]
        self._steps = steps
        self._directory = zeros("q", self._count // _SPAN + 2)
        self._low = self._shift = 0
        self._fill_directory()

    def __len__(self) -> int:
        """Return the number of steps of all keys."""
        return self._count

    @property
    def steps(self) -> memoryview:
        """Return the steps as rows like the events, sorted by place, identity, descending progress. Copies nothing."""
        if not self._count:  # also if `__init__` was never called: compiled code has no buffer then
            return memoryview(zeros("q", 0))
        return memoryview(self._steps)

    def first_reached(
        self,
        places: ReadableBuffer,
        identities: ReadableBuffer,
        required: ReadableBuffer,
        starts: ReadableBuffer,
        deadlines: ReadableBuffer,
        reached: WriteableBuffer,
        *,
        deadline: Literal["inclusive", "exclusive"] = "inclusive",
    ) -> None:
        """Write into `reached` the time at which each operation's condition first held, or NEVER. O(1) each, see above.

        Every column has one element per operation; times are in the events' unit. The condition is checked from the
        start to the deadline, both included, or the deadline excluded; at the start it is checked in any case. Raises
        ValueError for columns of different length, TypeError for other kinds of buffer.
        """
        if deadline not in ("inclusive", "exclusive"):
            raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
        place = integers(places, "places")
        columns = []
        for name, buffer in (
            ("identities", identities),
            ("required", required),
            ("starts", starts),
            ("deadlines", deadlines),
        ):
            column = integers(buffer, name)
            same_length(name, column, "places", len(place))
            columns.append(column)
        out = writable_integers(reached, "reached")
        same_length("reached", out, "places", len(place))
        self._judge(place, columns[0], columns[1], columns[2], columns[3], deadline == "exclusive", out)

    def reach(self, asked: WriteableBuffer) -> None:
        """Replace `required`, in rows of (place, identity, required, any), by the first time it was reached, or NEVER.

        Starts and deadlines are not considered: the caller compares them with these times. The last integer of a row
        is left as it is. O(1) each, see above.

        Raises ValueError for a buffer that is read-only or not a whole number of such rows, TypeError for other kinds.
        """
        rows = writable_integers(asked, "asked")
        if len(rows) % _WIDTH:
            raise ValueError(f"asked has {len(rows)} integers, not a multiple of {_WIDTH}, the width of a row")
        self._reach(rows)

    # -- in C when compiled, without the interpreter's lock ------------------------------------------------

    def _spread(self, rows: Integers, steps: Integers, ends: Integers) -> int:
        with cython.nogil:
            return spread(rows, steps, ends)

    def _keep(self, rows: Integers, ends: Integers, bucket: Integers, fine: Integers) -> int:
        """Move the rows that are steps to the front, sorted; return their number. `spread` has prepared `rows`."""
        with cython.nogil:
            kept = 0
            begin = 0
            for number in range(len(ends)):
                end = ends[number]
                sort(rows, begin, end, bucket, fine)
                for row in range(end - begin):
                    if kept == 0 or _is_step(rows, kept - 1, bucket, row):
                        for column in range(_WIDTH):
                            rows[_WIDTH * kept + column] = bucket[_WIDTH * row + column]
                        kept += 1
                begin = end
        return kept

    def _fill_directory(self) -> None:
        """Fill the directory: `_directory[n]` is the first step whose entry is n or more; the last, the step count."""
        count = self._count
        if count == 0:
            return
        self._low = half_place(self._steps, 0)
        width = half_place(self._steps, count - 1) - self._low
        while width >> self._shift >= len(self._directory) - 1:
            self._shift += 1
        entry = 0
        for step in range(count):
            own = (half_place(self._steps, step) - self._low) >> self._shift
            while entry <= own:
                self._directory[entry] = step
                entry += 1
        while entry < len(self._directory):
            self._directory[entry] = count
            entry += 1

    def _judge(
        self,
        place: Integers,
        identity: Integers,
        required: Integers,
        starts: Integers,
        deadlines: Integers,
        exclusive: bool,
        reached: Integers,
    ) -> None:
        with cython.nogil:
            for row in range(len(place)):
                reached[row] = self._first(
                    place[row], identity[row], required[row], starts[row], deadlines[row], exclusive
                )

    def _reach(self, asked: Integers) -> None:
        with cython.nogil:
            for position in range(len(asked) // _WIDTH):
                row = _WIDTH * position
                step = self._find(asked[row], asked[row + 1], asked[row + 2])
                asked[row + 2] = _NEVER if step < 0 else self._steps[_WIDTH * step + 3]

    def _first(self, place: int, identity: int, required: int, start: int, deadline: int, exclusive: bool) -> int:
        step = self._find(place, identity, required)
        if step < 0:
            return _NEVER
        at = self._steps[_WIDTH * step + 3]
        if at <= start:
            return start
        if at < deadline or (at == deadline and not exclusive):
            return at
        return _NEVER

    def _find(self, place: int, identity: int, required: int) -> int:
        """Return the key's step with the least progress that is at least `required`; -1 if there is none."""
        if (place >> 1) < self._low or self._count == 0:
            return -1
        entry = ((place >> 1) - self._low) >> self._shift
        if entry >= len(self._directory) - 1:
            return -1
        low = self._directory[entry]
        high = self._directory[entry + 1]
        while low < high:  # steps before `low` are at or before the wanted step, steps from `high` on are after it
            middle = (low + high) >> 1
            if self._is_after(middle, place, identity, required):
                high = middle
            else:
                low = middle + 1
        low -= 1
        if low >= 0 and self._steps[_WIDTH * low] == place and self._steps[_WIDTH * low + 1] == identity:
            return low
        return -1

    def _is_after(self, step: int, place: int, identity: int, required: int) -> bool:
        step *= _WIDTH
        if self._steps[step] != place:
            return self._steps[step] > place
        if self._steps[step + 1] != identity:
            return self._steps[step + 1] > identity
        return self._steps[step + 2] < required


def _is_step(steps: Integers, last: int, rows: Integers, row: int) -> bool:
    """Return whether `row`, the next in order after the step `last`, is a step too: of another key, or earlier."""
    last *= _WIDTH
    row *= _WIDTH
    return rows[row] != steps[last] or rows[row + 1] != steps[last + 1] or rows[row + 3] < steps[last + 3]
