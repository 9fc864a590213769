"""The protocol without a broker: purgatories on a clock that is turned by hand, and a log that is a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abeyant import ManualTimer, Purgatory
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.group import ClassicGroup
from abeyant.broker.groups.classic.member import JoinRequest, JoinResponse, SyncResponse
from abeyant.broker.groups.classic.protocol import ClassicProtocol
from abeyant.broker.groups.classic.rebalancing import Rebalancing
from abeyant.broker.groups.sessions import Sessions
from abeyant.broker.groups.waits import Waits
from abeyant.broker.wire.schema import ErrorCode

NONE = ErrorCode.none
RANGE = (("range", b"topics"),)


class Desk:
    """One group and its protocol."""

    def __init__(self, *, initial_delay: float = 0.0, max_size: int = 1000) -> None:
        self.timer = ManualTimer()
        self.rebalances: Purgatory[Any] = Purgatory("Rebalance", self.timer)
        self.sessions: Purgatory[Any] = Purgatory("Heartbeat", self.timer)
        waits = Waits(self.rebalances, self.timer.time)
        sessions = Sessions(self.sessions, self.timer.time, self._expired)
        rebalances = Rebalancing(waits, sessions, self._store, self.now_ms, initial_delay=initial_delay)
        self.protocol = ClassicProtocol(waits, sessions, self._store, rebalances, self.now_ms, max_size=max_size)
        self.group = ClassicGroup("group", 0)
        self.stored: list[dict[str, bytes] | None] = []
        self.held: list[Callable[[ErrorCode], object]] | None = None  # writes that the log has not, while it is slow

    def now_ms(self) -> int:
        return round(self.timer.time() * 1000)

    def _expired(self, group_id: str, member_id: str) -> None:
        assert group_id == "group"
        self.protocol.expire(self.group, member_id)

    def _store(
        self, group: ClassicGroup, assignments: dict[str, bytes] | None, then: Callable[[ErrorCode], object]
    ) -> None:
        self.stored.append(assignments)
        if self.held is None:
            then(NONE)
        else:
            self.held.append(then)

    # -- what members do

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        session: float = 45.0,
        rebalance: float = 60.0,
        needs_id: bool = False,
        **more: Any,
    ) -> list[JoinResponse]:
        """Ask to join; the list has the answer once there is one. Times in seconds."""
        told: list[JoinResponse] = []
        asked = JoinRequest(
            member_id, instance, "client", "/host", round(session * 1000), round(rebalance * 1000),
            more.pop("kind", "consumer"), protocols, needs_id=needs_id, **more,
        )  # fmt: skip
        self.protocol.join(self.group, asked, told.append)
        return told

    def sync(self, joined: JoinResponse, **assignments: bytes) -> list[SyncResponse]:
        """Ask what there is; the leader gives `assignments` by place in the list of members."""
        told: list[SyncResponse] = []
        given = {member[0]: assignments.get(f"m{place}", b"") for place, member in enumerate(joined.members)}
        self.protocol.rebalances.sync(
            self.group, joined.member_id, None, joined.generation, (None, None), given, told.append
        )
        return told

    def heartbeat(self, joined: JoinResponse) -> ErrorCode:
        """Be alive."""
        try:
            self.protocol.heartbeat(self.group, joined.member_id, None, joined.generation)
        except ApiError as error:
            return error.code
        return NONE

    def leave(self, *members: JoinResponse) -> list[ErrorCode]:
        """Leave, all at once."""
        told: list[list[ErrorCode]] = []
        self.protocol.leave(self.group, [(member.member_id, None) for member in members], told.append)
        return told[0]

    def stable(self, count: int, **more: Any) -> list[JoinResponse]:
        """A stable group of so many members: what each was told, the leader first."""
        waiting = [self.join(**more)]
        for _ in range(count - 1):
            waiting.append(self.join(**more))  # each begins a rebalance, which the first is not in yet
            for number, (joined, *_) in enumerate(list(waiting[:-1])):
                waiting[number] = self.join(joined.member_id, **more)
        members = [one[-1] for one in waiting]
        synced = [self.sync(joined) for joined in members]
        assert {one.error for (one,) in synced} == {NONE}
        assert self.group.state.value == "Stable"
        return members
