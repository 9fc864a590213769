"""Resolve operations live, on any timer: each ends once, completed, cancelled or expired.

Ground rules
------------
* One lock guards everything. Of the user's code only `__hash__` and `__eq__` of keys run under it. We call the timer
  while holding our lock; the timer holds no lock when it calls us. So the timer's lock is always the inner one.
* Each call of `start` or `event` is an instant of its own; all calls within a block of `instant` are one. The clock is
  read under the lock, so that calls are ordered as their times are. An instant is processed in the order of law O3:
  overdue operations expire; events are added to their keys; operations start; operations with new events are checked.
* An operation ends once, under the lock, and is removed from its keys and the timer. Then its `on_end` is called in the
  same thread, without the lock. If this ends other operations, their `on_end` is called after the first has returned.
* An operation expires at the first callback of the timer *after* the last instant at which an event counts: while a
  virtual clock shows the deadline, an event still counts. Deadlines only move later. So an extension leaves the timer's
  task alone; a task that runs too early schedules another task.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self

from abeyant.errors import AbeyantError
from abeyant.forking import reset_in_child
from abeyant.idle import IdleDetector
from abeyant.mutex import Mutex
from abeyant.renamed import former_keywords
from abeyant.reporting import report
from abeyant.resolver.calendar import Calendar
from abeyant.resolver.instant import Event, Feed, Instant
from abeyant.resolver.key_state import Arrivals, KeyState
from abeyant.resolver.operation import (
    CountdownClock,
    Operation,
    Resolution,
    ResolutionOutcome,
    ResolverStats,
    WatchState,
)
from abeyant.resolver.rules import Combine, Count, Deadline, Holds, Rules, Serves, Within
from abeyant.resolver.serving import ServingKeyState, serve
from abeyant.timer.base import Timer, check_callback, refuse_coroutine
from abeyant.timer.callbacks import is_coroutine
from abeyant.timer.manual import ManualTimer
from abeyant.timer.system import SystemTimer
from abeyant.timer.units import NEVER, to_nanoseconds, to_seconds

_Ended = list[tuple[Callable[[Resolution], object], Resolution]]


class ResolverClosedError(AbeyantError, RuntimeError):
    """Raised if an operation or event is passed to a closed resolver."""


class Resolver(Feed):
    """Ends each operation once: completed or cancelled when its watches are met, or expired at its deadline.

    It takes the same options as `abeyant.tables.resolve`; `docs/design-resolve.md` defines them. It gives the same
    outcomes if operations and events come in the order of time, and all those of one instant in one block of `instant`.
    Thread-safe if the timer is; it starts no thread.

    The state of a key is kept even while no operation watches it; `forget_after` and `forget` delete it.

    Examples:
        >>> resolver = Resolver(ManualTimer())
        >>> resolver.start(
        ...     "order-1",
        ...     [Watch("paid/1"), Watch("withdrawn/1", role="cancel")],
        ...     timeout=900,
        ...     on_end=lambda end: print(end.op_id, end.outcome),
        ... )
        False
        >>> resolver.event("paid/1")
        order-1 completed
        1
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_closed",
        "_ends",
        "_idle",
        "_keys",
        "_local",
        "_lock",
        "_on_error",
        "_own_timer",
        "_pending",
        "_started",
        "_timer",
    )

    @former_keywords(remember="forget_after")
    def __init__(
        self,
        timer: Timer | None = None,
        *,
        deadline: Deadline = "inclusive",
        count: Count = "always",
        combine: Combine = "max",
        holds: Holds = "ever",
        serves: Serves = "every",
        within: Within = "whole",
        calendar: Calendar | None = None,
        details: bool = False,
        forget_after: float | timedelta | None = None,
        on_error: Callable[[BaseException, Any], object] | None = None,
    ) -> None:
        """Make a resolver on a timer of this package, which resolvers may share. Close the resolver before its timer.

        Without a `timer` it makes a `SystemTimer` of its own, which `close` closes.
        `deadline` says whether an event at the very deadline still counts: "inclusive" or "exclusive". The time of an
        operation's deadline is given to `start`.
        With a `calendar`, a `ManualTimer` must show seconds since 1970; with other timers the system's time is used.
        `count` says which events of a key count for an operation: "always" is all, also those before its start.
        `details` fills `completed_by`, `cancelled_by` and `counted` of resolutions; then, with `count="always"`, memory
        grows with the events. A key that no operation watches is forgotten after `forget_after` seconds without an
        event (default: never). `on_error(error, on_end)` is called when an `on_end` raises (default: log the error).
        """
        if timer is not None and not isinstance(timer, Timer):
            raise TypeError(f"timer must be a SystemTimer, ManualTimer or aio.Timer, not {timer!r}")
        if on_error is not None:
            check_callback(on_error, "on_error")
        self._rules = Rules(deadline, count, combine, holds, serves, within, calendar, details)
        self._own_timer = SystemTimer("resolver") if timer is None else None
        self._timer: Timer = self._own_timer or timer  # type: ignore[assignment]
        self._on_error = on_error
        self._clock = CountdownClock(self._rules, self._wall)
        self._local = threading.local()
        self._closed = False
        self._idle = None if forget_after is None else IdleDetector(forget_after, self._forget_idle, self._timer)
        self._reset()
        reset_in_child(self)

    def _reset(self) -> None:
        self._lock = Mutex("a resolver")
        self._keys: dict[Hashable, KeyState] = {}
        self._pending: dict[Hashable, Operation] = {}
        self._started = 0
        self._ends: dict[str, int] = dict.fromkeys(("completed", "cancelled", "expired"), 0)

    # -- for users

    def instant(self) -> Instant:
        """Collect operations and events of one instant in a `with` block, and apply them together.

        Events are applied before starts, whatever their order in the block. Operations that start together are served
        in the order in which they were passed to `start`.
        """
        return Instant(self, self._rules)

    def pending(self) -> list[Hashable]:
        """Return the ids of the pending operations, in the order of their starts. O(pending)."""
        with self._lock:
            return list(self._pending)

    def stats(self) -> ResolverStats:
        """Return the resolver's current counts, and the totals of its operations by outcome. O(1)."""
        with self._lock:
            return ResolverStats(len(self._pending), len(self._keys), self._started, **self._ends)

    def cancel(self, op_id: Hashable) -> bool:
        """Remove an operation without calling its `on_end`; return whether it was pending. O(watches)."""
        with self._lock:
            operation = self._pending.get(op_id)
            if operation is not None:
                self._remove(operation)
        return operation is not None

    def forget(self, key: Hashable) -> None:
        """Forget the events of `key`. Pending operations keep the progress they have."""
        with self._lock:
            key_state = self._keys.get(key)
            if key_state is not None:
                key_state.forget()
                self._drop_if_unused(key_state)

    def close(self) -> list[Resolution]:
        """Refuse further operations and events; return a resolution "pending" for each pending operation. O(pending).

        No `on_end` is called. A second call returns an empty list. A timer that the resolver did not make stays open.
        """
        with self._lock:
            self._closed = True
            resolutions = [operation.resolution("pending", None, None) for operation in self._pending.values()]
            for operation in list(self._pending.values()):
                self._remove(operation)
            self._keys.clear()
        if self._idle is not None:
            self._idle.close()
        if self._own_timer is not None:
            self._own_timer.close()
        return resolutions

    @property
    def closed(self) -> bool:
        """Return whether `close` has been called."""
        return self._closed

    def __len__(self) -> int:
        """Return the number of pending operations."""
        return len(self._pending)

    def __bool__(self) -> bool:
        return True  # `resolver or default` must not replace one where nothing is pending

    def __contains__(self, op_id: Hashable) -> bool:
        """Return whether an operation is pending. O(1)."""
        return op_id in self._pending

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: two resolvers cannot own the same operations")

    def __repr__(self) -> str:
        return f"<Resolver{' closed' if self._closed else ''}, {len(self)} pending>"

    # -- an instant

    def _take(self, starts: list[Operation], events: list[Event]) -> int:
        """Apply the starts and events of one instant. Return how many operations ended."""
        by_key: dict[Hashable, list[float]] = {}
        for key, progress in events:
            by_key.setdefault(key, []).append(progress)
        arrived = {key: Arrivals(sorted(values, reverse=True), sum(values)) for key, values in by_key.items()}
        ended: _Ended = []
        try:
            with self._lock:
                return self._judge_instant(starts, arrived, ended)
        finally:
            self._deliver(ended)

    # -- with the lock held

    def _judge_instant(self, starts: list[Operation], arrived: dict[Hashable, Arrivals], ended: _Ended) -> int:
        if self._closed:
            raise ResolverClosedError(f"{self!r} accepts no operation or event; make a new one")
        now = to_nanoseconds(self._timer.time(), "time")
        if starts:
            self._check_ids(starts, now, ended)
        for key in arrived:
            key_state = self._keys.get(key)
            if key_state is not None:
                for operation in [state.operation for state in key_state.states if state.operation.last < now]:
                    self._expire(operation, ended)
        touched: dict[Operation, None] = {}
        reached = [(self._key_state(key), arrivals) for key, arrivals in arrived.items()]
        for key_state, arrivals in reached:
            key_state.add(arrivals, now, self._rules.combine)
            if self._idle is not None:
                self._idle.seen(key_state.key)
            for state in key_state.states:
                state.operation.add(state, arrivals, now)
                touched[state.operation] = None
        for operation in touched:
            if operation.extended or operation.pause_changed:
                operation.update_deadline(now, self._clock)
        try:
            for operation in starts:
                self._begin(operation, now)
                touched[operation] = None
            if self._rules.serves != "every":
                for operation in serve(reached, starts, now, self._rules, partial(self._expire, ended=ended)):
                    touched[operation] = None
            number = sum([self._judge(operation, now, ended) for operation in touched if not operation.ended])
            for operation in touched:
                if operation.task is None and not operation.ended and operation.last < NEVER:
                    self._set_timer(operation, now)
        except BaseException:  # remove operations that could not be scheduled: they would never expire
            for operation in starts:
                self._remove(operation)
            raise
        return number

    def _check_ids(self, starts: list[Operation], now: int, ended: _Ended) -> None:
        if len({operation.op_id for operation in starts}) < len(starts):
            op_id, _ = Counter(operation.op_id for operation in starts).most_common(1)[0]
            raise ValueError(f"two operations of one instant have the op_id {op_id!r}: give each its own")
        for operation in starts:
            former = self._pending.get(operation.op_id)
            if former is not None:
                if former.last >= now:
                    raise ValueError(f"operation {former.op_id!r} is pending: use another op_id, or cancel it first")
                self._expire(former, ended)

    def _key_state(self, key: Hashable) -> KeyState:
        key_state = self._keys.get(key)
        if key_state is None:
            keep_history = self._rules.details and self._rules.count == "always"
            serving = self._rules.serves != "every"
            key_state = ServingKeyState(key, keep_history, self._rules) if serving else KeyState(key, keep_history)
            self._keys[key] = key_state
        return key_state

    def _begin(self, operation: Operation, now: int) -> None:
        for state in operation.states:
            state.key_state = self._key_state(state.key)
            state.key_state.users += 1
            if state.role != "complete" or self._rules.serves == "every":
                state.key_state.states[state] = None
        self._pending[operation.op_id] = operation
        self._started += 1
        operation.begin(now, self._clock)

    def _judge(self, operation: Operation, now: int, ended: _Ended) -> int:
        """End the operation if its condition holds or a watch cancels it. Return 1 if it ended, else 0."""
        by = operation.completed_by(now, self._clock) if self._rules.holds == "ever" else None
        if by is not None:
            self._end(operation, "completed", now, by, ended)
            return 1
        by = operation.cancelled_by(now)
        if by is None:
            return 0
        if self._rules.holds == "at_deadline" and operation.deadline <= now:
            self._expire(operation, ended, otherwise=by)
        else:
            self._end(operation, "cancelled", now, by, ended)
        return 1

    def _expire(self, operation: Operation, ended: _Ended, otherwise: tuple[WatchState, int] | None = None) -> None:
        """End an operation at its deadline: completed if its condition holds, cancelled by `otherwise`, or expired."""
        if operation.ended:
            return
        at = operation.deadline
        by = operation.completed_by(at, self._clock) if self._rules.holds == "at_deadline" else None
        if by is not None:
            self._end(operation, "completed", at, by, ended)
        else:
            self._end(operation, "expired" if otherwise is None else "cancelled", at, otherwise, ended)

    def _end(
        self,
        operation: Operation,
        outcome: ResolutionOutcome,
        at: int,
        by: tuple[WatchState, int] | None,
        ended: _Ended,
    ) -> None:
        self._ends[outcome] += 1
        if operation.on_end is not None:
            ended.append((operation.on_end, operation.resolution(outcome, at, by)))
        self._remove(operation)

    def _remove(self, operation: Operation) -> None:
        if operation.ended:
            return
        operation.ended = True
        self._pending.pop(operation.op_id, None)
        for state in operation.states:
            if state.key_state is None:  # it never began
                continue
            state.key_state.users -= 1
            state.key_state.states.pop(state, None)
            if self._rules.serves != "every":
                state.key_state.waiting.pop(operation, None)
            self._drop_if_unused(state.key_state)
        operation.clear_watches()
        if operation.task is not None:
            operation.task.cancel()
            operation.task = None

    def _drop_if_unused(self, key_state: KeyState) -> None:
        """Delete the state of a key without events and watches."""
        if key_state.at < 0 and not key_state.users:
            self._keys.pop(key_state.key, None)

    def _set_timer(self, operation: Operation, now: int) -> None:
        delay = max(to_seconds(operation.last + 1 - now), math.ulp(to_seconds(now)))
        operation.task = self._timer.call_later(delay, self._on_timer, operation)

    def _wall(self) -> int:
        return (
            0 if isinstance(self._timer, ManualTimer) else time.time_ns() - to_nanoseconds(self._timer.time(), "time")
        )

    # -- with the lock free

    def _on_timer(self, operation: Operation) -> None:
        """Expire an overdue operation, or schedule it again if its deadline has moved."""
        ended: _Ended = []
        try:
            with self._lock:
                operation.task = None
                now = to_nanoseconds(self._timer.time(), "time")
                if operation.ended:
                    return
                if operation.last < now:
                    self._expire(operation, ended)
                elif operation.last < NEVER:
                    self._set_timer(operation, now)
        finally:
            self._deliver(ended)

    def _forget_idle(self, key: Hashable) -> None:
        with self._lock:
            key_state = self._keys.get(key)
            if key_state is None or self._closed:
                return
            if key_state.users:
                self._idle.seen(key)  # type: ignore[union-attr]
            else:
                del self._keys[key]

    def _deliver(self, ended: _Ended) -> None:
        """Call the `on_end` of ended operations; within another `on_end`, queue them until it has returned."""
        if not ended:
            return
        outer: deque[tuple[Callable[[Resolution], object], Resolution]] | None = getattr(self._local, "queue", None)
        if outer is not None:
            outer += ended
            return
        self._local.queue = queue = deque(ended)
        raised: BaseException | None = None
        while queue:
            on_end, resolution = queue.popleft()
            try:
                result = on_end(resolution)
                if is_coroutine(result):
                    refuse_coroutine(result)
            except Exception as error:  # noqa: BLE001  reported
                report(error, self, on_end, "resolver", self._on_error)
            except BaseException as error:  # noqa: BLE001  raised after all were called
                raised = error
        self._local.queue = None
        if raised is not None:
            raise raised

    def _reset_in_child(self) -> object:
        """Drop all state in the child process of a fork: pending operations end in the parent only."""
        inherited = self._keys, self._pending, self._lock
        self._local = threading.local()
        self._reset()
        return inherited
