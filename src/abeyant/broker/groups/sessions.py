"""The sessions of group members, of every protocol. A session is a deadline that each heartbeat moves.

A heartbeat only sets the attribute `deadline` of the pending operation, and leaves its timer alone. If the operation
expires before this deadline, a new operation waits for the remaining time. So each member costs one assignment per
heartbeat, and one operation per session time-out.
"""

from __future__ import annotations

from collections.abc import Callable

from abeyant import Purgatory
from abeyant.broker.delayed.operation import BrokerOperation, Waiting

_ROUNDING = 1e-6  # seconds: sums of float times differ in the last digits


class DelayedHeartbeat(BrokerOperation):
    """A member's session, in the Heartbeat purgatory. It expires or is cancelled.

    For a new member of the classic protocol, it is the time in which the member must join again with its new id.
    """

    __slots__ = ("_on_timeout", "deadline", "group_id", "member_id", "seconds")

    kind = "Heartbeat"

    def __init__(
        self,
        key: tuple[str, str],
        client_id: str,
        now: float,
        seconds: float,
        deadline: float,
        on_timeout: Callable[[DelayedHeartbeat], object],
    ) -> None:
        """Call `on_timeout` at `deadline`. `key` is (group id, member id), `seconds` is the session's time-out."""
        super().__init__(deadline - now, client_id, now)
        self.group_id, self.member_id = key
        self.seconds = seconds
        self.deadline = deadline  # seconds on the cluster's clock
        self._on_timeout = on_timeout

    def keys(self) -> tuple[tuple[str, str]]:
        """Return the group id and member id."""
        return ((self.group_id, self.member_id),)

    def describe(self, broker: int) -> Waiting:
        """Return the session's row in `Cluster.waiting`, with the deadline that the last heartbeat set."""
        return Waiting(broker, self.kind, self.keys(), self.client_id, self.deadline - self.seconds, self.deadline)

    def try_complete(self) -> bool:
        """Return False, as a heartbeat does not complete the operation."""
        return False

    def on_expiration(self) -> None:
        """Expire the session, or wait for its new deadline."""
        self._on_timeout(self)


class Sessions:
    """The running sessions of one shard's groups. Use from the loop's thread only."""

    def __init__(
        self,
        purgatory: Purgatory[DelayedHeartbeat],
        now: Callable[[], float],
        expired: Callable[[str, str], object],
    ) -> None:
        """`now` returns seconds; `expired(group id, member id)` is called when a session expires."""
        self._purgatory = purgatory
        self._now = now
        self._expired = expired
        self._groups: dict[str, dict[str, DelayedHeartbeat]] = {}  # by group id and member id

    def touch(self, group_id: str, member_id: str, client_id: str, seconds: float) -> None:
        """Start or restart a member's session of `seconds`. To restart a running session, only move its deadline."""
        now = self._now()
        deadline = now + seconds
        running = self._groups.get(group_id, {}).get(member_id)
        if running is not None:
            running.seconds, running.deadline = seconds, deadline
            if running.since + running.timeout <= deadline + _ROUNDING:
                return
            self._purgatory.cancel(running)
        self._start(DelayedHeartbeat((group_id, member_id), client_id, now, seconds, deadline, self._check_deadline))

    def end(self, group_id: str, member_id: str) -> None:
        """End a member's session, if the member has one, without calling `expired`."""
        running = self._pop(group_id, member_id)
        if running is not None:
            self._purgatory.cancel(running)

    def end_group(self, group_id: str) -> None:
        """End the sessions of a group's members."""
        for running in self._groups.pop(group_id, {}).values():
            self._purgatory.cancel(running)

    def end_all(self) -> None:
        """End all sessions, as another broker coordinates these groups now."""
        for group_id in list(self._groups):
            self.end_group(group_id)

    def expire_overdue(self, group_id: str) -> None:
        """Expire the group's sessions whose deadline has passed. The timer would expire them up to some ms later."""
        now = self._now()
        for running in list(self._groups.get(group_id, {}).values()):
            if running.deadline <= now + _ROUNDING:
                self.end(group_id, running.member_id)
                self._expired(group_id, running.member_id)

    def _start(self, operation: DelayedHeartbeat) -> None:
        self._groups.setdefault(operation.group_id, {})[operation.member_id] = operation
        self._purgatory.try_complete_else_watch(operation, operation.keys())

    def _pop(self, group_id: str, member_id: str) -> DelayedHeartbeat | None:
        sessions = self._groups.get(group_id, {})
        running = sessions.pop(member_id, None)
        if running is not None and not sessions:
            del self._groups[group_id]
        return running

    def _check_deadline(self, over: DelayedHeartbeat) -> None:
        if self._groups.get(over.group_id, {}).get(over.member_id) is not over:
            return  # the session has ended meanwhile
        now = self._now()
        if over.deadline - now > _ROUNDING:
            (key,) = over.keys()
            self._start(DelayedHeartbeat(key, over.client_id, now, over.seconds, over.deadline, self._check_deadline))
        else:
            self._pop(over.group_id, over.member_id)
            self._expired(over.group_id, over.member_id)
