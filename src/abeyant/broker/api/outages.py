"""Pause or stop brokers for the length of a block: of our cluster, or of genuine Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class Outages:
    """What `paused` and `stopped` are made of; a cluster has the other methods."""

    def pause(self, broker: int) -> None:
        """Pause a broker, as under SIGSTOP: connections stay open, and it does nothing until `resume`."""
        raise NotImplementedError

    def resume(self, broker: int) -> None:
        """Resume a paused broker; it first handles what has arrived meanwhile."""
        raise NotImplementedError

    def stop(self, broker: int) -> None:
        """Stop a broker: connections close, other brokers lead its partitions."""
        raise NotImplementedError

    def start(self, broker: int) -> None:
        """Start a stopped broker again, at the same port."""
        raise NotImplementedError

    def is_stopped(self, broker: int) -> bool:
        """Return whether a broker is stopped."""
        raise NotImplementedError

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
