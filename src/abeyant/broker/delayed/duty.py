"""A member's duty in a rebalance without a leader: waits until it has done what it has to.

One of the new protocol gives back what it is not to have. One of the classic protocol joins again, and then asks what
it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyant.broker.delayed.waiting import BrokerOperation


class DelayedDuty(BrokerOperation):
    """In the Rebalance purgatory, on its group's and its own id."""

    __slots__ = ("_is_due", "_late", "_member")

    kind = "Rebalance"

    def __init__(
        self,
        member: tuple[str, str],
        timeout: float,
        client_id: str,
        since: float,
        is_due: Callable[[], bool],
        late: Callable[[], object],
    ) -> None:
        """`member`: the group's and its own id; after `timeout` seconds `late` is called."""
        super().__init__(timeout, client_id, since)
        self._member = member
        self._is_due = is_due
        self._late = late

    def keys(self) -> Iterable[tuple[str, str]]:
        """The member."""
        return (self._member,)

    def try_complete(self) -> bool:
        """Complete when it has done what it had to, or has left."""
        return not self._is_due() and self.force_complete()

    def on_expiration(self) -> None:
        """Put it out."""
        self._late()
