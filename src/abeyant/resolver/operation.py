"""One pending operation: the progress of its watches, and its countdown."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Literal, NamedTuple

from abeyant.resolver.key_state import Arrivals, combined
from abeyant.resolver.rules import ROLES, Combine, Condition, Count, Role, Rules
from abeyant.timer.units import NEVER, to_seconds

ResolutionOutcome = Literal["completed", "cancelled", "expired", "pending"]
"""The outcome of an operation of a `Resolver`; "pending" for an operation that `Resolver.close` returned."""


class Watch(NamedTuple):
    """A key that an operation watches. `role` says what happens when the key's progress is at least `required`."""

    key: Hashable
    required: float = 1
    role: Role = "complete"


class Decided(NamedTuple):
    """The key of the watch that decided an outcome, and since when it was met, in seconds on the timer's clock."""

    key: Hashable
    at: float


class Resolution(NamedTuple):
    """The outcome of an operation. Times are in seconds, on the timer's clock."""

    op_id: Hashable
    outcome: ResolutionOutcome
    """The outcome; "pending" if the resolver was closed first."""
    at: float | None
    """The time at which the operation ended; if expired, its deadline, however late the timer ran. None if pending."""
    waited: float | None
    """Seconds from the operation's start to `at`. None if pending."""
    completed_by: Decided | None = None
    """The watch that completed the operation. None without `details`, like `cancelled_by` and `counted`."""
    cancelled_by: Decided | None = None
    counted: int | None = None
    """The number of events counted for the operation's `extend` watches if it has any, else for its `complete` ones."""


class ResolverStats(NamedTuple):
    """One consistent reading of a resolver's counts. `pending` and `keys` are current; all other counts are totals.

    Operations that `cancel` or `close` removed count in `started` only.
    """

    pending: int
    """Operations that have started and not ended: `len(resolver)`."""
    keys: int
    """Keys whose state is kept: watched keys, and keys whose events are not forgotten."""
    started: int
    completed: int
    cancelled: int
    """Operations ended by a watch with the role "cancel"."""
    expired: int


class WatchState:
    """The progress of one watch."""

    __slots__ = ("counted", "key", "key_state", "operation", "required", "role", "since", "value")

    def __init__(self, watch: Watch, operation: Operation) -> None:
        self.key, self.required, self.role = watch
        self.operation = operation
        self.key_state: Any = None  # a KeyState, once the operation has started
        self.counted = 0
        self.value: float | None = None
        self.since: int | None = None
        """The time of the event that met the watch; None while it is not met, or if the time is unknown."""

    def begin(self, now: int, count: Count, combine: Combine) -> None:
        """Start counting events at `now`, beginning with the earlier events that `count` includes."""
        key_state = self.key_state
        self.value, self.since = 0 if combine == "sum" else None, None
        if count == "always":
            self.counted = key_state.counted
            if key_state.value is not None:
                self.value, self.since = key_state.value, key_state.since(self.required)
        elif count == "from_start" and key_state.at == now and key_state.here is not None:
            self.counted, self.value = key_state.here_counted, key_state.here
            self.since = now if self.met else None

    def add(self, arrived: Arrivals, now: int, rules: Rules) -> None:
        """Add the events of one instant."""
        self.value = combined(self.value, arrived, rules.combine)
        if self.value < self.required:
            self.since = None
        elif self.since is None:
            self.since = now

    @property
    def met(self) -> bool:
        """Return whether the watch is met now."""
        return self.value is not None and self.value >= self.required


class Operation:
    """A pending operation. Times are nanoseconds on the timer's clock. Not thread-safe: the resolver's lock guards."""

    __slots__ = (
        "cancelling",
        "completing",
        "condition",
        "deadline",
        "ended",
        "extended",
        "extending",
        "extension",
        "fixed",
        "last",
        "left",
        "mark",
        "on_end",
        "op_id",
        "pause_changed",
        "paused",
        "pausing",
        "received",
        "received_at",
        "rules",
        "served",
        "start",
        "states",
        "step",
        "task",
        "timeout",
    )  # fmt: skip

    def __init__(
        self,
        rules: Rules,
        op_id: Hashable,
        watches: Sequence[Watch],
        timeout: int,
        fixed: bool,
        condition: Condition,
        extension: int | None,
        on_end: Callable[[Resolution], object] | None,
    ) -> None:
        """Pass `timeout` as a duration, or with `fixed` as the instant of the deadline."""
        self.rules, self.op_id, self.condition, self.on_end = rules, op_id, condition, on_end
        self.timeout, self.extension, self.fixed = timeout, extension, fixed
        self.states = [WatchState(watch, self) for watch in watches]
        self.completing, self.cancelling, self.extending, self.pausing = (
            [state for state in self.states if state.role == role] for role in ROLES
        )
        self.step = 0  # condition 'then': number of the step to be met next
        self.served = 0  # events that served only this operation: their number, sum of progress, time of the last
        self.received: float = 0
        self.received_at: int | None = None
        self.extended = self.pause_changed = self.paused = self.ended = False
        self.task: Any = None

    # -- the countdown

    def begin(self, now: int, clock: CountdownClock) -> None:
        """Start the watches and the countdown. The keys' states include the events up to now."""
        after: Count = "from_start" if self.rules.count == "from_start" else "after_start"
        for state in self.states:
            role = state.role
            count = self._count if role == "complete" else after if role == "extend" else self.rules.count
            state.begin(now, count, self.rules.combine)
            if role == "extend" and state.counted:
                self.extended = True
        self.start = self.mark = now
        if self.fixed:
            self.timeout = max(self.timeout - now, 0)
        self.left = self.timeout
        self.update_deadline(now, clock)

    def update_deadline(self, now: int, clock: CountdownClock) -> None:
        """Recompute the deadline after an extension, or after a pause has begun or ended."""
        if now > self.mark:
            if not self.paused:
                self.left -= clock.between(self.mark, now, self.fixed)
            self.mark = now
        if self.extended:
            self.left = max(self.left, self.timeout if self.extension is None else self.extension)
        for state in self.pausing:
            level = state.key_state.level
            self.paused = level is not None and level >= state.required
        self.extended = self.pause_changed = False
        if self.paused and self.left > 0:
            self.deadline = self.last = NEVER
        else:
            self.deadline = now if self.left <= 0 else clock.after(now, self.left, self.fixed)
            exclusive = self.rules.deadline == "exclusive"
            self.last = max(self.start, self.deadline - 1) if exclusive else self.deadline
            """The last instant at which an event counts."""

    # -- the condition

    @property
    def _count(self) -> Count:
        then = self.condition == "then" and self.rules.count == "always" and self.rules.serves == "every"
        return "after_start" if then else self.rules.count

    def add(self, state: WatchState, arrived: Arrivals, now: int) -> None:
        """Add the events of one instant to one of the operation's watches."""
        state.counted += len(arrived.progress)
        if state.role == "extend":
            self.extended = True
        elif state.role == "pause":
            self.pause_changed = True
        elif state.role == "cancel" or self.condition != "then" or self.completing[self.step] is state:
            state.add(arrived, now, self.rules)

    def completed_by(self, now: int, clock: CountdownClock) -> tuple[WatchState, int] | None:
        """Return the watch that completes the operation, and since when it is met; None if none does. Advance steps."""
        states = self.completing
        if not states:
            return None
        if self.rules.serves != "every":
            at = now if self.received_at is None else self.received_at
            return None if self.needs_event() else (states[0], at)
        if self.condition == "then":
            return self._last_step(states, now, clock)
        met = [state for state in states if state.met]
        if not met or (self.condition != "any" and len(met) < len(states)):
            return None
        if self.rules.holds == "at_deadline":
            return met[0], now
        return earliest(met, now) if self.condition == "any" else latest(met, now)

    def _last_step(self, states: list[WatchState], now: int, clock: CountdownClock) -> tuple[WatchState, int] | None:
        while states[self.step].met:
            if self.step + 1 == len(states):
                return states[-1], now
            self.step += 1
            following = states[self.step]
            counted = following.counted  # `details` count events of the whole wait, of earlier steps too
            following.begin(now, self._count, self.rules.combine)
            following.counted = counted
            if self.rules.within == "step":
                self.left, self.mark = self.timeout, now
                self.update_deadline(now, clock)
        return None

    def cancelled_by(self, now: int) -> tuple[WatchState, int] | None:
        """Return the watch that cancels the operation, and since when it is met; None if none does."""
        met = [state for state in self.cancelling if state.met]
        return earliest(met, now) if met else None

    # -- events that serve one operation

    def needs_event(self) -> bool:
        """Return whether the operation still needs events to serve it."""
        if self.rules.combine == "sum":
            return self.received < self.completing[0].required
        return not self.served

    def serve_with(self, at: int, progress: float) -> bool:
        """Use up an event for this operation if that helps to complete it. Return whether the event was used up."""
        if not self.needs_event() or (self.rules.combine != "sum" and progress < self.completing[0].required):
            return False
        self.served += 1
        self.received += progress
        self.received_at = at
        return True

    @property
    def counted(self) -> int:
        """Return the number of events counted so far."""
        if not self.extending and self.rules.serves != "every":
            return self.served
        return sum(state.counted for state in self.extending or self.completing)

    def clear_watches(self) -> None:
        """Drop the watches, to break the reference cycle: the timer may hold the operation for a while."""
        self.states = self.completing = self.cancelling = self.extending = self.pausing = []

    def resolution(self, outcome: ResolutionOutcome, at: int | None, by: tuple[WatchState, int] | None) -> Resolution:
        """Return the resolution; `by` is the watch that decided, and since when it was met."""
        ended = None if at is None else to_seconds(at)
        waited = None if at is None else to_seconds(at - self.start)
        if not self.rules.details:
            return Resolution(self.op_id, outcome, ended, waited)
        decided = None if by is None else Decided(by[0].key, to_seconds(by[1]))
        completed, cancelled = (decided if outcome == name else None for name in ("completed", "cancelled"))
        return Resolution(self.op_id, outcome, ended, waited, completed, cancelled, self.counted)


class CountdownClock:
    """The clock of countdowns: it runs always, or only in business hours. In nanoseconds on the timer's clock."""

    def __init__(self, rules: Rules, wall: Callable[[], int]) -> None:
        """`wall` returns the time since 1970 less the timer's clock, in nanoseconds."""
        self._calendar, self._wall = rules.calendar, wall

    def between(self, begin: int, end: int, always: bool) -> int:
        """Return how many nanoseconds count between two instants: only business hours, or with `always` all."""
        if self._calendar is None or always:
            return end - begin
        wall = self._wall()
        first, last = (self._calendar.elapsed_at(-(-(at + wall) // _MICRO)) for at in (begin, end))
        return (last - first) * _MICRO

    def after(self, now: int, amount: int, always: bool) -> int:
        """Return the first instant at which `amount` has counted down since `now`."""
        if self._calendar is None or always:
            return min(now + amount, NEVER)
        wall = self._wall()
        begin = -(-(now + wall) // _MICRO)
        due = self._calendar.due_at(begin, self._calendar.elapsed_at(begin) - (-amount // _MICRO))
        return min(due * _MICRO - wall, NEVER)


_MICRO: Final = 1000


def earliest(met: list[WatchState], now: int) -> tuple[WatchState, int]:
    """Return the watch that was met first and since when; on a tie the first of the list."""
    return min(((state, now if state.since is None else state.since) for state in met), key=_since)


def latest(met: list[WatchState], now: int) -> tuple[WatchState, int]:
    """Return the watch that was met last and since when; on a tie the first of the list."""
    return max(((state, now if state.since is None else state.since) for state in met), key=_since)


def _since(decided: tuple[WatchState, int]) -> int:
    return decided[1]
