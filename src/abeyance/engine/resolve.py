"""When each key's progress was first reached: events in, a staircase a key out, operations looked up in it.

Progress need not be monotone. Over the *running maximum* of a key's progress the condition "at least `required`" comes
true once and stays true, at

    F(required) = min { at : progress >= required }

over all events of the key, whatever the operation's start. So the outcome laws O1-O3 come down to one function a key,
which is a staircase: walk its events from the greatest progress down, and keep each that came earlier than all of those
before it. An operation with a start and a deadline is then one binary search: F at or before the start completes at the
start, F up to the deadline completes at F, else it expires.

Because the start plays no part, a key may be cut anywhere along its *progress*: a piece needs no event of another, only
the least `at` of all that lies above it. (The pipeline cuts hot keys so.)

A key is two 64-bit integers, `place` and `identity`: the caller's hashes, or row numbers. Ties in time need no sorting:
an event at the very start or deadline is one comparison, progress first (O3).

Cost: O(n log n) for n events (merge sort, Knuth, TAOCP 3, 5.2.4), O(log n) an operation. Memory: 40 bytes an event
while it is built, 32 a step that was kept. Nothing is shared: staircases never change once built.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Literal

from abeyance.engine.buffers import integers, same_length, writable_integers, zeros

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

NEVER = (1 << 63) - 1  # what `first_reached` writes for "not in time"

_NEVER = NEVER  # C constants when compiled
_WIDTH = 4
_MOST_ROWS = (1 << 31) - 1  # a row number is 32 bits


class Staircases:
    """The staircases of all the keys that some events name."""

    __slots__ = ("_at", "_identity", "_place", "_progress", "_steps")

    def __init__(self, events: ReadableBuffer) -> None:
        """Build from rows of four integers: place, identity, progress, at; in any order, duplicates and all.

        Raises TypeError or ValueError for a buffer that is no whole number of such rows of 64-bit integers.
        """
        rows = integers(events, "events")
        if len(rows) % _WIDTH:
            raise ValueError(f"events has {len(rows)} integers, which is no whole number of rows of {_WIDTH}")
        count = len(rows) // _WIDTH
        if count > _MOST_ROWS:
            raise ValueError(f"{count:,} events are too many at a time: the most is {_MOST_ROWS:,}")
        order = zeros("i", count)
        other = zeros("i", count)
        if _sort(rows, order, other):
            order = other
        self._steps = _count_steps(rows, order)
        self._place = zeros("q", self._steps)
        self._identity = zeros("q", self._steps)
        self._progress = zeros("q", self._steps)
        self._at = zeros("q", self._steps)
        self._keep(rows, order)

    def __len__(self) -> int:
        """How many steps there are, over all keys."""
        return self._steps

    @property
    def steps(self) -> memoryview:
        """The steps, rows as events are: by place, by identity, from the greatest progress down. A copy."""
        rows = zeros("q", self._steps * _WIDTH)
        self._copy(rows)
        return memoryview(rows)

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
        """Write into `reached` when each operation's condition first held in its time, or NEVER. O(log n) each.

        One element an operation in every column, times in the events' unit. The condition is looked at from the start
        to the deadline, both included, or the deadline excluded; one that holds at the start was reached there in any
        case. Raises ValueError for columns of different length, TypeError for other kinds of buffer.
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

    # -- in C when compiled --------------------------------------------------------------------------------

    def _keep(self, rows: memoryview, order: array[int]) -> None:
        """Fill the columns with the rows that are steps."""
        kept = 0
        last = -1
        for position in range(len(order)):
            row = order[position]
            if _is_step(rows, last, row) and kept < self._steps:
                last = row
                self._place[kept] = rows[_WIDTH * row]
                self._identity[kept] = rows[_WIDTH * row + 1]
                self._progress[kept] = rows[_WIDTH * row + 2]
                self._at[kept] = rows[_WIDTH * row + 3]
                kept += 1

    def _copy(self, rows: array[int]) -> None:
        for step in range(self._steps):
            rows[_WIDTH * step] = self._place[step]
            rows[_WIDTH * step + 1] = self._identity[step]
            rows[_WIDTH * step + 2] = self._progress[step]
            rows[_WIDTH * step + 3] = self._at[step]

    def _judge(
        self,
        place: memoryview,
        identity: memoryview,
        required: memoryview,
        starts: memoryview,
        deadlines: memoryview,
        exclusive: bool,
        reached: memoryview,
    ) -> None:
        for row in range(len(place)):
            step = self._find(place[row], identity[row], required[row])
            if step < 0:
                reached[row] = _NEVER
                continue
            at = self._at[step]
            if at <= starts[row]:
                reached[row] = starts[row]
            elif at < deadlines[row] or (at == deadlines[row] and not exclusive):
                reached[row] = at
            else:
                reached[row] = _NEVER

    def _find(self, place: int, identity: int, required: int) -> int:
        """The key's last step, walking down, whose progress is at least `required`; -1 if there is none."""
        low = 0
        high = self._steps
        while low < high:  # steps before `low` come no later than the one looked for, those from `high` on do
            middle = (low + high) >> 1
            if self._comes_after(middle, place, identity, required):
                high = middle
            else:
                low = middle + 1
        low -= 1
        if low >= 0 and self._place[low] == place and self._identity[low] == identity:
            return low
        return -1

    def _comes_after(self, step: int, place: int, identity: int, required: int) -> bool:
        if self._place[step] != place:
            return self._place[step] > place
        if self._identity[step] != identity:
            return self._identity[step] > identity
        return self._progress[step] < required


def _comes_before(rows: memoryview, one: int, other: int) -> bool:
    """The order of events: by key, then the greatest progress first, then the earliest."""
    one *= _WIDTH
    other *= _WIDTH
    if rows[one] != rows[other]:
        return rows[one] < rows[other]
    if rows[one + 1] != rows[other + 1]:
        return rows[one + 1] < rows[other + 1]
    if rows[one + 2] != rows[other + 2]:
        return rows[one + 2] > rows[other + 2]
    return rows[one + 3] < rows[other + 3]


def _is_step(rows: memoryview, last: int, row: int) -> bool:
    """Whether `row`, next in order after the step `last` (-1: none), is one: another key, or earlier."""
    if last < 0:
        return True
    last *= _WIDTH
    row *= _WIDTH
    return rows[row] != rows[last] or rows[row + 1] != rows[last + 1] or rows[row + 3] < rows[last + 3]


def _count_steps(rows: memoryview, order: array[int]) -> int:
    steps = 0
    last = -1
    for position in range(len(order)):
        if _is_step(rows, last, order[position]):
            last = order[position]
            steps += 1
    return steps


def _sort(rows: memoryview, order: array[int], other: array[int]) -> bool:
    """Sort row numbers by bottom-up merging; whether the outcome stands in `other`, else in `order`."""
    count = len(order)
    for position in range(count):
        order[position] = position
    width = 1
    there = False
    while width < count:
        low = 0
        while low < count:
            middle = min(low + width, count)
            high = min(middle + width, count)
            if there:
                _merge(rows, other, order, low, middle, high)
            else:
                _merge(rows, order, other, low, middle, high)
            low = high
        there = not there
        width *= 2
    return there


def _merge(rows: memoryview, source: array[int], target: array[int], low: int, middle: int, high: int) -> None:
    """Merge two sorted runs, [low, middle) and [middle, high), into the same places of `target`."""
    left = low
    right = middle
    for position in range(low, high):
        if right >= high or (left < middle and not _comes_before(rows, source[right], source[left])):
            target[position] = source[left]
            left += 1
        else:
            target[position] = source[right]
            right += 1
