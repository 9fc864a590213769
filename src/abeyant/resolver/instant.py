"""What is fed to a resolver: operations that start, and events. Checked here, one by one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import timedelta
from math import inf
from types import TracebackType
from typing import Any, Final

from abeyant.purgatory.operation import LONGEST
from abeyant.resolver.operation import Operation, Resolution, Watch
from abeyant.resolver.words import ROLES, Condition, Words, either
from abeyant.timer.base import refuse_callback
from abeyant.timer.callbacks import is_async
from abeyant.timer.units import as_float, to_nanoseconds

Event = tuple[Hashable, float]
_CONDITIONS: Final = ("all", "any", "then")


class Feed:
    """Takes operations and events: at once, or all of an instant together."""

    __slots__ = ("_words",)

    _words: Words

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
        """Start an operation now; return whether that ended it. O(watches), with `serves` O(unused events passed over).

        It has a `timeout` in seconds, or a `deadline` on the timer's clock, where one that has passed is due now.
        `extend` says how long an event of a watch that extends it gives, in seconds (default: the time-out).
        `on_end(resolution)` is called once, with no lock held: in here, in the call that ends it, or where the timer
        runs its callbacks.

        Raises ValueError for an `op_id` that is pending, and for watches that go neither together nor with the words.
        """
        hash(op_id)
        if condition not in _CONDITIONS:
            raise ValueError(f"condition must be {either(_CONDITIONS)}, not {condition!r}")
        if (timeout is None) == (deadline is None):
            raise TypeError(f"operation {op_id!r} needs a timeout or a deadline: give one of them")
        if on_end is not None and (not callable(on_end) or is_async(on_end)):
            refuse_callback(on_end, "on_end")
        listed, fixed = tuple(watches), timeout is None
        self._check_watches(op_id, listed, condition, fixed=fixed)
        span = to_nanoseconds(deadline, "deadline") if timeout is None else _span(timeout, "timeout")  # type: ignore[arg-type]
        extension = None if extend is None else _span(extend, "extend")
        operation = Operation(self._words, op_id, listed, span, fixed, condition, extension, on_end)
        return bool(self._take([operation], []))

    def event(self, key: Hashable, progress: float = 1) -> int:
        """Let an event come for `key` now; return how many operations that ended. O(operations that wait for `key`)."""
        if type(progress) is not int:
            _check_number(progress, "progress")
        return self._take([], [(key, progress)])

    def _check_watches(self, op_id: Hashable, watches: tuple[Watch, ...], condition: Condition, *, fixed: bool) -> None:
        words = self._words
        for watch in watches:
            if not isinstance(watch, Watch):
                raise TypeError(
                    f"operation {op_id!r}: watches must be of abeyant.Watch, such as Watch(key), not {watch!r}"
                )
            if watch.role not in ROLES:
                raise ValueError(f"operation {op_id!r}: role must be {either(ROLES)}, not {watch.role!r}")
            _check_number(watch.required, f"operation {op_id!r}: required")
        if len(watches) < 2 and condition != "then" and not fixed and watches and watches[0].role == "complete":
            return
        roles = [watch.role for watch in watches]
        if not watches:
            raise ValueError(f"operation {op_id!r} must watch at least one key, or nothing could end it in time")
        if roles.count("pause") > 1:
            raise ValueError(f"operation {op_id!r}: several watches pause it; give it one")
        if words.serves != "every" and roles.count("complete") > 1:
            raise ValueError(
                f"operation {op_id!r} has several watches that complete it, which does not go with "
                f"serves={words.serves!r}: an event serves one watch; give each operation one"
            )
        if condition == "then" and words.holds == "at_deadline":
            raise ValueError(
                f"operation {op_id!r} has condition 'then', which does not go with holds='at_deadline': steps are met "
                "one after the other"
            )
        if condition == "then" and words.within == "step" and "extend" in roles:
            raise ValueError(
                f"operation {op_id!r} has steps and a watch that extends it, which does not go with within='step': "
                "each step restarts the countdown already"
            )
        if fixed and (words.calendar is not None or "pause" in roles):
            raise ValueError(
                f"operation {op_id!r}: a deadline does not go with a calendar or a watch that pauses: it is an "
                "instant; give a timeout"
            )


class Instant(Feed):
    """Operations and events of one instant, judged together when its `with` block ends (laws O3, O5 and O7).

    Where the block raises, nothing of it counts. It belongs to the thread that made it.
    """

    __slots__ = ("_events", "_starts", "_whole")

    def __init__(self, whole: Any, words: Words) -> None:
        self._whole, self._words = whole, words
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
