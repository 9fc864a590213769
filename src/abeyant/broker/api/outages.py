"""Pause or stop brokers, of our cluster or of genuine Kafka, for the duration of a `with` block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


class Outages:
    """Mixin that adds the context managers `paused` and `stopped` to a cluster with the methods below."""

    pause: Callable[[int], None]
    resume: Callable[[int], None]
    stop: Callable[[int], None]
    start: Callable[[int], None]
    is_stopped: Callable[[int], bool]

    @contextmanager
    def paused(self, *brokers: int) -> Iterator[None]:
        """Pause these brokers for the duration of the block."""
        with ExitStack() as stack:
            for broker in brokers:
                self.pause(broker)
                stack.callback(self.resume, broker)
            yield

    @contextmanager
    def stopped(self, *brokers: int) -> Iterator[None]:
        """Stop these brokers for the duration of the block. At its end, start each one that is still stopped."""
        with ExitStack() as stack:
            for broker in brokers:
                self.stop(broker)
                stack.callback(self._restart, broker)
            yield

    def _restart(self, broker: int) -> None:
        if self.is_stopped(broker):
            self.start(broker)
