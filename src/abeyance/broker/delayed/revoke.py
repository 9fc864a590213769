"""A member's giving back: waits until it has said that it does not have any more what it is not to have."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyance.broker.delayed.waiting import BrokerOperation


class DelayedRevoke(BrokerOperation):
    """In the Rebalance purgatory, on its group's and its own id."""

    __slots__ = ("_late", "_member", "_over", "_revokes")

    kind = "Rebalance"

    def __init__(
        self,
        member: tuple[str, str],
        timeout: float,
        client_id: str,
        since: float,
        revokes: Callable[[], bool],
        late: Callable[[], object],
        over: Callable[[tuple[str, str]], object],
    ) -> None:
        """`member`: the group's and its own id; after `timeout` seconds `late` is called, and at any end `over`."""
        super().__init__(timeout, client_id, since)
        self._member = member
        self._revokes = revokes
        self._late = late
        self._over = over

    def keys(self) -> Iterable[tuple[str, str]]:
        """The member."""
        return (self._member,)

    def try_complete(self) -> bool:
        """Complete when it has given back what it had to, or has left."""
        return not self._revokes() and self.force_complete()

    def on_complete(self) -> None:
        """Another may wait for it."""
        self._over(self._member)

    def on_expiration(self) -> None:
        """Put it out."""
        self._late()
