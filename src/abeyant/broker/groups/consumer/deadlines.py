"""Deadlines for actions that members of consumer and streams groups must take within their rebalance time-out."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from abeyant.broker.groups.waits import Waits


class DeadlineKind(Enum):
    """An action for which a member has a deadline. `JOIN` and `SYNC` are for members of the classic protocol."""

    REVOKE = "confirm that it has revoked partitions"
    JOIN = "send a JoinGroup"
    SYNC = "send a SyncGroup"


class Member(Protocol):
    """A member of a consumer or a streams group."""

    @property
    def id(self) -> str:
        """Return the member's id."""

    @property
    def client_id(self) -> str:
        """Return the id of the member's client."""

    @property
    def rebalance_timeout(self) -> int:
        """Return the member's rebalance time-out in ms."""


class Deadlines:
    """The deadlines of the members of one shard's groups."""

    def __init__(self, waits: Waits, on_timeout: Callable[[str, str], object]) -> None:
        """Call `on_timeout(group id, member id)` when a deadline expires."""
        self._waits = waits
        self._on_timeout = on_timeout
        self._tokens: dict[tuple[str, str, DeadlineKind], object] = {}

    def start(self, group_id: str, member: Member, kind: DeadlineKind, token: object) -> None:
        """Start this deadline unless it already runs for the same `token`, for instance the same epoch. O(1)."""
        key = group_id, member.id, kind
        if self._tokens.get(key) == token:
            return
        self._tokens[key] = token
        self._waits.check(key[:2])  # stops the deadline of the previous token
        self._waits.submit(
            key[:2], member.rebalance_timeout / 1000, member.client_id, lambda: (key[:2],),
            lambda: self._tokens.get(key) is not token, on_timeout=lambda: self._expire(key),
        )  # fmt: skip

    def done(self, group_id: str, member_id: str, *kinds: DeadlineKind) -> None:
        """Stop these deadlines: the member met them, or left."""
        if [kind for kind in kinds if self._tokens.pop((group_id, member_id, kind), None) is not None]:
            self._waits.check((group_id, member_id))

    def _expire(self, key: tuple[str, str, DeadlineKind]) -> None:
        self._tokens.pop(key, None)
        self._on_timeout(*key[:2])
