"""When each key's progress was first reached: events in, a staircase a key out, operations looked up in it.

Progress need not be monotone. Over the *running maximum* of a key's progress the condition "at least `required`" comes
true once and stays true, at

    F(required) = min { at : progress >= required }

over all events of the key, whatever the operation's start. So the outcome laws O1-O3 come down to one function a key,
which is a staircase: walk its events from the greatest progress down, and keep each that came earlier than all of those
before it. An operation with a start and a deadline is then one binary search: F at or before the start completes at the
start, F up to the deadline completes at F, else it expires.

Staircases are merged by building one from the steps of both: what is no step among some events is none among more. So
a table's events can be reduced piece by piece, anywhere, in any order.

Because the start plays no part, a key may be cut anywhere along its *progress*: a piece needs no event of another, only
the least `at` of all that lies above it. (The pipeline cuts hot keys so.)

A key is two 64-bit integers, `place` and `identity`: the caller's hashes, or row numbers. Ties in time need no sorting:
an event at the very start or deadline is one comparison, progress first (O3).

Cost: O(log n) an operation. Building sorts: O(n) by place where places are hashes, then each key's k events by merging
in O(k log k), less where they are sorted runs already, such as the steps of staircases (bucket sort and merge sort,
Knuth, TAOCP 3, 5.2.5 and 5.2.4). Memory: 40 bytes an event while it is built, 32 a step that was kept. Nothing is
shared: staircases never change once built.
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
_BUCKET = 8  # rows to a bucket, on the average, where places are spread evenly
_BLOCK = 8  # so many rows are sorted by insertion


class Staircases:
    """The staircases of all the keys that some events name."""

    __slots__ = ("_count", "_steps")

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
        _sort(rows, order, other)
        self._count = _count_steps(rows, order)
        self._steps = zeros("q", self._count * _WIDTH)
        self._keep(rows, order)

    def __len__(self) -> int:
        """How many steps there are, over all keys."""
        return self._count

    @property
    def steps(self) -> memoryview:
        """The steps, rows as events are: by place, by identity, from the greatest progress down. Nothing is copied."""
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
        """Copy the rows that are steps."""
        kept = 0
        last = -1
        for position in range(len(order)):
            row = order[position]
            if _is_step(rows, last, row) and kept < self._count:
                last = row
                for column in range(_WIDTH):
                    self._steps[_WIDTH * kept + column] = rows[_WIDTH * row + column]
                kept += 1

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
            at = self._steps[_WIDTH * step + 3]
            if at <= starts[row]:
                reached[row] = starts[row]
            elif at < deadlines[row] or (at == deadlines[row] and not exclusive):
                reached[row] = at
            else:
                reached[row] = _NEVER

    def _find(self, place: int, identity: int, required: int) -> int:
        """The key's last step, walking down, whose progress is at least `required`; -1 if there is none."""
        low = 0
        high = self._count
        while low < high:  # steps before `low` come no later than the one looked for, those from `high` on do
            middle = (low + high) >> 1
            if self._comes_after(middle, place, identity, required):
                high = middle
            else:
                low = middle + 1
        low -= 1
        if low >= 0 and self._steps[_WIDTH * low] == place and self._steps[_WIDTH * low + 1] == identity:
            return low
        return -1

    def _comes_after(self, step: int, place: int, identity: int, required: int) -> bool:
        step *= _WIDTH
        if self._steps[step] != place:
            return self._steps[step] > place
        if self._steps[step + 1] != identity:
            return self._steps[step + 1] > identity
        return self._steps[step + 2] < required


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


# -- sorting row numbers: into buckets by place, then each bucket ------------------------------------------------


def _sort(rows: memoryview, order: array[int], other: array[int]) -> None:
    """Fill `order` with the row numbers in their order; `other`, as long, is room for merging."""
    count = len(order)
    if count == 0:
        return
    low, high = _place(rows, 0), _place(rows, 0)
    for row in range(count):
        low = min(low, _place(rows, row))
        high = max(high, _place(rows, row))
    shift = 0
    while (high - low) >> shift >= count // _BUCKET + 1:
        shift += 1
    ends = zeros("i", ((high - low) >> shift) + 1)
    _fill_buckets(rows, order, ends, low, shift)
    begin = 0
    for bucket in range(len(ends)):
        _sort_bucket(rows, order, other, begin, ends[bucket])
        begin = ends[bucket]


def _place(rows: memoryview, row: int) -> int:
    """Half of a row's place, so that the difference of any two is a 64-bit integer."""
    return rows[_WIDTH * row] >> 1


def _fill_buckets(rows: memoryview, order: array[int], ends: array[int], low: int, shift: int) -> None:
    """Count the rows of each bucket, and put their numbers there; `ends`, zeros at first, are where buckets end."""
    for row in range(len(order)):
        ends[(_place(rows, row) - low) >> shift] += 1
    total = 0
    for bucket in range(len(ends)):
        count = ends[bucket]
        ends[bucket] = total
        total += count
    for row in range(len(order)):
        bucket = (_place(rows, row) - low) >> shift
        order[ends[bucket]] = row
        ends[bucket] += 1


def _sort_bucket(rows: memoryview, order: array[int], other: array[int], low: int, high: int) -> None:
    """Sort [low, high) of `order`: blocks by insertion, then bottom-up merging."""
    begin = low
    while begin < high:
        _insert(rows, order, begin, min(begin + _BLOCK, high))
        begin += _BLOCK
    width = _BLOCK
    there = False  # whether the outcome of the last pass stands in `other`
    while width < high - low:
        begin = low
        while begin < high:
            middle = min(begin + width, high)
            end = min(middle + width, high)
            if there:
                _merge(rows, other, order, begin, middle, end)
            else:
                _merge(rows, order, other, begin, middle, end)
            begin = end
        there = not there
        width *= 2
    if there:
        for position in range(low, high):
            order[position] = other[position]


def _insert(rows: memoryview, order: array[int], low: int, high: int) -> None:
    """Sort a few rows by insertion."""
    for position in range(low + 1, high):
        row = order[position]
        to = position
        while to > low and _comes_before(rows, row, order[to - 1]):
            order[to] = order[to - 1]
            to -= 1
        order[to] = row


def _merge(rows: memoryview, source: array[int], target: array[int], low: int, middle: int, high: int) -> None:
    """Merge two sorted runs, [low, middle) and [middle, high), into the same places of `target`."""
    left = low
    right = middle
    if middle < high and not _comes_before(rows, source[middle], source[middle - 1]):
        right = high  # one run already: only to be copied
        middle = high
    for position in range(low, high):
        if right >= high or (left < middle and not _comes_before(rows, source[right], source[left])):
            target[position] = source[left]
            left += 1
        else:
            target[position] = source[right]
            right += 1
