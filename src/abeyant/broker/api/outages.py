"""Pause or stop brokers for the length of a block: of our cluster, or of genuine Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


class Outages:
    """What `paused` and `stopped` are made of; a cluster has the other methods."""

    pause: Callable[[int], None]
    resume: Callable[[int], None]
    stop: Callable[[int], None]
    start: Callable[[int], None]
    is_stopped: Callable[[int], bool]

    @contextmanager
    def paused(self, *brokers: int) -> Iterator[None]:
        """Pause these brokers for the length of the block."""
        with ExitStack() as stack:
            for broker in brokers:
                self.pause(broker)
                stack.callback(self.resume, broker)
            yield

    @contextmanager
    def stopped(self, *brokers: int) -> Iterator[None]:
        """Stop these brokers, and start them again after the block, unless the block has done so."""
        with ExitStack() as stack:
            for broker in brokers:
                self.stop(broker)
                stack.callback(self._start_again, broker)
            yield

    def _start_again(self, broker: int) -> None:
        if self.is_stopped(broker):
            self.start(broker)
