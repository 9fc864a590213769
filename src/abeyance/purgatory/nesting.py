"""How deep the present thread is inside operations, and what it has put off until it is out again.

An operation's own code may complete other operations: `on_complete` appends to a log, the log moves on,
others were waiting for just that. So a thread may hold one operation's lock and want another's. If it
waited for it, two threads that go opposite ways would wait for each other for ever. Kafka keeps its brokers
out of this trap by convention: completions that may touch others go into an "action queue", which request
handlers empty once they hold nothing. Here it is built in:

    A thread that is inside an operation never waits for another operation's lock.

What it could not have at once it puts off, and does by itself, waiting if need be, as soon as it has left
the outermost operation. Nothing is handed to another thread and nothing is lost; the call that wanted it
merely returns before it is done. The same queue bounds the stack: a chain of operations that complete one
another nests to a fixed depth, and goes on from the queue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from abeyance.purgatory.ports import ReentrantLock

DEEPEST: Final = 64
"""Locks a thread may hold before it puts off what would nest deeper: some 30 operations, 200 frames."""


class Nesting(threading.local):
    """The present thread's share; every thread sees its own, so nothing here needs a lock."""

    def __init__(self) -> None:
        self.depth = 0
        self.put_off: deque[tuple[Callable[[Any], object], Any]] = deque()
        self.settling = False

    def enter(self, lock: ReentrantLock) -> bool:
        """Take an operation's lock; False where this thread must not wait for it, or is too deep already."""
        if self.depth >= DEEPEST:
            return False
        return self.enter_at_any_depth(lock)

    def enter_at_any_depth(self, lock: ReentrantLock) -> bool:
        """Take an operation's lock; False where this thread must not wait for it."""
        if not lock.acquire(False):
            if self.depth:
                return False
            lock.acquire()
        self.depth += 1
        return True

    def release(self, lock: ReentrantLock) -> None:
        """Give the lock back, and leave what was put off where it is: `settle` is still owed."""
        self.depth -= 1
        lock.release()

    def leave(self, lock: ReentrantLock) -> None:
        """Give the lock back and, once the last is given back, do what was put off."""
        self.depth -= 1
        lock.release()
        if self.put_off:
            self.settle()

    def defer(self, action: Callable[[Any], object], operation: Any) -> None:
        """Put `action(operation)` off until this thread is out of every operation."""
        self.put_off.append((action, operation))

    def settle(self) -> None:
        """Do what was put off, in order, if this thread is out of every operation and not at it already.

        The actions report their own errors. What still comes out is a KeyboardInterrupt or its like: it must
        neither be swallowed nor cost the others their turn, so the rest is done first.
        """
        if self.depth or self.settling:
            return
        interruption: BaseException | None = None
        self.settling = True
        try:
            while self.put_off:
                action, operation = self.put_off.popleft()
                try:
                    action(operation)
                except BaseException as raised:  # noqa: BLE001  raised again below
                    interruption = raised
        finally:
            self.settling = False
        if interruption is not None:
            try:
                raise interruption
            finally:
                del interruption  # a frame must not hold the exception that holds the frame


NESTING: Final = Nesting()
