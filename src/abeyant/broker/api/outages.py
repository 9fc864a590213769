"""Brokers that are paused or stopped for as long as a block lasts: of our cluster, and of genuine Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class Outages:
    """What `paused` and `stopped` are made of; a cluster has the other methods."""

    def pause(self, broker: int) -> None:
        """Have a broker stand still, as under SIGSTOP: its connections stay, and nothing is done, until `resume`."""
        raise NotImplementedError

    def resume(self, broker: int) -> None:
        """Have a paused broker go on, with what has come meanwhile first."""
        raise NotImplementedError

    def stop(self, broker: int) -> None:
        """Stop a broker: its connections end, others lead what it led."""
        raise NotImplementedError

    def start(self, broker: int) -> None:
        """Start a broker that was stopped, where it was before."""
        raise NotImplementedError

    def is_stopped(self, broker: int) -> bool:
        """Return whether a broker is stopped."""
        raise NotImplementedError

    @contextmanager
    def paused(self, *brokers: int) -> Iterator[None]:
        """Pause these brokers for as long as the block lasts."""
        with ExitStack() as stack:
            for broker in brokers:
                self.pause(broker)
                stack.callback(self.resume, broker)
            yield

    @contextmanager
    def stopped(self, *brokers: int) -> Iterator[None]:
        """Stop these brokers, and start them again when the block is over, unless that was done in it."""
        with ExitStack() as stack:
            for broker in brokers:
                self.stop(broker)
                stack.callback(self._start_again, broker)
            yield

    def _start_again(self, broker: int) -> None:
        if self.is_stopped(broker):
            self.start(broker)
