"""One operation that waits: what its watches have come to, and until when its countdown runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Literal, NamedTuple

from abeyant.resolver.line import Arrived, combined
from abeyant.resolver.words import ROLES, Combine, Condition, Count, Role, Words
from abeyant.timer.units import NEVER, to_seconds

Ending = Literal["completed", "cancelled", "expired", "pending"]


class Watch(NamedTuple):
    """What an operation waits for: that `key` comes to at least `required`. `role` is what that does to it."""

    key: Hashable
    required: float = 1
    role: Role = "complete"


class Decided(NamedTuple):
    """The watch that decided, and since when it was met, in seconds on the timer's clock."""

    key: Hashable
    at: float


class Resolution(NamedTuple):
    """How an operation ended. Times are in seconds, on the timer's clock."""

    op_id: Hashable
    outcome: Ending
    """ "pending" where the resolver was closed before the end."""
    at: float | None
    """An expired one ends at its deadline, however late the timer is; a pending one has no end."""
    waited: float | None
    completed_by: Decided | None = None
    """With `details`, as the two below."""
    cancelled_by: Decided | None = None
    counted: int | None = None
    """How many events counted: of the watches that extend it, if there are any, else of those that complete it."""


class Gauge:
    """What one watch has come to."""

    __slots__ = ("counted", "key", "line", "operation", "required", "role", "since", "value")

    def __init__(self, watch: Watch, operation: Operation) -> None:
        self.key, self.required, self.role = watch
        self.operation = operation
        self.line: Any = None  # a Line, from the start on
        self.counted = 0
        self.value: float | None = None
        self.since: int | None = None
        """When an event brought it there, while it is met."""

    def begin(self, now: int, count: Count, combine: Combine) -> None:
        """Count from `now` on, by the word `count`."""
        line = self.line
        self.value, self.since = 0 if combine == "sum" else None, None
        if count == "always":
            self.counted = line.counted
            if line.value is not None:
                self.value, self.since = line.value, line.since(self.required)
        elif count == "from_start" and line.at == now and line.here is not None:
            self.counted, self.value = line.here_counted, line.here
            self.since = now if self.met else None

    def add(self, arrived: Arrived, now: int, words: Words) -> None:
        """Take in what came at one instant."""
        self.value = combined(self.value, arrived, words.combine)
        if self.value < self.required:
            self.since = None
        elif self.since is None:
            self.since = now

    @property
    def met(self) -> bool:
        """Whether it holds now."""
        return self.value is not None and self.value >= self.required


class Operation:
    """A pending operation. Times are nanoseconds on the timer's clock; nothing here is locked."""

    __slots__ = (
        "cancelling", "completing", "condition", "deadline", "ended", "extended", "extending", "extension", "fixed",
        "gauges", "last", "left", "mark", "on_end", "op_id", "paused", "pausing", "received", "received_at", "served",
        "start", "step", "task", "timeout", "turned", "words",
    )  # fmt: skip

    def __init__(
        self,
        words: Words,
        op_id: Hashable,
        watches: Sequence[Watch],
        timeout: int,
        fixed: bool,
        condition: Condition,
        extension: int | None,
        on_end: Callable[[Resolution], object] | None,
    ) -> None:
        """`timeout` is a duration, or with `fixed` the instant of the deadline."""
        self.words, self.op_id, self.condition, self.on_end = words, op_id, condition, on_end
        self.timeout, self.extension, self.fixed = timeout, extension, fixed
        self.gauges = [Gauge(watch, self) for watch in watches]
        self.completing, self.cancelling, self.extending, self.pausing = (
            [gauge for gauge in self.gauges if gauge.role == role] for role in ROLES
        )
        self.step = 0  # with steps: the one that is to be met next
        self.served = 0  # how many events served it alone, what they came to, when the last came
        self.received: float = 0
        self.received_at: int | None = None
        self.extended = self.turned = self.paused = self.ended = False
        self.task: Any = None

    # -- the countdown

    def begin(self, now: int, elapse: Elapse) -> None:
        """Start the watches and the countdown; their lines know what came up to now."""
        after: Count = "from_start" if self.words.count == "from_start" else "after_start"
        for gauge in self.gauges:
            role = gauge.role
            count = self._count if role == "complete" else after if role == "extend" else self.words.count
            gauge.begin(now, count, self.words.combine)
            if role == "extend" and gauge.counted:
                self.extended = True
        self.start = self.mark = now
        if self.fixed:
            self.timeout = max(self.timeout - now, 0)
        self.left = self.timeout
        self.reckon(now, elapse)

    def reckon(self, now: int, elapse: Elapse) -> None:
        """Set the deadline anew after an extension, a pause or its end."""
        if now > self.mark:
            if not self.paused:
                self.left -= elapse.between(self.mark, now, self.fixed)
            self.mark = now
        if self.extended:
            self.left = max(self.left, self.timeout if self.extension is None else self.extension)
        for gauge in self.pausing:
            level = gauge.line.level
            self.paused = level is not None and level >= gauge.required
        self.extended = self.turned = False
        if self.paused and self.left > 0:
            self.deadline = self.last = NEVER
        else:
            self.deadline = now if self.left <= 0 else elapse.after(now, self.left, self.fixed)
            exclusive = self.words.deadline == "exclusive"
            self.last = max(self.start, self.deadline - 1) if exclusive else self.deadline
            """The last instant at which an event is in time."""

    # -- the condition

    @property
    def _count(self) -> Count:
        then = self.condition == "then" and self.words.count == "always" and self.words.serves == "every"
        return "after_start" if then else self.words.count

    def add(self, gauge: Gauge, arrived: Arrived, now: int) -> None:
        """Take in what came for one of its watches."""
        gauge.counted += len(arrived.progress)
        if gauge.role == "extend":
            self.extended = True
        elif gauge.role == "pause":
            self.turned = True
        elif gauge.role == "cancel" or self.condition != "then" or self.completing[self.step] is gauge:
            gauge.add(arrived, now, self.words)

    def completed_by(self, now: int, elapse: Elapse) -> tuple[Gauge, int] | None:
        """Return the watch by which the condition holds, and since when. Steps that are met are gone over."""
        gauges = self.completing
        if not gauges:
            return None
        if self.words.serves != "every":
            at = now if self.received_at is None else self.received_at
            return None if self.lacks_service() else (gauges[0], at)
        if self.condition == "then":
            return self._last_step(gauges, now, elapse)
        met = [gauge for gauge in gauges if gauge.met]
        if not met or (self.condition != "any" and len(met) < len(gauges)):
            return None
        if self.words.holds == "at_deadline":
            return met[0], now
        return earliest(met, now) if self.condition == "any" else latest(met, now)

    def _last_step(self, gauges: list[Gauge], now: int, elapse: Elapse) -> tuple[Gauge, int] | None:
        while gauges[self.step].met:
            if self.step + 1 == len(gauges):
                return gauges[-1], now
            self.step += 1
            following = gauges[self.step]
            counted = following.counted  # of the whole wait, whichever step it was at
            following.begin(now, self._count, self.words.combine)
            following.counted = counted
            if self.words.within == "step":
                self.left, self.mark = self.timeout, now
                self.reckon(now, elapse)
        return None

    def cancelled_by(self, now: int) -> tuple[Gauge, int] | None:
        """Return the watch that cancels it, if one does, and since when."""
        met = [gauge for gauge in self.cancelling if gauge.met]
        return earliest(met, now) if met else None

    # -- events that serve one operation

    def lacks_service(self) -> bool:
        """Return whether it wants more of the events that serve one operation."""
        if self.words.combine == "sum":
            return self.received < self.completing[0].required
        return not self.served

    def takes(self, at: int, progress: float) -> bool:
        """Take an event that serves one operation, if it does so. Return whether it did."""
        if not self.lacks_service() or (self.words.combine != "sum" and progress < self.completing[0].required):
            return False
        self.served += 1
        self.received += progress
        self.received_at = at
        return True

    @property
    def counted(self) -> int:
        """How many events counted so far."""
        if not self.extending and self.words.serves != "every":
            return self.served
        return sum(gauge.counted for gauge in self.extending or self.completing)

    def let_go(self) -> None:
        """Forget the watches, which know it: a circle, and a timer may still know it for a while."""
        self.gauges = self.completing = self.cancelling = self.extending = self.pausing = []

    def resolution(self, outcome: Ending, at: int | None, by: tuple[Gauge, int] | None) -> Resolution:
        """Return how it ended; `by` is the watch that decided, and since when."""
        ended = None if at is None else to_seconds(at)
        waited = None if at is None else to_seconds(at - self.start)
        if not self.words.details:
            return Resolution(self.op_id, outcome, ended, waited)
        decided = None if by is None else Decided(by[0].key, to_seconds(by[1]))
        completed, cancelled = (decided if outcome == name else None for name in ("completed", "cancelled"))
        return Resolution(self.op_id, outcome, ended, waited, completed, cancelled, self.counted)


class Elapse:
    """How time passes for a countdown: always, or in business hours. In nanoseconds on the timer's clock."""

    def __init__(self, words: Words, wall: Callable[[], int]) -> None:
        """`wall` is what is to be added to the timer's clock for the time since 1970."""
        self._calendar, self._wall = words.calendar, wall

    def between(self, begin: int, end: int, always: bool) -> int:
        """Return how much passes from one instant to another."""
        if self._calendar is None or always:
            return end - begin
        wall = self._wall()
        first, last = (self._calendar.elapsed_at(-(-(at + wall) // _MICRO)) for at in (begin, end))
        return (last - first) * _MICRO

    def after(self, now: int, amount: int, always: bool) -> int:
        """Return the first instant by which `amount` has passed."""
        if self._calendar is None or always:
            return min(now + amount, NEVER)
        wall = self._wall()
        begin = -(-(now + wall) // _MICRO)
        due = self._calendar.due_at(begin, self._calendar.elapsed_at(begin) - (-amount // _MICRO))
        return min(due * _MICRO - wall, NEVER)


_MICRO: Final = 1000


def earliest(met: list[Gauge], now: int) -> tuple[Gauge, int]:
    """Return the watch that was met first, and since when; of several at once the first of the list."""
    return min(((gauge, now if gauge.since is None else gauge.since) for gauge in met), key=_since)


def latest(met: list[Gauge], now: int) -> tuple[Gauge, int]:
    """Return the watch that was met last, and since when; of several at once the first of the list."""
    return max(((gauge, now if gauge.since is None else gauge.since) for gauge in met), key=_since)


def _since(decided: tuple[Gauge, int]) -> int:
    return decided[1]
