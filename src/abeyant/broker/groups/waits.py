"""The delayed operations of rebalances: each waits for members, or for a delay to pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from abeyant import Purgatory
from abeyant.broker.delayed.operation import BrokerOperation


class DelayedRebalance(BrokerOperation):
    """A wait of a rebalance, in the Rebalance purgatory. Kafka: `DelayedJoin`, `DelayedSync`, `DelayedRebalance`."""

    __slots__ = ("_is_done", "_members", "_on_timeout", "_then")

    kind = "Rebalance"

    def __init__(
        self,
        timeout: float,
        client_id: str,
        since: float,
        members: Callable[[], Iterable[tuple[str, str]]],
        is_done: Callable[[], bool],
        then: Callable[[], object] | None,
        on_timeout: Callable[[], object] | None,
    ) -> None:
        """Call `then` when `is_done()` is true, or after `timeout` seconds; at a time-out also call `on_timeout`."""
        super().__init__(timeout, client_id, since)
        self._members = members
        self._is_done = is_done
        self._then = then
        self._on_timeout = on_timeout

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return the group id and member id of each member that the operation waits for."""
        return self._members()

    def try_complete(self) -> bool:
        """Complete when `is_done()` is true."""
        return self._is_done() and self.force_complete()

    def on_complete(self) -> None:
        """Continue the rebalance."""
        if self._then is not None:
            self._then()

    def on_expiration(self) -> None:
        """Call `on_timeout`, for instance to remove the members that did not respond in time."""
        if self._on_timeout is not None:
            self._on_timeout()


class Waits:
    """The delayed rebalance operations of one shard's groups."""

    def __init__(self, rebalance: Purgatory[DelayedRebalance], now: Callable[[], float]) -> None:
        """`now` returns seconds on the cluster's clock."""
        self._rebalance = rebalance
        self._now = now

    def submit(
        self,
        key: Hashable,
        seconds: float,
        client_id: str,
        members: Callable[[], Iterable[tuple[str, str]]],
        is_done: Callable[[], bool],
        then: Callable[[], object] | None = None,
        on_timeout: Callable[[], object] | None = None,
    ) -> None:
        """Call `then` when `check(key)` finds `is_done()` true, or after `seconds`; at a time-out also `on_timeout`."""
        operation = DelayedRebalance(seconds, client_id, self._now(), members, is_done, then, on_timeout)
        self._rebalance.try_complete_else_watch(operation, [key])

    def check(self, key: Hashable) -> None:
        """Complete the operations of a group or a member whose `is_done()` is true."""
        self._rebalance.check_and_complete(key)

    def forget(self, key: Hashable) -> None:
        """Cancel the operations of a group."""
        self._rebalance.cancel_for_key(key)
