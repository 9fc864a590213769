"""What members of a group of the new protocol have to do within their rebalance time-out, or be out."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abeyant.broker.groups.consumer.group import ConsumerMember
    from abeyant.broker.groups.waits import Waits


class Duty(Enum):
    """Each has its own time."""

    REVOKE = "give back what it is not to have"
    JOIN = "join again"
    """Of those that speak the classic protocol."""
    SYNC = "ask what it has"
    """Of those too."""


class Deadlines:
    """For the groups of one shard."""

    def __init__(self, waits: Waits, late: Callable[[str, str], object]) -> None:
        """`late(group id, member id)` is called when a duty's time is over."""
        self._waits = waits
        self._late = late
        self._due: dict[tuple[str, str, Duty], object] = {}

    def start(self, group_id: str, member: ConsumerMember, duty: Duty, token: object) -> None:
        """It has to do this from now on. Time that runs already for the same token goes on; O(1)."""
        key = group_id, member.id, duty
        if self._due.get(key) == token:
            return
        self._due[key] = token
        self._waits.check_member(key[:2])  # what was due before is not any more
        self._waits.for_deadline(
            key[:2], member.rebalance_timeout / 1000, member.client_id, lambda: self._due.get(key) is token,
            lambda: self._over(key),
        )  # fmt: skip

    def done(self, group_id: str, member_id: str, *duties: Duty) -> None:
        """It has done these, or has left."""
        if [duty for duty in duties if self._due.pop((group_id, member_id, duty), None) is not None]:
            self._waits.check_member((group_id, member_id))

    def _over(self, key: tuple[str, str, Duty]) -> None:
        self._due.pop(key, None)
        self._late(*key[:2])
