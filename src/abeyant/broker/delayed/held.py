"""A request that a fault delays: waits for its time, then is handled."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyant.broker.delayed.operation import BrokerOperation, Waiting

Keys = tuple[tuple[str, int | str], ...]


class HeldRequest(BrokerOperation):
    """In the Held purgatory of the broker that it came to. Its kind is the API's name, as faults know it."""

    __slots__ = ("_handle", "_keys", "kind")

    def __init__(
        self, kind: str, seconds: float, keys: Keys, client_id: str, since: float, handle: Callable[[], object]
    ) -> None:
        """`handle` is called once, `seconds` after `since`; `keys` is what the request is about."""
        super().__init__(seconds, client_id, since)
        self.kind = kind
        self._keys = keys
        self._handle = handle

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topics and partitions, or the group and member, that the request names."""
        return self._keys

    def told(self, broker: int) -> Waiting:
        """Return what `Cluster.waiting` lists, with what holds it."""
        return super().told(broker)._replace(held_by="delay")

    def try_complete(self) -> bool:
        """Return False: nothing but time lets it go."""
        return False

    def on_complete(self) -> None:
        """Handle the request."""
        self._handle()
