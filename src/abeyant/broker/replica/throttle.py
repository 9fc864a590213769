"""Replication throttles (KIP-73): limit the rate at which replicas catch up, on one side (leader or follower).

While the rate is exceeded, a leader sends no records of throttled replicas, and a follower does not fetch them.
Replicas that are in sync are not held back, but their bytes count. Kafka: `ReplicationQuotaManager`,
`ReplicaManager.shouldLeaderThrottle`, `RemoteLeaderEndPoint.shouldFollowerThrottle`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from abeyant.broker.delayed.operation import Throttled
from abeyant.broker.quotas.rates import Rate

if TYPE_CHECKING:
    from abeyant.broker.replica.messages import Key
    from abeyant.broker.replica.ports import Broker

Side = Literal["leader", "follower"]
_RATES: Final = {"leader": "leader.replication.throttled.rate", "follower": "follower.replication.throttled.rate"}
_MILLISECOND: Final = 0.001  # longer than rounding errors, so that the rate is below the limit afterwards


class ReplicationThrottle:
    """The throttle of one broker's replicas, as leader or as follower. Use from the loop's thread only."""

    def __init__(self, broker: Broker, side: Side) -> None:
        settings = broker.cluster.settings
        windows, window = settings["replication.quota.window.num"], settings["replication.quota.window.size.seconds"]
        self._broker = broker
        self._setting = _RATES[side]
        self._rate = Rate(windows, window)
        self._longest: float = windows * window  # after so long without records the rate is zero
        self._held: dict[tuple[Key, str], Throttled] = {}

    def record(self, size: int) -> None:
        """Count `size` bytes of records of a throttled replica. O(1), amortized."""
        self._rate.record(self._broker.now(), size)

    def excess(self) -> float:
        """Return the seconds for which to hold throttled replicas back; 0.0 if the rate is not exceeded. O(windows)."""
        limit: int | None = self._broker.cluster.settings.value(self._setting, self._broker.id)
        if limit is None:
            return 0.0
        seconds = self._rate.excess(self._broker.now(), max(limit, 1e-3))
        return min(seconds, self._longest) + _MILLISECOND if seconds else 0.0

    def hold(self, partition: Key, follower: str, seconds: float, then: Callable[[], object]) -> None:
        """Call `then` once, after `seconds` or when the settings change.

        If the follower's replica is already held back, its wait continues, and `then` replaces the earlier callback, as
        the replica's leader may have changed.
        """
        key = partition, follower

        def end() -> None:
            del self._held[key]
            then()

        waiting = self._held.get(key)
        if waiting is not None:
            waiting.then = end
            return
        waiting = Throttled(seconds, partition, follower, self._broker.now(), end)
        self._held[key] = waiting
        self._broker.throttle_purgatory.try_complete_else_watch(waiting, [waiting])

    def release(self) -> None:
        """End all waits, as settings have changed. Replicas that still exceed the rate are held again."""
        for waiting in list(self._held.values()):
            waiting.force_complete()
