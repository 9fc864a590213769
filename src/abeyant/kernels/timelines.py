"""Every key's events in the order of time, and what they come to: for conditions that look at when, not only whether.

`resolve` keeps of a key what can decide something whatever the start: a staircase. Where only what came after the start
counts, or events add up, or the last one counts, each event may decide. So all are kept: sorted by key and time, those
of one instant combined (O5), with a tree of maxima over them (a segment tree: Bentley, 1977). Then

    the first event from here on that brings the value to `required`

is one descent of the tree, for the greatest, the last, and the sum (over running sums) alike.

A key is two 64-bit integers, `place` and `identity`, as in `resolve`. Cost: building sorts, see `rows`; O(log n) per
operation. Memory: 32 bytes per event while it is built, then 40 to 56 per instant of a key.

Sums beyond 64 bits stay at the greatest or least integer.
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
    from abeyant.kernels.rows import WIDTH, coarse_buckets, fine_buckets, sort, spread
else:
    from cython.cimports.abeyant.kernels.rows import WIDTH, coarse_buckets, fine_buckets, sort, spread

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from abeyant.kernels.rows import Integers

NEVER = (1 << 63) - 1
"""What is written for "not in time"."""
BEFORE = -(1 << 63)
"""What is written for "no event up to then"."""

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


class Timelines:
    """The timelines of all the keys that some events name."""

    __slots__ = (
        "_at",
        "_begins",
        "_combine",
        "_identities",
        "_keys",
        "_maxima",
        "_places",
        "_rows_before",
        "_size",
        "_values",
    )

    def __init__(self, events: ReadableBuffer, combine: Combine = "max") -> None:
        """Build from rows of four integers: place, identity, progress, at; in any order.

        With `combine="each"` the events of an instant stay apart, the greatest progress first: for `serving`. Raises
        TypeError or ValueError for a buffer that is no whole number of such rows of 64-bit integers.
        """
        if combine not in COMBINES:
            raise ValueError(f"combine must be 'max', 'sum', 'last' or 'each', not {combine!r}")
        given = integers(events, "events")
        if len(given) % _WIDTH:
            raise ValueError(f"events has {len(given)} integers, which is no whole number of rows of {_WIDTH}")
        count = len(given) // _WIDTH
        self._combine = COMBINES.index(combine)
        rows = zeros("q", len(given))
        self._turn(given, rows)
        spread_rows = zeros("q", len(given))
        ends = zeros("q", coarse_buckets(count))
        del ends[self._spread(rows, spread_rows, ends) :]
        largest = max((high - low for low, high in pairwise((0, *ends))), default=0)
        bucket, fine = zeros("q", largest * _WIDTH), zeros("q", fine_buckets(largest))
        self._at, self._values, self._rows_before = zeros("q", count), zeros("q", count), zeros("q", count + 1)
        self._places, self._identities, self._begins = zeros("q", count), zeros("q", count), zeros("q", count + 1)
        self._keys = 0
        instants = self._collect(spread_rows, ends, bucket, fine)
        self._at, self._values = self._at[:instants], self._values[:instants]
        self._rows_before, self._begins = self._rows_before[: instants + 1], self._begins[: self._keys + 1]
        self._places, self._identities = self._places[: self._keys], self._identities[: self._keys]
        self._size = 1
        while self._size < instants:
            self._size *= 2
        self._maxima = zeros("q", 2 * self._size)
        self._build_tree()

    def __len__(self) -> int:
        """Return the number of instants, over all keys."""
        return len(self._at) if self._size else 0

    @property
    def at(self) -> memoryview:
        """The times of all instants, key by key. Nothing is copied."""
        return memoryview(self._at) if self._size else _nothing()

    @property
    def values(self) -> memoryview:
        """What the events come to at each instant. Nothing is copied."""
        return memoryview(self._values) if self._size else _nothing()

    @property
    def begins(self) -> memoryview:
        """Where the instants of each key begin, and after the last one where all end. Nothing is copied."""
        return memoryview(self._begins) if self._size else _nothing()

    @property
    def places(self) -> memoryview:
        """The first integer of each key. Nothing is copied."""
        return memoryview(self._places) if self._size else _nothing()

    @property
    def identities(self) -> memoryview:
        """The second integer of each key. Nothing is copied."""
        return memoryview(self._identities) if self._size else _nothing()

    def key_numbers(self, places: ReadableBuffer, identities: ReadableBuffer, numbers: WriteableBuffer) -> None:
        """Write into `numbers` which key each is, in the order of `begins`, or -1. O(log keys) each."""
        columns = _columns(places, identities=identities)
        out = writable_integers(numbers, "numbers")
        same_length("numbers", out, "places", len(columns[0]))
        self._key_numbers(columns[0], columns[1], out)

    def first_met(
        self,
        places: ReadableBuffer,
        identities: ReadableBuffer,
        required: ReadableBuffer,
        starts: ReadableBuffer,
        froms: ReadableBuffer,
        lasts: ReadableBuffer,
        met: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Write into `met` the first instant from `froms` to `lasts`, both included, at which the value is reached.

        `NEVER` where there is none. `starts` says which events count; `froms` is the same, or later. Each column has
        one element a watch; times are in the events' unit. The sum of no events is 0; the greatest and the last of none
        reach nothing. Raises ValueError for columns of different length. O(log n) each.
        """
        columns = _columns(places, identities=identities, required=required, starts=starts, froms=froms, lasts=lasts)
        out = writable_integers(met, "met")
        same_length("met", out, "places", len(columns[0]))
        self._first_met(
            columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], out, COUNTS.index(count)
        )

    def held_at(
        self,
        places: ReadableBuffer,
        identities: ReadableBuffer,
        required: ReadableBuffer,
        starts: ReadableBuffer,
        lasts: ReadableBuffer,
        met: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Write into `met` 1 where the value of the events that count up to `lasts` is at least `required`, else 0."""
        columns = _columns(places, identities=identities, required=required, starts=starts, lasts=lasts)
        out = writable_integers(met, "met")
        same_length("met", out, "places", len(columns[0]))
        self._held_at(columns[0], columns[1], columns[2], columns[3], columns[4], out, COUNTS.index(count))

    def since(
        self,
        places: ReadableBuffer,
        identities: ReadableBuffer,
        required: ReadableBuffer,
        starts: ReadableBuffer,
        times: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Replace `times`, at which a value is reached, by since when it has been: the event that brought it there.

        As it was where no event has. O(log n) each for the greatest, else O(the events since then).
        """
        columns = _columns(places, identities=identities, required=required, starts=starts)
        out = writable_integers(times, "times")
        same_length("times", out, "places", len(columns[0]))
        self._since(columns[0], columns[1], columns[2], columns[3], out, COUNTS.index(count))

    def last_up_to(
        self, places: ReadableBuffer, identities: ReadableBuffer, times: ReadableBuffer, last: WriteableBuffer
    ) -> None:
        """Write into `last` when the key's last event up to `times` was, or `BEFORE`."""
        columns = _columns(places, identities=identities, times=times)
        out = writable_integers(last, "last")
        same_length("last", out, "places", len(columns[0]))
        self._last_up_to(columns[0], columns[1], columns[2], out)

    def counted(
        self,
        places: ReadableBuffer,
        identities: ReadableBuffer,
        starts: ReadableBuffer,
        lasts: ReadableBuffer,
        counts: WriteableBuffer,
        count: Count = "always",
    ) -> None:
        """Write into `counts` how many rows of events count from `starts` to `lasts`."""
        columns = _columns(places, identities=identities, starts=starts, lasts=lasts)
        out = writable_integers(counts, "counts")
        same_length("counts", out, "places", len(columns[0]))
        self._counted(columns[0], columns[1], columns[2], columns[3], out, COUNTS.index(count))

    def run(
        self,
        places: ReadableBuffer,
        identities: ReadableBuffer,
        required: ReadableBuffer,
        times: ReadableBuffer,
        clock: ReadableBuffer,
        ends: WriteableBuffer,
    ) -> None:
        """Let a clock run which stands still while the key's last value is at least `required`.

        `ends` has the clock's reading at `times` and how much is to pass, two integers a row; the first becomes the
        reading at which as much has passed, or `NEVER`. `clock` is its reading at each of `at` were it never paused.
        O(log n + the key's instants in that time) per row.
        """
        columns = _columns(places, identities=identities, required=required, times=times)
        readings = integers(clock, "clock")
        same_length("clock", readings, "at", len(self))
        out = writable_integers(ends, "ends")
        same_length("ends", out, "two of places", 2 * len(columns[0]))
        self._run(columns[0], columns[1], columns[2], columns[3], readings, out)

    # -- in C when compiled, without the interpreter's lock ------------------------------------------------

    def _turn(self, given: Integers, rows: Integers) -> None:
        """Write rows that `sort` brings into the order of time: complements, because the third falls there."""
        with cython.nogil:
            for row in range(len(given) // _WIDTH):
                rows[_WIDTH * row] = given[_WIDTH * row]
                rows[_WIDTH * row + 1] = given[_WIDTH * row + 1]
                rows[_WIDTH * row + 2] = ~given[_WIDTH * row + 3]
                rows[_WIDTH * row + 3] = ~given[_WIDTH * row + 2] if self._combine == _EACH else given[_WIDTH * row + 2]

    def _spread(self, rows: Integers, target: Integers, ends: Integers) -> int:
        with cython.nogil:
            return spread(rows, target, ends)

    def _collect(self, rows: Integers, ends: Integers, bucket: Integers, fine: Integers) -> int:
        """Sort bucket by bucket, and take the rows of one key and instant together; return how many there are."""
        with cython.nogil:
            instants = 0
            seen = 0
            begin = 0
            for number in range(len(ends)):
                end = ends[number]
                sort(rows, begin, end, bucket, fine)
                for row in range(end - begin):
                    place = bucket[_WIDTH * row]
                    identity = bucket[_WIDTH * row + 1]
                    at = ~bucket[_WIDTH * row + 2]
                    progress = bucket[_WIDTH * row + 3]
                    if self._combine == _EACH:
                        progress = ~progress
                    new_key = (
                        self._keys == 0
                        or self._places[self._keys - 1] != place
                        or self._identities[self._keys - 1] != identity
                    )
                    if new_key:
                        self._places[self._keys] = place
                        self._identities[self._keys] = identity
                        self._begins[self._keys] = instants
                        self._keys += 1
                    if new_key or self._at[instants - 1] != at or self._combine == _EACH:
                        self._at[instants] = at
                        self._rows_before[instants] = seen
                        if self._combine == _SUM and not new_key:
                            progress = _sum(self._values[instants - 1], progress)
                        self._values[instants] = progress
                        instants += 1
                    elif self._combine == _SUM:
                        self._values[instants - 1] = _sum(self._values[instants - 1], progress)
                    else:  # the rows of an instant come by progress, the greatest last
                        self._values[instants - 1] = progress
                    seen += 1
                begin = end
            self._begins[self._keys] = instants
            self._rows_before[instants] = seen
            return instants

    def _build_tree(self) -> None:
        instants = len(self._values)
        with cython.nogil:
            for place in range(self._size):
                self._maxima[self._size + place] = self._values[place] if place < instants else _BEFORE
            for node in range(self._size - 1, 0, -1):
                self._maxima[node] = max(self._maxima[2 * node], self._maxima[2 * node + 1])

    def _first_met(
        self,
        places: Integers,
        identities: Integers,
        required: Integers,
        starts: Integers,
        froms: Integers,
        lasts: Integers,
        met: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(places)):
                met[row] = self._first(
                    self._key(places[row], identities[row]), required[row], starts[row], froms[row], lasts[row], count
                )

    def _held_at(
        self,
        places: Integers,
        identities: Integers,
        required: Integers,
        starts: Integers,
        lasts: Integers,
        met: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(places)):
                met[row] = self._held(places[row], identities[row], required[row], starts[row], lasts[row], count)

    def _since(
        self,
        places: Integers,
        identities: Integers,
        required: Integers,
        starts: Integers,
        times: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(places)):
                key = self._key(places[row], identities[row])
                if key >= 0 and times[row] != _NEVER:
                    times[row] = self._brought(key, required[row], starts[row], times[row], count)

    def _key_numbers(self, places: Integers, identities: Integers, numbers: Integers) -> None:
        with cython.nogil:
            for row in range(len(places)):
                numbers[row] = self._key(places[row], identities[row])

    def _last_up_to(self, places: Integers, identities: Integers, times: Integers, last: Integers) -> None:
        with cython.nogil:
            for row in range(len(places)):
                key = self._key(places[row], identities[row])
                last[row] = _BEFORE
                if key >= 0:
                    end = self._after(key, times[row])
                    if end > self._begins[key]:
                        last[row] = self._at[end - 1]

    def _counted(
        self,
        places: Integers,
        identities: Integers,
        starts: Integers,
        lasts: Integers,
        counts: Integers,
        count: int,
    ) -> None:
        with cython.nogil:
            for row in range(len(places)):
                key = self._key(places[row], identities[row])
                counts[row] = 0
                if key >= 0:
                    begin = self._begin(key, starts[row], count)
                    end = self._after(key, lasts[row])
                    if end > begin:
                        counts[row] = self._rows_before[end] - self._rows_before[begin]

    def _run(
        self,
        places: Integers,
        identities: Integers,
        required: Integers,
        times: Integers,
        clock: Integers,
        ends: Integers,
    ) -> None:
        with cython.nogil:
            for row in range(len(places)):
                reading = ends[2 * row]
                left = ends[2 * row + 1]
                paused = False
                key = self._key(places[row], identities[row])
                if key >= 0:
                    event = self._after(key, times[row])
                    paused = event > self._begins[key] and self._values[event - 1] >= required[row]
                    while event < self._begins[key + 1] and left > 0:
                        if not paused:
                            if clock[event] - reading >= left:
                                break
                            left -= clock[event] - reading
                        reading = clock[event]
                        paused = self._values[event] >= required[row]
                        event += 1
                if left > 0:
                    reading = _NEVER if paused or left > _NEVER - max(reading, 0) else reading + left
                ends[2 * row] = reading

    def _first(self, key: int, required: int, start: int, search: int, last: int, count: int) -> int:
        if key < 0:  # nothing is a sum of 0, and no greatest
            return search if self._combine == _SUM and required <= 0 else _NEVER
        begin = self._begin(key, start, count)
        required = self._running(key, begin, required)
        after = max(begin, self._after(key, search))
        if self._combine == 0:
            if self._first_at_least(begin, after, required) >= 0:
                return search
        elif after > begin:
            if self._values[after - 1] >= required:
                return search
        elif self._combine == _SUM and required <= (self._values[begin - 1] if begin > self._begins[key] else 0):
            return search
        found = self._first_at_least(after, self._after(key, last), required)
        return _NEVER if found < 0 else self._at[found]

    def _held(self, place: int, identity: int, required: int, start: int, last: int, count: int) -> bool:
        key = self._key(place, identity)
        if key < 0:
            return self._combine == _SUM and required <= 0
        begin = self._begin(key, start, count)
        end = self._after(key, last)
        if self._combine == 0:
            return self._first_at_least(begin, end, required) >= 0
        if end <= begin:
            return self._combine == _SUM and required <= 0
        required = self._running(key, begin, required)
        return self._values[end - 1] >= required

    def _brought(self, key: int, required: int, start: int, time: int, count: int) -> int:
        """Return when the value was brought to `required` that it has at a time; the time if by no event."""
        begin = self._begin(key, start, count)
        end = self._after(key, time)
        if self._combine == 0:
            found = self._first_at_least(begin, end, required)
            return time if found < 0 else self._at[found]
        required = self._running(key, begin, required)
        while end > begin and self._values[end - 1] >= required:
            end -= 1
            time = self._at[end]
        return time

    def _key(self, place: int, identity: int) -> int:
        """Return the number of a key, or -1."""
        low = 0
        high = self._keys
        while low < high:
            middle = (low + high) >> 1
            if self._places[middle] < place or (self._places[middle] == place and self._identities[middle] < identity):
                low = middle + 1
            else:
                high = middle
        if low < self._keys and self._places[low] == place and self._identities[low] == identity:
            return low
        return -1

    def _begin(self, key: int, start: int, count: int) -> int:
        """Return the first of a key's instants that counts."""
        if count == _ALWAYS:
            return self._begins[key]
        if count == _FROM_START:
            return self._begins[key] if start == _BEFORE else self._after(key, start - 1)
        return self._after(key, start)

    def _running(self, key: int, begin: int, required: int) -> int:
        """Return what the key's value has to reach for `required` of the events from `begin` on."""
        if self._combine == _SUM and begin > self._begins[key]:
            return _sum(required, self._values[begin - 1])
        return required

    def _after(self, key: int, time: int) -> int:
        """Return the first of a key's instants after a time, or their end."""
        low = self._begins[key]
        high = self._begins[key + 1]
        while low < high:
            middle = (low + high) >> 1
            if self._at[middle] <= time:
                low = middle + 1
            else:
                high = middle
        return low

    def _first_at_least(self, begin: int, end: int, required: int) -> int:
        """Return the first instant in [begin, end) whose value is at least `required`, or -1."""
        if begin >= end:
            return -1
        node = self._size + begin
        while self._maxima[node] < required:
            while node & 1:  # all to the right of a right child is right of its parent
                node >>= 1
            if node == 0:
                return -1
            node += 1
        while node < self._size:
            node *= 2
            if self._maxima[node] < required:
                node += 1
        node -= self._size
        return node if node < end else -1


def _columns(places: ReadableBuffer, **others: ReadableBuffer) -> list[memoryview]:
    columns = [integers(places, "places")]
    for name, buffer in others.items():
        column = integers(buffer, name)
        same_length(name, column, "places", len(columns[0]))
        columns.append(column)
    return columns


def _nothing() -> memoryview:
    """Return what one has whose `__init__` was never called: C has no buffer to show."""
    return memoryview(zeros("q", 0))


def _sum(one: int, other: int) -> int:
    """Return the sum, or the nearest 64-bit integer."""
    if other >= 0:
        return _NEVER if one > _NEVER - other else one + other
    return _BEFORE if one < _BEFORE - other else one + other
