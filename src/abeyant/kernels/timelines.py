"""Timelines: every key's events in the order of time with their running values, for any `count` and `combine`.

`resolve` keeps only a key's staircase: the events that can decide an outcome if all events count. If only events after
the start count, or progress adds up, or the last event counts, any event may decide. So timelines keep all events,
sorted by key and time. Events of one instant are combined into one entry, called an *instant* (O5), and there is a tree
of maxima over blocks of instants (a segment tree: Bentley, 1977). One descent of the tree finds

    the first instant, from a given one on, that brings the value to `required`

for the maximum, the last value, and the sum (over running sums) alike.

A key is two 64-bit integers, `place` and `identity`, as in `resolve`. Its instants lie in one span (begin and end) of
columns that all keys share, and every look-up takes a span. So keys may be built shard by shard, by several threads.
Cost: building sorts, see `rows`; finding a span costs the same as in `resolve`; O(log n) per look-up. Memory: 16 bytes
per event, or 24 if events can be counted; 32 per key.

Sums saturate: beyond 64 bits they stay at the greatest or least integer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.kernels.buffers import integers, same_length, writable_integers, zeros

if TYPE_CHECKING or not cython.compiled:
    from abeyant.kernels.rows import COARSE, WIDTH, coarse_buckets, fine_buckets, sort, spread
else:
    from cython.cimports.abeyant.kernels.rows import COARSE, WIDTH, coarse_buckets, fine_buckets, sort, spread

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from abeyant.kernels.rows import Integers

NEVER = (1 << 63) - 1
"""Written instead of a time if the value is not reached in time."""
BEFORE = -(1 << 63)
"""Written instead of the time of the last event if there is no event."""

Combine = Literal["max", "sum", "last", "each"]
Count = Literal["always", "from_start", "after_start"]
COMBINES: Final[tuple[Combine, ...]] = ("max", "sum", "last", "each")
COUNTS: Final[tuple[Count, ...]] = ("always", "from_start", "after_start")

_NEVER = NEVER  # C constants when compiled
_BEFORE = BEFORE
_WIDTH = WIDTH
_SUM = 1
_EACH = 3
_ALWAYS = 0
_FROM_START = 1
_SPAN = 2  # keys to an entry of the directory, on the average
_BLOCK = 4  # bits of an instant's number within its block


class Keys:
    """Sorted keys, each with the span of its instants."""

    __slots__ = ("_begins", "_count", "_directory", "_identities", "_low", "_places", "_shift")

    def __init__(self, places: ReadableBuffer, identities: ReadableBuffer, begins: ReadableBuffer) -> None:
        """Take sorted keys. `begins` has the first instant of each key, and finally the end of the last key's span."""
        columns = _columns(places=places, identities=identities)
        ends = integers(begins, "begins")
        same_length("begins", ends, "places plus 1", len(columns[0]) + 1)
        self._places, self._identities, self._begins = columns[0], columns[1], ends
        self._count, self._low, self._shift = len(columns[0]), 0, 0
        self._directory = zeros("q", self._count // _SPAN + 2)
        self._fill_directory()

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._count

    @property
    def begins(self) -> memoryview:
        """Return the first instant of each key, and finally the end of the last key's span. Nothing is copied."""
        return memoryview(self._begins) if self._count else memoryview(zeros("q", 0))

    @property
    def places(self) -> memoryview:
        """Return the first integer of each key. Nothing is copied."""
        return memoryview(self._places) if self._count else memoryview(zeros("q", 0))

    @property
    def identities(self) -> memoryview:
        """Return the second integer of each key. Nothing is copied."""
        return memoryview(self._identities) if self._count else memoryview(zeros("q", 0))

    def find(self, rows: ReadableBuffer, spans: WriteableBuffer) -> None:
        """Write into `spans` the begin and the end of the span of each row's key; 0 and 0 for a key without events.

        Rows are four integers: place, identity, the row of `spans` to write, and an unused one. O(1) each, see
        `resolve`. Raises ValueError for a row that `spans` does not have.
        """
        asked, out = integers(rows, "rows"), writable_integers(spans, "spans")
        _check_rows(asked, "rows")
        if not self._find(asked, out):
            raise ValueError(f"`rows` has a row number beyond the {len(out) // 2} rows of `spans`")

    # -- in C when compiled, the first without the interpreter's lock --------------------------------------

    def _find(self, rows: Integers, spans: Integers) -> bool:
        with cython.nogil:
            beyond = 0
            for row in range(len(rows) // _WIDTH):
                number = rows[_WIDTH * row + 2]
                if number < 0 or number >= len(spans) // 2:
                    beyond += 1
                else:
                    key = self._key(rows[_WIDTH * row], rows[_WIDTH * row + 1])
                    spans[2 * number] = 0 if key < 0 else self._begins[key]
                    spans[2 * number + 1] = 0 if key < 0 else self._begins[key + 1]
            return beyond == 0

    def _fill_directory(self) -> None:
        """Fill the directory: `_directory[n]` is the first key whose entry is n or more; the last is the key count."""
        if self._count == 0:
            return
        self._low = self._places[0] >> 1  # half, so that the difference of any two is a 64-bit integer
        width = (self._places[self._count - 1] >> 1) - self._low
        while width >> self._shift >= len(self._directory) - 1:
            self._shift += 1
        entry = 0
        for key in range(self._count):
            own = ((self._places[key] >> 1) - self._low) >> self._shift
            while entry <= own:
                self._directory[entry] = key
                entry += 1
        while entry < len(self._directory):
            self._directory[entry] = self._count
            entry += 1

    def _key(self, place: int, identity: int) -> int:
        """Return the index of a key, or -1 if it is not there."""
        half = place >> 1
        if self._count == 0 or half < self._low:
            return -1
        entry = (half - self._low) >> self._shift
        if entry >= len(self._directory) - 1:
            return -1
        low = self._directory[entry]
        high = self._directory[entry + 1]
        while low < high:
            middle = (low + high) >> 1
            if self._places[middle] < place or (self._places[middle] == place and self._identities[middle] < identity):
                low = middle + 1
            else:
                high = middle
        if low < self._count and self._places[low] == place and self._identities[low] == identity:
            return low
        return -1


class Timelines:
    """The timelines of all keys. Build them with `add`, then call `finish`, and then look up."""

    __slots__ = ("_at", "_combine", "_maxima", "_rows_before", "_size", "_values")

    def __init__(
        self,
        at: WriteableBuffer,
        values: WriteableBuffer,
        rows_before: WriteableBuffer | None = None,
        *,
        combine: Combine = "max",
    ) -> None:
        """Take buffers to fill: `at` and `values` for an integer per event; `rows_before`, for `counted`, for one more.

        `add` fills them with the times of the instants and their combined values, key by key. With `combine="each"`, as
        `serving` needs it, events of one instant are not combined, and the greatest progress comes first. Raises
        TypeError for other kinds of buffer, ValueError for another length.
        """
        if combine not in COMBINES:
            raise ValueError(f"combine must be 'max', 'sum', 'last' or 'each', not {combine!r}")
        self._combine = COMBINES.index(combine)
        self._at, self._values = writable_integers(at, "at"), writable_integers(values, "values")
        same_length("values", memoryview(self._values), "at", len(self._at))
        self._rows_before = zeros("q", 0) if rows_before is None else writable_integers(rows_before, "rows_before")
        if rows_before is not None:
            same_length("rows_before", memoryview(self._rows_before), "at plus 1", len(self._at) + 1)
        self._size = 0
        self._maxima = zeros("q", 0)

    def add(self, begin: int, events: WriteableBuffer, room: WriteableBuffer) -> Keys:
        """Build the timelines of some keys, from index `begin` on, and return the keys. `events` has all their events.

        Events are rows of four integers, in any order: place, identity, and the complements (~) of at and progress, so
        that rows sort by time, and within an instant from the greatest progress down. Both `events` and `room`, of the
        same length, are overwritten. Several threads may add at once, each into a range of its own.
        """
        source, target = writable_integers(events, "events"), writable_integers(room, "room")
        _check_rows(source, "events")
        same_length("room", target, "events", len(source))
        count = len(source) // _WIDTH
        if begin < 0 or begin + count > len(self._at):
            raise ValueError(f"{count} events from index {begin} on exceed the room for {len(self._at)} events")
        ends = zeros("q", coarse_buckets(count))
        if count < 2 * COARSE:
            del ends[1:]
            ends[0] = count
        else:
            del ends[self._spread(source, target, ends) :]
            source, target = target, source
        largest = max((high - low for low, high in pairwise((0, *ends))), default=0)
        self._sort(source, target, ends, zeros("q", fine_buckets(largest)))
        keys = self._count_keys(target)
        places, identities, begins = zeros("q", keys), zeros("q", keys), zeros("q", keys + 1)
        self._collect(target, begin, places, identities, begins)
        return Keys(places, identities, begins)

    def finish(self) -> None:
        """Build the tree for look-ups. Call it after the last `add`. O(events)."""
        blocks = (len(self._at) >> _BLOCK) + 1
        size = 1
        while size < blocks:
            size *= 2
        self._maxima = zeros("q", 2 * size)
        self._size = size
        self._build_tree()

    def first_met(
        self,
        spans: ReadableBuffer,
        required: ReadableBuffer,
        starts: ReadableBuffer,
        froms: ReadableBuffer,
        lasts: ReadableBuffer,
        met: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Write into `met` the first time in [froms, lasts], both included, at which the value is at least `required`.

        `NEVER` if there is none. `starts` and `count` say which events count; `froms` are the starts, or later times.
        Each column has one element per watch; times are in the events' unit. Without events the sum is 0, while the
        maximum and the last value reach nothing. Raises ValueError for columns of different length. O(log n) each.
        """
        columns = self._by_span(spans, required=required, starts=starts, froms=froms, lasts=lasts)
        out = writable_integers(met, "met")
        _check_out("met", out, columns[0])
        self._first_met(columns[0], columns[1], columns[2], columns[3], columns[4], out, COUNTS.index(count))

    def held_at(
        self,
        spans: ReadableBuffer,
        required: ReadableBuffer,
        starts: ReadableBuffer,
        lasts: ReadableBuffer,
        met: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Set `met` to 1 where the combined value of the counted events up to `lasts` reaches `required`, else to 0."""
        columns = self._by_span(spans, required=required, starts=starts, lasts=lasts)
        out = writable_integers(met, "met")
        _check_out("met", out, columns[0])
        self._held_at(columns[0], columns[1], columns[2], columns[3], out, COUNTS.index(count))

    def since(
        self,
        spans: ReadableBuffer,
        required: ReadableBuffer,
        starts: ReadableBuffer,
        times: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Replace each of `times`, at which a value is at least `required`, by the time since which it has been so.

        Leave a time unchanged if no event brought the value there. O(log n) each for the maximum, else O(events since).
        """
        columns = self._by_span(spans, required=required, starts=starts)
        out = writable_integers(times, "times")
        _check_out("times", out, columns[0])
        self._since(columns[0], columns[1], columns[2], out, COUNTS.index(count))

    def last_up_to(self, spans: ReadableBuffer, times: ReadableBuffer, last: WriteableBuffer) -> None:
        """Write into `last` the time of each key's last event up to `times`, or `BEFORE`."""
        columns = self._by_span(spans, times=times)
        out = writable_integers(last, "last")
        _check_out("last", out, columns[0])
        self._last_up_to(columns[0], columns[1], out)

    def counted(
        self,
        spans: ReadableBuffer,
        starts: ReadableBuffer,
        lasts: ReadableBuffer,
        counts: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Write into `counts` the number of events up to `lasts` that count for `starts`. Needs `rows_before`."""
        if not len(self._rows_before):
            raise ValueError("counted() needs rows_before: pass this buffer to the constructor")
        columns = self._by_span(spans, starts=starts, lasts=lasts)
        out = writable_integers(counts, "counts")
        _check_out("counts", out, columns[0])
        self._counted(columns[0], columns[1], columns[2], out, COUNTS.index(count))

    def run(
        self,
        clock: ReadableBuffer,
        spans: ReadableBuffer,
        required: ReadableBuffer,
        times: ReadableBuffer,
        amounts: ReadableBuffer,
        readings: WriteableBuffer,
    ) -> None:
        """Advance a clock by `amounts`; it is paused while the key's last value is at least `required`.

        `readings` holds what the clock reads at `times`, and receives what it reads when `amounts` have passed, or
        `NEVER`. `clock` holds what it would read at each of `at` if it were never paused. O(log n + the key's instants
        in that time) per row.
        """
        columns = self._by_span(spans, required=required, times=times, amounts=amounts)
        running = integers(clock, "clock")
        same_length("clock", running, "at", len(self._at))
        out = writable_integers(readings, "readings")
        _check_out("readings", out, columns[0])
        self._run(columns[0], columns[1], columns[2], columns[3], running, out)

    def _by_span(self, spans: ReadableBuffer, **others: ReadableBuffer) -> list[memoryview]:
        if not self._size:
            raise ValueError("call finish() before looking anything up")
        found = integers(spans, "spans")
        columns = [found]
        for name, buffer in others.items():
            column = integers(buffer, name)
            _check_out(name, column, found)
            columns.append(column)
        if not self._has(found):
            raise ValueError(
                f"spans must be begins and ends within the {len(self._at)} events, as `Keys.find` gives them"
            )
        return columns

    # -- in C when compiled, without the interpreter's lock ------------------------------------------------

    def _spread(self, rows: Integers, target: Integers, ends: Integers) -> int:
        with cython.nogil:
            return spread(rows, target, ends)

    def _sort(self, rows: Integers, target: Integers, ends: Integers, fine: Integers) -> None:
        with cython.nogil:
            begin = 0
            for number in range(len(ends)):
                end = ends[number]
                sort(rows, begin, end, target[_WIDTH * begin : _WIDTH * end], fine)
                begin = end

    def _count_keys(self, rows: Integers) -> int:
        """Return the number of keys in sorted rows."""
        with cython.nogil:
            keys = 0
            for row in range(len(rows) // _WIDTH):
                if row == 0 or not _same_key(rows, row - 1, row):
                    keys += 1
            return keys

    def _collect(self, rows: Integers, begin: int, places: Integers, identities: Integers, begins: Integers) -> None:
        """Combine the sorted rows of each key and instant, and collect the keys."""
        with cython.nogil:
            key = 0
            instants = begin
            row = 0
            while row < len(rows) // _WIDTH:
                new_key = row == 0 or not _same_key(rows, row - 1, row)
                if new_key:
                    places[key] = rows[_WIDTH * row]
                    identities[key] = rows[_WIDTH * row + 1]
                    begins[key] = instants
                    key += 1
                if len(self._rows_before) > 0:
                    self._rows_before[instants] = begin + row
                self._at[instants] = ~rows[_WIDTH * row + 2]
                end = row + 1
                if self._combine != _EACH:
                    while (
                        end < len(rows) // _WIDTH
                        and rows[_WIDTH * end + 2] == rows[_WIDTH * row + 2]
                        and _same_key(rows, row, end)
                    ):
                        end += 1
                value = ~rows[_WIDTH * row + 3]
                if self._combine == _SUM:
                    value = 0 if new_key else self._values[instants - 1]
                    for number in range(end - row):  # the smallest first, as sums saturate
                        value = _sum(value, ~rows[_WIDTH * (end - number) - 1])
                self._values[instants] = value
                instants += 1
                row = end
            begins[key] = instants
            if len(self._rows_before) > 0:
                self._rows_before[instants] = begin + row
            while instants < begin + row:  # fill the room that is left by instants of several events
                self._at[instants] = self._at[instants - 1]
                self._values[instants] = _BEFORE
                instants += 1

    def _build_tree(self) -> None:
        with cython.nogil:
            for node in range(2 * self._size):
                self._maxima[node] = _BEFORE
            for place in range(len(self._values)):
                node = self._size + (place >> _BLOCK)
                self._maxima[node] = max(self._maxima[node], self._values[place])
            for node in range(self._size - 1, 0, -1):
                self._maxima[node] = max(self._maxima[2 * node], self._maxima[2 * node + 1])

    def _has(self, spans: Integers) -> bool:
        beyond = 0
        for row in range(len(spans) // 2):
            begin = spans[2 * row]
            end = spans[2 * row + 1]
            beyond += begin < 0 or begin > end or end > len(self._at)
        return beyond == 0

    def _first_met(
        self,
        spans: Integers,
        required: Integers,
        starts: Integers,
        froms: Integers,
        lasts: Integers,
        met: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(spans) // 2):
                met[row] = self._first(
                    spans[2 * row], spans[2 * row + 1], required[row], starts[row], froms[row], lasts[row], count
                )

    def _held_at(
        self,
        spans: Integers,
        required: Integers,
        starts: Integers,
        lasts: Integers,
        met: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(spans) // 2):
                met[row] = self._held(spans[2 * row], spans[2 * row + 1], required[row], starts[row], lasts[row], count)

    def _since(
        self,
        spans: Integers,
        required: Integers,
        starts: Integers,
        times: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(spans) // 2):
                begin = spans[2 * row]
                end = spans[2 * row + 1]
                if end > begin and times[row] != _NEVER:
                    times[row] = self._brought(begin, end, required[row], starts[row], times[row], count)

    def _last_up_to(self, spans: Integers, times: Integers, last: Integers) -> None:
        with cython.nogil:
            for row in range(len(spans) // 2):
                begin = spans[2 * row]
                end = spans[2 * row + 1]
                last[row] = _BEFORE
                end = self._after(begin, end, times[row])
                if end > begin:
                    last[row] = self._at[end - 1]

    def _counted(
        self,
        spans: Integers,
        starts: Integers,
        lasts: Integers,
        counts: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(spans) // 2):
                begin = spans[2 * row]
                end = spans[2 * row + 1]
                first = self._begin(begin, end, starts[row], count)
                end = self._after(begin, end, lasts[row])
                counts[row] = self._rows_before[end] - self._rows_before[first] if end > first else 0

    def _run(
        self,
        spans: Integers,
        required: Integers,
        times: Integers,
        amounts: Integers,
        clock: Integers,
        readings: Integers,
    ) -> None:
        with cython.nogil:
            for row in range(len(spans) // 2):
                reading = readings[row]
                left = amounts[row]
                begin = spans[2 * row]
                end = spans[2 * row + 1]
                event = self._after(begin, end, times[row])
                paused = event > begin and self._values[event - 1] >= required[row]
                while event < end and left > 0:
                    if not paused:
                        if clock[event] - reading >= left:
                            break
                        left -= clock[event] - reading
                    reading = clock[event]
                    paused = self._values[event] >= required[row]
                    event += 1
                if left > 0:
                    reading = _NEVER if paused or left > _NEVER - max(reading, 0) else reading + left
                readings[row] = reading

    def _first(self, first: int, stop: int, required: int, start: int, search: int, last: int, count: int) -> int:
        if first == stop:  # no events: their sum is 0, and they have no maximum
            return search if self._combine == _SUM and required <= 0 else _NEVER
        begin = self._begin(first, stop, start, count)
        required = self._running(first, begin, required)
        after = max(begin, self._after(first, stop, search))
        if self._combine == 0:
            if self._first_at_least(begin, after, required) >= 0:
                return search
        elif after > begin:
            if self._values[after - 1] >= required:
                return search
        elif self._combine == _SUM and required <= (self._values[begin - 1] if begin > first else 0):
            return search
        found = self._first_at_least(after, self._after(first, stop, last), required)
        return _NEVER if found < 0 else self._at[found]

    def _held(self, first: int, stop: int, required: int, start: int, last: int, count: int) -> bool:
        begin = self._begin(first, stop, start, count)
        end = self._after(first, stop, last)
        if self._combine == 0:
            return self._first_at_least(begin, end, required) >= 0
        if end <= begin:
            return self._combine == _SUM and required <= 0
        required = self._running(first, begin, required)
        return self._values[end - 1] >= required

    def _brought(self, first: int, stop: int, required: int, start: int, time: int, count: int) -> int:
        """Return since when the value at `time` has been at least `required`; `time` if no event brought it there."""
        begin = self._begin(first, stop, start, count)
        end = self._after(first, stop, time)
        if self._combine == 0:
            found = self._first_at_least(begin, end, required)
            return time if found < 0 else self._at[found]
        required = self._running(first, begin, required)
        while end > begin and self._values[end - 1] >= required:
            end -= 1
            time = self._at[end]
        return time

    def _begin(self, first: int, stop: int, start: int, count: int) -> int:
        """Return the first of a key's instants that counts for a start."""
        if count == _ALWAYS:
            return first
        if count == _FROM_START:
            return first if start == _BEFORE else self._after(first, stop, start - 1)
        return self._after(first, stop, start)

    def _running(self, first: int, begin: int, required: int) -> int:
        """Convert `required`, for events from `begin` on, to the key's running values: for sums, add the sum before."""
        if self._combine == _SUM and begin > first:
            return _sum(required, self._values[begin - 1])
        return required

    def _after(self, low: int, high: int, time: int) -> int:
        """Return the first instant of [low, high) after a time, or their end."""
        while low < high:
            middle = (low + high) >> 1
            if self._at[middle] <= time:
                low = middle + 1
            else:
                high = middle
        return low

    def _first_at_least(self, begin: int, end: int, required: int) -> int:
        """Return the first instant in [begin, end) whose value is at least `required`, or -1."""
        stop = min(end, ((begin >> _BLOCK) + 1) << _BLOCK)
        while begin < stop:
            if self._values[begin] >= required:
                return begin
            begin += 1
        if begin >= end:
            return -1
        node = self._size + (begin >> _BLOCK)
        while self._maxima[node] < required:
            while node & 1:  # the nodes right of a right child are right of its parent
                node >>= 1
            if node == 0:
                return -1
            node += 1
        while node < self._size:
            node *= 2
            if self._maxima[node] < required:
                node += 1
        begin = (node - self._size) << _BLOCK
        while begin < end:
            if self._values[begin] >= required:
                return begin
            begin += 1
        return -1


def _columns(**buffers: ReadableBuffer) -> list[memoryview]:
    columns: list[memoryview] = []
    first = next(iter(buffers))
    for name, buffer in buffers.items():
        column = integers(buffer, name)
        columns.append(column)
        same_length(name, column, first, len(columns[0]))
    return columns


def _check_rows(rows: memoryview, name: str) -> None:
    if len(rows) % WIDTH:
        raise ValueError(f"{name} has {len(rows)} integers, not a multiple of {WIDTH}, the width of a row")


def _check_out(name: str, column: memoryview, spans: memoryview) -> None:
    if 2 * len(column) != len(spans):
        raise ValueError(
            f"{name} has {len(column)} elements and spans has {len(spans)}, but spans must have twice as many"
        )


def _sum(one: int, other: int) -> int:
    """Return the sum, or the nearest 64-bit integer."""
    if other >= 0:
        return _NEVER if one > _NEVER - other else one + other
    return _BEFORE if one < _BEFORE - other else one + other


def _same_key(rows: Integers, one: int, other: int) -> bool:
    one *= _WIDTH
    other *= _WIDTH
    return rows[one] == rows[other] and rows[one + 1] == rows[other + 1]
