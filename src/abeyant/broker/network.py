"""Messages between brokers and the controller: in one process, in order, in the loop's thread.

A message is delivered in the turn of the loop in which it was sent, after its sender has returned. So no code is
re-entered, and the messages of many connections are delivered together. A paused broker keeps messages in its inbox;
messages to a stopped broker are lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

_TURN = 256  # messages, about a millisecond, before the loop's other work has its turn


class Receiver(Protocol):
    """The receiver of messages: a broker."""

    def run(self, action: Callable[..., object], *args: Any) -> None:
        """Call `action(*args)` now. If the broker is paused, call it after the pause; if it is stopped, never."""


class Network:
    """The queue of messages that are not delivered yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[tuple[Receiver, Callable[..., object], tuple[Any, ...]]] = deque()
        self._last: deque[tuple[Receiver, Callable[..., object], tuple[Any, ...]]] = deque()
        self._scheduled = False

    @property
    def idle(self) -> bool:
        """Return whether every message has been delivered."""
        return not (self._queue or self._last)

    def send(self, receiver: Receiver, action: Callable[..., object], *args: Any) -> None:
        """Queue a message: `receiver` will run `action(*args)`. O(1)."""
        self._queue.append((receiver, action, args))
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def send_last(self, receiver: Receiver, action: Callable[..., object], *args: Any) -> None:
        """Have `receiver` run `action(*args)` after all pending messages, and the messages that these cause. O(1).

        Without pending messages, run the action at once.
        """
        if self._queue or self._last:  # a turn may end between those
            self._last.append((receiver, action, args))
        else:
            receiver.run(action, *args)

    def settle(self) -> None:
        """Deliver all pending messages, and all messages that these cause."""
        while self._queue or self._last:
            self._deliver(_TURN)

    def _turn(self) -> None:
        try:
            self._deliver(_TURN)
        finally:
            self._scheduled = bool(self._queue or self._last)  # mostly not: messages sent meanwhile are delivered too
            if self._scheduled:
                self._loop.call_soon(self._turn)

    def _deliver(self, most: int) -> None:
        queue = self._queue
        for _ in range(most):
            if not queue:
                if not self._last:
                    return
                queue.append(self._last.popleft())
            receiver, action, args = queue.popleft()
            receiver.run(action, *args)
