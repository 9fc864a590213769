"""The sorted list as a judge of designs that promise less than it does: each is held to its own word.

A task's *effective* deadline is its deadline, or the time at which it was added if that was later.
"""

from __future__ import annotations

from lab.rivals import Precision
from oracle import Oracle


class Judge:
    """What is pending by item, and how long each may stay so. Times are in units."""

    def __init__(self, precision: Precision, now: int) -> None:
        self.precision = precision
        self.now = now
        self.sorted = Oracle(tick=1)  # by effective deadline
        self._latest: dict[object, int] = {}
        self._asked: dict[object, int] = {}  # deadlines as given

    def add(self, item: int, deadline: int) -> None:
        effective = max(deadline, self.now)
        self.sorted.add(item, effective)
        self._asked[item] = deadline
        self._latest[item] = effective + self.precision.at_most(effective - self.now)

    def remove(self, item: int) -> bool:
        self._latest.pop(item, None)
        return self.sorted.remove(item)

    def handed_out(self, items: list[int], now: int) -> None:
        """`items` came out, in this order, when the clock was moved to `now`."""
        self.now = max(self.now, now)
        for item in items:
            deadline = self.sorted.deadline(item)
            assert deadline is not None, f"T3: {item} came out, but is not pending"
            assert deadline <= self.now, f"T1: {item}, due at {deadline}, came out early, at {self.now}"
            first = self.sorted.first_deadline()
            assert first is not None
            if self.precision.apart is not None:
                # An overdue one may come in its turn by either time, for a budget may leave the queue's clock behind.
                ahead = self._asked[item] - first
                assert ahead < self.precision.apart, f"T6: {item} came before what was due at {first}"
            self.remove(item)

    def all_came(self, now: int) -> None:
        """Nothing is left behind that should have come out by `now`."""
        late = [item for item, latest in self._latest.items() if latest <= now]
        assert not late, f"T2: still pending at {now}: {[(item, self._latest[item]) for item in late]}"

    def upcoming(self, expiration: int | None) -> None:
        """The queue says when it next has work: a driver that believes it must be in time."""
        if not self._latest:
            assert expiration is None, "T10: nothing pending, nothing to wake for"
            return
        assert expiration is not None, "something is pending, so there is work to come"
        first = min(self._latest.values())
        assert expiration <= max(first, self.now), f"T2: next at {expiration}, but {first} must not be missed"
