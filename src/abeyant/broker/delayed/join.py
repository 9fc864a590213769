"""A rebalance's first half: waits until every member of the group has joined again (K5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.waiting import BrokerOperation

if TYPE_CHECKING:
    from abeyant.broker.groups.classic import ClassicGroup


class DelayedJoin(BrokerOperation):
    """In the Rebalance purgatory, on its group. Not the JoinGroup of one member: the answer to all of them."""

    __slots__ = ("_complete", "_early", "_group")

    kind = "Rebalance"

    def __init__(
        self,
        group: ClassicGroup,
        timeout: float,
        client_id: str,
        since: float,
        complete: Callable[[ClassicGroup], object],
        *,
        early: bool = True,
    ) -> None:
        """`timeout` in seconds; not `early` is a group's initial delay, which is waited for whoever has joined."""
        super().__init__(timeout, client_id, since)
        self._group = group
        self._complete = complete
        self._early = early

    def keys(self) -> Iterable[tuple[str, str]]:
        """The members that have not joined."""
        group = self._group
        missing = [member.id for member in group.members.values() if member.joining is None]
        return ((group.id, member) for member in missing + list(group.pending))

    def try_complete(self) -> bool:
        """Complete when all have joined. Kafka: `DelayedJoin.tryComplete`."""
        return self._early and self._group.all_joined and self.force_complete()

    def on_complete(self) -> None:
        """Answer those that have joined; the others are out."""
        self._complete(self._group)
