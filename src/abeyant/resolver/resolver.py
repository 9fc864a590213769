"""Complete or expire, live: operations start and events come, on any timer.

Ground rules
------------
* One lock guards everything. No code of the user's runs under it but the `__hash__` and `__eq__` of keys. The timer is
  called under it, which calls us with its own lock free; so its lock is always the inner one.
* Each call of `start` or `event` is an instant of its own; several together are one within `instant`. The clock is read
  under the lock, so that the order of calls is that of their times. An instant goes in the order of law O3: what is
  overdue expires; events reach the lines; operations start; whoever an event reached is judged.
* An operation ends under the lock, once, and leaves its lines and the timer. Its `on_end` is called after that with
  the lock free, in the same thread. One that ends others puts off their `on_end` until it has returned.
* An operation expires at the first turn of the timer *after* the last instant at which an event is in time: on a
  virtual clock that shows the deadline, an event still counts. Deadlines only move to later. So an extension leaves the
  timer's task where it is; when that runs too early, it starts another.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self

from abeyant.forking import begins_anew
from abeyant.idle import IdleDetector
from abeyant.mutex import Mutex
from abeyant.reporting import report
from abeyant.resolver.calendar import Calendar
from abeyant.resolver.instant import Event, Feed, Instant
from abeyant.resolver.line import Arrived, Line
from abeyant.resolver.operation import Elapse, Ending, Gauge, Operation, Resolution
from abeyant.resolver.serving import ServingLine, serve
from abeyant.resolver.words import Combine, Count, Deadline, Holds, Serves, Within, Words
from abeyant.timer.base import Timer, check_callback, refuse_coroutine
from abeyant.timer.callbacks import is_coroutine
from abeyant.timer.manual import ManualTimer
from abeyant.timer.units import NEVER, to_nanoseconds, to_seconds

_Ended = list[tuple[Callable[[Resolution], object], Resolution]]


class ResolverClosedError(RuntimeError):
    """Something was fed to a resolver that is closed; it was not accepted."""


class Resolver(Feed):
    """Ends each operation once: completed when its watches are met, cancelled, or expired at its deadline.

        resolver = Resolver(SystemTimer("orders"))
        resolver.start("order-1", [Watch("paid/1"), Watch("withdrawn/1", role="cancel")], timeout=900, on_end=print)
        resolver.event("paid/1")

    What `abeyant.tables.resolve` says of whole tables, this says as operations and events come, by the same words: fed
    in the order of time, each instant within `instant`, it gives the same outcomes. `docs/design-resolve.md` defines
    them. Safe from any thread, as far as the timer is; it has no thread itself.

    What came for a key is remembered, whether anybody waits for it or not; `remember` and `forget` bound that.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_elapse",
        "_idle",
        "_lines",
        "_local",
        "_lock",
        "_on_error",
        "_pending",
        "_timer",
    )

    def __init__(
        self,
        timer: Timer,
        *,
        deadline: Deadline = "inclusive",
        count: Count = "always",
        combine: Combine = "max",
        holds: Holds = "ever",
        serves: Serves = "every",
        within: Within = "whole",
        calendar: Calendar | None = None,
        details: bool = False,
        remember: float | timedelta | None = None,
        on_error: Callable[[BaseException, Any], object] | None = None,
    ) -> None:
        """`timer` is any of this package's; several resolvers may share one. Close the resolver before it.

        With a `calendar` a `ManualTimer` shows seconds since 1970; under other timers the machine's time counts.
        `details` fills `completed_by`, `cancelled_by` and `counted` of resolutions. With `count="always"` they take
        memory that grows with the events. A key that nobody waits for is forgotten when no event has come for it for
        `remember` seconds (default: never). `on_error(error, on_end)` gets what an `on_end` raises, else the log.
        """
        if not isinstance(timer, Timer):
            raise TypeError(f"timer must be a SystemTimer, ManualTimer or aio.Timer, not {timer!r}")
        if on_error is not None:
            check_callback(on_error, "on_error")
        self._words = Words(deadline, count, combine, holds, serves, within, calendar, details)
        self._timer, self._on_error = timer, on_error
        self._elapse = Elapse(self._words, self._wall)
        self._local = threading.local()
        self._closed = False
        self._idle = None if remember is None else IdleDetector(remember, self._forget_idle, timer)
        self._keep_nothing()
        begins_anew(self)

    def _keep_nothing(self) -> None:
        self._lock = Mutex("a resolver")
        self._lines: dict[Hashable, Line] = {}
        self._pending: dict[Hashable, Operation] = {}

    # -- for users

    def instant(self) -> Instant:
        """Return what takes operations and events of one instant, in a `with` block, to be judged together.

            with resolver.instant() as now:
                now.event("stock", 3)
                now.start("order-7", [Watch("stock", 3)], timeout=60)

        Its events come before its starts, whatever their order here. An event that serves one operation goes to
        operations of one start in the order in which they are given.
        """
        return Instant(self, self._words)

    def cancel(self, op_id: Hashable) -> bool:
        """Take an operation out without an end, and without `on_end`; True exactly when it was pending. O(watches)."""
        with self._lock:
            operation = self._pending.get(op_id)
            if operation is not None:
                self._leave(operation)
        return operation is not None

    def forget(self, key: Hashable) -> None:
        """Let go of what came for `key`. Operations that wait for it keep what it has come to for them."""
        with self._lock:
            line = self._lines.get(key)
            if line is not None:
                line.forget()
                self._drop(line)

    def close(self) -> list[Resolution]:
        """Accept nothing more; return what was pending, as resolutions with the outcome "pending". O(pending).

        No `on_end` is called for them. A second call returns an empty list. The timer stays open.
        """
        with self._lock:
            self._closed = True
            left = [operation.resolution("pending", None, None) for operation in self._pending.values()]
            for operation in list(self._pending.values()):
                self._leave(operation)
            self._lines.clear()
        if self._idle is not None:
            self._idle.close()
        return left

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._closed

    def __len__(self) -> int:
        """Return how many operations are pending, exactly."""
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
        raise TypeError(f"{self!r} cannot be copied or pickled: two could not share its operations")

    def __repr__(self) -> str:
        return f"<Resolver{' closed' if self._closed else ''}, {len(self)} pending>"

    # -- an instant

    def _take(self, starts: list[Operation], events: list[Event]) -> int:
        """Let operations start and events come, all at once. Return how many operations that ended."""
        together: dict[Hashable, list[float]] = {}
        for key, progress in events:
            together.setdefault(key, []).append(progress)
        arrived = {key: Arrived(sorted(some, reverse=True), sum(some)) for key, some in together.items()}
        ended: _Ended = []
        try:
            with self._lock:
                return self._judge_instant(starts, arrived, ended)
        finally:
            self._deliver(ended)

    # -- with the lock held

    def _judge_instant(self, starts: list[Operation], arrived: dict[Hashable, Arrived], ended: _Ended) -> int:
        if self._closed:
            raise ResolverClosedError(f"{self!r} accepts nothing more; make a new one")
        now = to_nanoseconds(self._timer.time(), "time")
        if starts:
            self._check_ids(starts, now, ended)
        for key in arrived:
            line = self._lines.get(key)
            if line is not None:
                for operation in [gauge.operation for gauge in line.gauges if gauge.operation.last < now]:
                    self._expire(operation, ended)
        touched: dict[Operation, None] = {}
        reached = [(self._line(key), some) for key, some in arrived.items()]
        for line, some in reached:
            line.add(some, now, self._words.combine)
            if self._idle is not None:
                self._idle.seen(line.key)
            for gauge in line.gauges:
                gauge.operation.add(gauge, some, now)
                touched[gauge.operation] = None
        for operation in touched:
            if operation.extended or operation.turned:
                operation.reckon(now, self._elapse)
        try:
            for operation in starts:
                self._begin(operation, now)
                touched[operation] = None
            if self._words.serves != "every":
                for operation in serve(reached, starts, now, self._words, partial(self._expire, ended=ended)):
                    touched[operation] = None
            number = sum([self._judge(operation, now, ended) for operation in touched if not operation.ended])
            for operation in touched:
                if operation.task is None and not operation.ended and operation.last < NEVER:
                    self._set_timer(operation, now)
        except BaseException:  # nothing is accepted that can never expire
            for operation in starts:
                self._leave(operation)
            raise
        return number

    def _check_ids(self, starts: list[Operation], now: int, ended: _Ended) -> None:
        if len({operation.op_id for operation in starts}) < len(starts):
            raise ValueError("two operations of one instant have the same op_id: give each its own")
        for operation in starts:
            former = self._pending.get(operation.op_id)
            if former is not None:
                if former.last >= now:
                    raise ValueError(
                        f"operation {former.op_id!r} is pending: give each its own op_id, or cancel that one before"
                    )
                self._expire(former, ended)

    def _line(self, key: Hashable) -> Line:
        line = self._lines.get(key)
        if line is None:
            remembers = self._words.details and self._words.count == "always"
            serving = self._words.serves != "every"
            line = ServingLine(key, remembers, self._words) if serving else Line(key, remembers)
            self._lines[key] = line
        return line

    def _begin(self, operation: Operation, now: int) -> None:
        for gauge in operation.gauges:
            gauge.line = self._line(gauge.key)
            gauge.line.users += 1
            if gauge.role != "complete" or self._words.serves == "every":
                gauge.line.gauges[gauge] = None
        self._pending[operation.op_id] = operation
        operation.begin(now, self._elapse)

    def _judge(self, operation: Operation, now: int, ended: _Ended) -> int:
        """End an operation whose condition holds now, or that is cancelled; return how many that is."""
        by = operation.completed_by(now, self._elapse) if self._words.holds == "ever" else None
        if by is not None:
            self._end(operation, "completed", now, by, ended)
            return 1
        by = operation.cancelled_by(now)
        if by is None:
            return 0
        if self._words.holds == "at_deadline" and operation.deadline <= now:
            self._expire(operation, ended, otherwise=by)
        else:
            self._end(operation, "cancelled", now, by, ended)
        return 1

    def _expire(self, operation: Operation, ended: _Ended, otherwise: tuple[Gauge, int] | None = None) -> None:
        """End an operation at its deadline: completed, if it holds there; else cancelled by `otherwise`, or expired."""
        if operation.ended:
            return
        at = operation.deadline
        by = operation.completed_by(at, self._elapse) if self._words.holds == "at_deadline" else None
        if by is not None:
            self._end(operation, "completed", at, by, ended)
        else:
            self._end(operation, "expired" if otherwise is None else "cancelled", at, otherwise, ended)

    def _end(self, operation: Operation, outcome: Ending, at: int, by: tuple[Gauge, int] | None, ended: _Ended) -> None:
        if operation.on_end is not None:
            ended.append((operation.on_end, operation.resolution(outcome, at, by)))
        self._leave(operation)

    def _leave(self, operation: Operation) -> None:
        if operation.ended:
            return
        operation.ended = True
        self._pending.pop(operation.op_id, None)
        for gauge in operation.gauges:
            if gauge.line is None:  # it never began
                continue
            gauge.line.users -= 1
            gauge.line.gauges.pop(gauge, None)
            if self._words.serves != "every":
                gauge.line.waiting.pop(operation, None)
            self._drop(gauge.line)
        operation.let_go()
        if operation.task is not None:
            operation.task.cancel()
            operation.task = None

    def _drop(self, line: Line) -> None:
        """Let go of a key for which nothing came and nobody waits."""
        if line.at < 0 and not line.users:
            self._lines.pop(line.key, None)

    def _set_timer(self, operation: Operation, now: int) -> None:
        delay = max(to_seconds(operation.last + 1 - now), math.ulp(to_seconds(now)))
        operation.task = self._timer.call_later(delay, self._turn, operation)

    def _wall(self) -> int:
        return (
            0 if isinstance(self._timer, ManualTimer) else time.time_ns() - to_nanoseconds(self._timer.time(), "time")
        )

    # -- with the lock free

    def _turn(self, operation: Operation) -> None:
        """What the timer calls: the operation is overdue, or its deadline has moved back."""
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
            line = self._lines.get(key)
            if line is None or self._closed:
                return
            if line.users:
                self._idle.seen(key)  # type: ignore[union-attr]
            else:
                del self._lines[key]

    def _deliver(self, ended: _Ended) -> None:
        """Call the `on_end` of operations that ended; inside another `on_end`, once that has returned."""
        if not ended:
            return
        outer: deque[tuple[Callable[[Resolution], object], Resolution]] | None = getattr(self._local, "queue", None)
        if outer is not None:
            outer += ended
            return
        self._local.queue = queue = deque(ended)
        struck: BaseException | None = None
        while queue:
            on_end, resolution = queue.popleft()
            try:
                result = on_end(resolution)
                if is_coroutine(result):
                    refuse_coroutine(result)
            except Exception as error:  # noqa: BLE001  reported
                report(error, self, on_end, "resolver", self._on_error)
            except BaseException as error:  # noqa: BLE001  raised when everybody knows
                struck = error
        self._local.queue = None
        if struck is not None:
            raise struck

    def _begin_anew(self) -> object:
        """In the child of a fork: what waited ends in the parent."""
        inherited = self._lines, self._pending, self._lock
        self._local = threading.local()
        self._keep_nothing()
        return inherited
