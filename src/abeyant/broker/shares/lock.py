"""The acquisition lock: a member has the records of a batch until it acknowledges them or the lock expires (KIP-932).

There is one delayed operation per batch, in the ShareLock purgatory, even if parts of the batch are acknowledged early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyant import Purgatory
from abeyant.broker.delayed.operation import BrokerOperation


class AcquisitionLock(BrokerOperation):
    """A lock on the offsets `first` to `last` of one share partition. Kafka: `AcquisitionLockTimerTask`."""

    __slots__ = ("_keys", "_left", "_on_timeout", "_purgatory", "first", "last")

    kind = "ShareLock"

    def __init__(
        self,
        seconds: float,
        first: int,
        last: int,
        records: int,
        keys: Iterable[tuple[str, int | str]],
        client_id: str,
        since: float,
        purgatory: Purgatory[AcquisitionLock],
        on_timeout: Callable[[AcquisitionLock], object],
    ) -> None:
        """Call `on_timeout` after `seconds`, unless all `records` are released before."""
        super().__init__(seconds, client_id, since)
        self.first = first
        self.last = last
        self._keys = tuple(keys)
        self._left = records
        self._purgatory = purgatory
        self._on_timeout = on_timeout
        purgatory.try_complete_else_watch(self, [self])

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topic and partition, the group and member, and the first and last offset."""
        return self._keys

    def release(self, records: int) -> None:
        """Release some of the records. Cancel the lock once none are left."""
        self._left -= records
        if self._left <= 0:
            self._purgatory.cancel(self)

    def expire(self) -> None:
        """Expire the lock now, as at its deadline."""
        if self._purgatory.cancel(self):
            self._on_timeout(self)

    def try_complete(self) -> bool:
        """Return False, as only the deadline completes a lock."""
        return False

    def on_expiration(self) -> None:
        """Call `on_timeout`, which makes the locked records available to other members."""
        self._on_timeout(self)
