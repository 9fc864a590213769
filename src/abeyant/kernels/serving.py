"""Assign each event to one operation of its key (law O7).

Two doubly linked lists over row numbers hold the operations that wait for a key, and the events that no operation has
used yet, so that any of them can be removed in O(1). An event is offered to the oldest operation first, or to the
newest. Cost: O(1) per event if all operations of a key require the same progress, else O(operations that wait for it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

from abeyant.kernels.buffers import integers, same_length, writable_integers, zeros

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from abeyant.kernels.rows import Integers

NEVER = (1 << 63) - 1
"""Written to `met` for an operation that did not get what it required."""

_NEVER = NEVER  # C constants when compiled
_NONE = -1


class Waiting:
    """The waiting operations and the unused events of one key at a time, as linked lists over row numbers."""

    __slots__ = (
        "_after_event",
        "_after_operation",
        "_before_event",
        "_before_operation",
        "_events",
        "_first_event",
        "_first_operation",
        "_last_event",
        "_last_operation",
        "_operations",
    )

    def __init__(self, operations: int, events: int) -> None:
        """Make room for this many operations and events."""
        self._operations, self._events = operations, events
        self._before_operation, self._after_operation = zeros("q", operations), zeros("q", operations)
        self._before_event, self._after_event = zeros("q", events), zeros("q", events)
        self._first_operation = self._last_operation = self._first_event = self._last_event = _NONE

    def serve(
        self,
        event_ends: ReadableBuffer,
        event_at: ReadableBuffer,
        progress: ReadableBuffer,
        operation_ends: ReadableBuffer,
        starts: ReadableBuffer,
        lasts: ReadableBuffer,
        required: WriteableBuffer,
        met: WriteableBuffer,
        brought: WriteableBuffer,
        served: WriteableBuffer,
        owners: WriteableBuffer | None = None,
        *,
        newest: bool,
        count: str,
        add: bool,
    ) -> None:
        """Assign each event to one operation, and write each operation's result.

        Outputs for each operation: `met`, when it had what it required, else `NEVER`; `brought`, the time of the last
        event that served it, else its start; `served`, the number of events that served it. Output for each event:
        `owners`, the row of the operation that the event serves, or -1.

        Keys are numbers: `event_ends[k]` and `operation_ends[k]` are where the rows of key k end. Within a key, events
        are sorted by time, then by descending `progress`; operations are sorted by `starts`, then in the order in which
        they are served (with `newest`, in reverse). No event after an operation's `lasts` serves it. With `add`, the
        progress of an operation's events is subtracted from its `required`, which must reach 0; else it needs one event
        with at least that progress. `count` has the same meaning as in `timelines`.
        """
        ends = integers(event_ends, "event_ends")
        operations = integers(operation_ends, "operation_ends")
        same_length("event_ends", ends, "operation_ends", len(operations))
        at = integers(event_at, "event_at")
        begins = integers(starts, "starts")
        if len(begins) > self._operations or len(at) > self._events:
            raise ValueError(
                f"{len(begins)} operations and {len(at)} events exceed the room, {self._operations} and {self._events}"
            )
        out = []
        for name, room in (("required", required), ("met", met), ("brought", brought), ("served", served)):
            column = writable_integers(room, name)
            same_length(name, column, "starts", len(begins))
            out.append(column)
        owner = memoryview(zeros("q", 0))
        if owners is not None:
            owner = writable_integers(owners, "owners")
            same_length("owners", owner, "event_at", len(at))
        self._serve(
            ends,
            at,
            integers(progress, "progress"),
            operations,
            begins,
            integers(lasts, "lasts"),
            out[0],
            out[1],
            out[2],
            out[3],
            owner,
            newest,
            count == "always",
            count == "after_start",
            add,
        )

    def _serve(
        self,
        event_ends: Integers,
        at: Integers,
        progress: Integers,
        operation_ends: Integers,
        starts: Integers,
        lasts: Integers,
        required: Integers,
        met: Integers,
        brought: Integers,
        served: Integers,
        owner: Integers,
        newest: bool,
        always: bool,
        after: bool,
        add: bool,
    ) -> None:
        with cython.nogil:
            event = 0
            operation = 0
            for key in range(len(event_ends)):
                self._first_operation = self._last_operation = self._first_event = self._last_event = _NONE
                while event < event_ends[key] or operation < operation_ends[key]:
                    now = _NEVER
                    if event < event_ends[key]:
                        now = at[event]
                    if operation < operation_ends[key] and starts[operation] < now:
                        now = starts[operation]
                    begin = operation
                    while operation < operation_ends[key] and starts[operation] == now:
                        met[operation] = _NEVER
                        brought[operation] = now
                        served[operation] = 0
                        if add and required[operation] <= 0:
                            met[operation] = now
                        operation += 1
                    if not after:
                        self._start(begin, operation, met)
                    if always and not newest:
                        self._take_unused(
                            begin, operation, at, progress, required, met, brought, served, owner, now, False, add
                        )
                    same_instant = _NONE
                    while event < event_ends[key] and at[event] == now:
                        found = self._first_served(progress[event], lasts, required, now, newest, add)
                        if len(owner):
                            owner[event] = found
                        if found >= 0:
                            self._give(found, now, progress[event], required, met, brought, served, now, add)
                        elif always:
                            self._leave_unused(event, same_instant)
                            if newest:
                                same_instant = event
                        event += 1
                    if always and newest:
                        self._take_unused(
                            begin, operation, at, progress, required, met, brought, served, owner, now, True, add
                        )
                    if after:
                        self._start(begin, operation, met)

    def _start(self, begin: int, end: int, met: Integers) -> None:
        for operation in range(begin, end):
            if met[operation] == _NEVER:
                self._before_operation[operation] = self._last_operation
                self._after_operation[operation] = _NONE
                if self._last_operation >= 0:
                    self._after_operation[self._last_operation] = operation
                else:
                    self._first_operation = operation
                self._last_operation = operation

    def _end(self, operation: int) -> None:
        before = self._before_operation[operation]
        after = self._after_operation[operation]
        if before >= 0:
            self._after_operation[before] = after
        else:
            self._first_operation = after
        if after >= 0:
            self._before_operation[after] = before
        else:
            self._last_operation = before

    def _first_served(
        self, progress: int, lasts: Integers, required: Integers, now: int, newest: bool, add: bool
    ) -> int:
        """Return the first operation in turn that the event can serve, or -1. Unlink operations past their `lasts`."""
        operation = self._last_operation if newest else self._first_operation
        while operation >= 0:
            following = self._before_operation[operation] if newest else self._after_operation[operation]
            if lasts[operation] < now:
                self._end(operation)
            elif add or progress >= required[operation]:
                return operation
            operation = following
        return _NONE

    def _give(
        self,
        operation: int,
        when: int,
        progress: int,
        required: Integers,
        met: Integers,
        brought: Integers,
        served: Integers,
        now: int,
        add: bool,
    ) -> None:
        """Give an operation the event of time `when`. With `add`, subtract its progress from `required`."""
        served[operation] += 1
        brought[operation] = when
        if add:
            required[operation] -= progress
            if required[operation] > 0:
                return
        met[operation] = now
        self._end(operation)

    def _leave_unused(self, event: int, after: int) -> None:
        """Link an unused event before the event `after`, or as the last if `after` is -1.

        With `newest` the list is read from its end, so that of several events at one instant the greatest progress is
        read first.
        """
        before = self._last_event if after < 0 else self._before_event[after]
        self._before_event[event] = before
        self._after_event[event] = after
        if before >= 0:
            self._after_event[before] = event
        else:
            self._first_event = event
        if after >= 0:
            self._before_event[after] = event
        else:
            self._last_event = event

    def _take(self, event: int) -> None:
        before = self._before_event[event]
        after = self._after_event[event]
        if before >= 0:
            self._after_event[before] = after
        else:
            self._first_event = after
        if after >= 0:
            self._before_event[after] = before
        else:
            self._last_event = before

    def _take_unused(
        self,
        begin: int,
        end: int,
        at: Integers,
        progress: Integers,
        required: Integers,
        met: Integers,
        brought: Integers,
        served: Integers,
        owner: Integers,
        now: int,
        newest: bool,
        add: bool,
    ) -> None:
        """Give unused events to the operations that start now, in the order in which they are served."""
        for number in range(end - begin):
            operation = end - 1 - number if newest else begin + number
            event = self._last_event if newest else self._first_event
            while event >= 0 and met[operation] == _NEVER:
                following = self._before_event[event] if newest else self._after_event[event]
                if add or progress[event] >= required[operation]:
                    self._take(event)
                    if len(owner):
                        owner[event] = operation
                    self._give(operation, at[event], progress[event], required, met, brought, served, now, add)
                event = following
