"""A rebalance's second half: waits until every member has asked what it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.waiting import BrokerOperation

if TYPE_CHECKING:
    from abeyant.broker.groups.classic import ClassicGroup


class DelayedSync(BrokerOperation):
    """In the Rebalance purgatory, on its group. The leader's assignment answers the members; this puts the late out."""

    __slots__ = ("_generation", "_group", "_late")

    kind = "Rebalance"

    def __init__(
        self,
        group: ClassicGroup,
        timeout: float,
        client_id: str,
        since: float,
        late: Callable[[ClassicGroup], object],
    ) -> None:
        """`timeout` in seconds; `late` is called if it is over."""
        super().__init__(timeout, client_id, since)
        self._group = group
        self._generation = group.generation
        self._late = late

    def keys(self) -> Iterable[tuple[str, str]]:
        """The members that have not asked."""
        return ((self._group.id, member) for member in sorted(self._group.unsynced))

    def try_complete(self) -> bool:
        """Complete when all have asked, or another rebalance has begun. Kafka: `DelayedSync.tryComplete`."""
        group = self._group
        return (not group.unsynced or group.generation != self._generation) and self.force_complete()

    def on_expiration(self) -> None:
        """Put those out that have not."""
        self._late(self._group)
