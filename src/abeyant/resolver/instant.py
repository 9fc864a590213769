"""Check operations and events before they reach a resolver, one by one or all those of an instant together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import timedelta
from math import inf
from types import TracebackType
from typing import Any, Final

from abeyant.purgatory.operation import LONGEST
from abeyant.resolver.operation import Operation, Resolution, Watch
from abeyant.resolver.rules import ROLES, Condition, Rules, either
from abeyant.timer.base import refuse_callback
from abeyant.timer.callbacks import is_async
from abeyant.timer.units import as_float, to_nanoseconds

Event = tuple[Hashable, float]
_CONDITIONS: Final = ("all", "any", "then")


class Feed:
    """Base class of `Resolver` and `Instant`, with the methods `start` and `event` that they share."""

    __slots__ = ("_rules",)

    _rules: Rules

    def _take(self, starts: list[Operation], events: list[Event]) -> int:
        raise NotImplementedError

    def start(
        self,
        op_id: Hashable,
        watches: Iterable[Watch],
        *,
        timeout: float | timedelta | None = None,
        deadline: float | None = None,
        condition: Condition = "all",
        extend: float | timedelta | None = None,
        on_end: Callable[[Resolution], object] | None = None,
    ) -> bool:
        """Start an operation now; return whether it ended at once. O(watches), with `serves` O(unused events skipped).

        Give a `timeout` in seconds or a `deadline` on the timer's clock; a deadline in the past is due now.
        After an event of a watch with the role "extend", at least `extend` seconds are left until the deadline
        (default: the time-out).
        `on_end(resolution)` is called once, with no lock held: in this call, in the call that ends the operation, or
        where the timer runs its callbacks.

        Raises ValueError for an `op_id` that is pending, and for watches that contradict each other or the options.
        """
        hash(op_id)
        if condition not in _CONDITIONS:
            raise ValueError(f"condition must be {either(_CONDITIONS)}, not {condition!r}")
        if (timeout is None) == (deadline is None):
            raise TypeError(f"operation {op_id!r} needs either a timeout or a deadline: give exactly one of the two")
        if on_end is not None and (not callable(on_end) or is_async(on_end)):
            refuse_callback(on_end, "on_end")
        listed, fixed = tuple(watches), timeout is None
        self._check_watches(op_id, listed, condition, fixed=fixed)
        span = to_nanoseconds(deadline, "deadline") if timeout is None else _span(timeout, "timeout")  # type: ignore[arg-type]
        extension = None if extend is None else _span(extend, "extend")
        operation = Operation(self._rules, op_id, listed, span, fixed, condition, extension, on_end)
        return bool(self._take([operation], []))

    def event(self, key: Hashable, progress: float = 1) -> int:
        """Record an event of `key` now; return how many operations it ended. O(pending operations that watch `key`)."""
        if type(progress) is not int:
            _check_number(progress, "progress")
        return self._take([], [(key, progress)])

    def _check_watches(self, op_id: Hashable, watches: tuple[Watch, ...], condition: Condition, *, fixed: bool) -> None:
        rules = self._rules
        for watch in watches:
            if not isinstance(watch, Watch):
                raise TypeError(
                    f"operation {op_id!r}: each watch must be an abeyant.Watch, such as Watch(key), not {watch!r}"
                )
            if watch.role not in ROLES:
                raise ValueError(f"operation {op_id!r}: role must be {either(ROLES)}, not {watch.role!r}")
            _check_number(watch.required, f"operation {op_id!r}: required")
        if len(watches) < 2 and condition != "then" and not fixed and watches and watches[0].role == "complete":
            return
        roles = [watch.role for watch in watches]
        if not watches:
            raise ValueError(f"operation {op_id!r} must watch at least one key: without any it could only expire")
        if roles.count("pause") > 1:
            raise ValueError(f"operation {op_id!r}: several watches have role 'pause'; give it only one such watch")
        if rules.serves != "every" and roles.count("complete") > 1:
            raise ValueError(
                f"operation {op_id!r} has several watches with role 'complete', which serves={rules.serves!r} "
                "excludes: an event serves one watch; give each operation one such watch"
            )
        if condition == "then" and rules.holds == "at_deadline":
            raise ValueError(
                f"operation {op_id!r} has condition 'then', which holds='at_deadline' excludes: steps are met one "
                "after the other; use holds='ever' or condition 'all'"
            )
        if condition == "then" and rules.within == "step" and "extend" in roles:
            raise ValueError(
                f"operation {op_id!r} has condition 'then' and a watch with role 'extend', which within='step' "
                "excludes: each step restarts the countdown already; use within='whole' or leave the watch out"
            )
        if fixed and (rules.calendar is not None or "pause" in roles):
            raise ValueError(
                f"operation {op_id!r}: a deadline cannot be combined with a calendar or a watch with role 'pause': it "
                "is a fixed instant; give a timeout"
            )


class Instant(Feed):
    """Operations and events of one instant, applied together when its `with` block ends (laws O3, O5 and O7).

    If the block raises, none of them is applied. Not thread-safe: use an instant in the thread that made it.
    """

    __slots__ = ("_events", "_starts", "_whole")

    def __init__(self, whole: Any, rules: Rules) -> None:
        """Not for users: `Resolver.instant` makes instants."""
        self._whole, self._rules = whole, rules
        self._starts: list[Operation] = []
        self._events: list[Event] = []

    def _take(self, starts: list[Operation], events: list[Event]) -> int:
        self._starts += starts
        self._events += events
        return 0

    def __enter__(self) -> Instant:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._whole._take(self._starts, self._events)


def _check_number(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -inf < value < inf:
        raise TypeError(f"{name} must be a finite number, not {value!r}")


def _span(seconds: float | timedelta, name: str) -> int:
    if not 0 <= as_float(seconds, name) <= LONGEST:
        raise ValueError(f"{name} must be from 0 seconds to a hundred years, not {seconds!r}")
    return to_nanoseconds(seconds, name)
