"""The awaitable purgatory: wait in an event loop until a condition holds or a deadline passes.

Each wait is an operation in an `abeyant.Purgatory` that resolves a future when it ends, so the same laws hold.

Ground rules
------------
* Conditions run on the loop's thread only. A check from another thread puts its key into `_queued` and schedules
  `_check_queued` in the loop, unless `_scheduled` is set. `_check_queued` clears `_scheduled` before it empties
  `_queued`, so that a key that arrives meanwhile schedules it again.
* A wait may *end* on another thread: a time-out on the thread of the timer's callbacks, `close` on its caller's thread.
  The loop then resolves the wait's future; if the loop is closed by then, no task awaits the future any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from enum import StrEnum
from inspect import iscoroutine
from types import TracebackType
from typing import Any, Literal, Self

from abeyant import purgatory as threads
from abeyant.aio.timer import Timer
from abeyant.forking import reset_in_child
from abeyant.purgatory import DelayedOperation, PurgatoryClosedError, PurgatoryStats
from abeyant.timer import Timer as AnyTimer
from abeyant.timer.base import check_callback


class WaitOutcome(StrEnum):
    """The outcome of a wait. Truthy if it completed, so `if not await purgatory.wait(...)` tests for a time-out.

    A cancelled wait has no outcome: it raises `CancelledError`, like any coroutine.
    """

    COMPLETED = "completed"
    EXPIRED = "expired"

    def __bool__(self) -> bool:
        return self is WaitOutcome.COMPLETED


Outcome = WaitOutcome  # its former name


class _Wait(DelayedOperation):
    """The operation of one call of `wait`: its condition, and the future that the call awaits."""

    def __init__(
        self, timeout: float | timedelta, until: Callable[[], object] | None, home: threads.Purgatory[_Wait]
    ) -> None:
        super().__init__(timeout)
        self.until = until
        self.home = home
        self.submitted = False
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[WaitOutcome] = self.loop.create_future()
        self.context = copy_context()

    def try_complete(self) -> bool:
        """Test the condition in the waiting task's context. If it raises, end the wait with its error (P6)."""
        try:
            result = self.submitted if self.until is None else self.context.run(self.until)
            if result is not True and iscoroutine(result):
                result.close()
                raise TypeError(f"until must be a plain function, not {self.until!r}: its coroutine is always true")
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  raised in the waiting task
            self.fail(error)
            return False
        return bool(result) and self.force_complete()

    def fail(self, error: BaseException) -> bool:
        """End the wait with an error, which its task raises. Return False if the wait had already ended."""
        if not self.home.cancel(self):
            return False
        if isinstance(error, StopIteration):  # futures and coroutines cannot raise it
            error = RuntimeError(f"until raised {error!r}")
        self.resolve(lambda: self.future.set_exception(error))
        return True

    def on_complete(self) -> None:
        """Set the future's result to completed or expired."""
        assert self.outcome is not None
        outcome = WaitOutcome(self.outcome)
        self.resolve(lambda: self.future.set_result(outcome))

    def resolve(self, action: Callable[[], object]) -> None:
        def unless_done() -> None:
            if not self.future.done():  # else the waiting task was cancelled meanwhile
                action()

        if asyncio._get_running_loop() is self.loop:
            unless_done()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(unless_done)


class Purgatory:
    """A set of waits of one event loop: coroutines wait for conditions by key, each with a deadline.

    Code that changes what a coroutine waits for calls `check` with the key afterwards. No change is missed, whenever
    it happens (P2), and each wait ends once (P1). Like asyncio's locks, a purgatory binds to the loop of its first
    wait, and may be created anywhere. `check` is thread-safe.

    A purgatory works with every timer of this package, by default an `aio.Timer` of its own. It has no thread or task.

    Examples:
        >>> async def main():
        ...     stock, purgatory = 0, Purgatory("stock")
        ...     waiting = asyncio.ensure_future(purgatory.wait(["apples"], until=lambda: stock >= 3, timeout=30.0))
        ...     await asyncio.sleep(1.0)
        ...     stock = 3
        ...     purgatory.check("apples")
        ...     return await waiting
        >>> run_virtual(main())
        <WaitOutcome.COMPLETED: 'completed'>
    """

    def __init__(self, name: str, timer: AnyTimer | None = None) -> None:
        """Create a purgatory on `timer`, which may be shared: an `aio.Timer`, a `SystemTimer` or a `ManualTimer`."""
        if not isinstance(name, str):
            raise TypeError(f'a purgatory needs a name, as in Purgatory("produce"), not {name!r}')
        if timer is not None and not isinstance(timer, AnyTimer):
            raise TypeError(f"timer must be an aio.Timer, SystemTimer or ManualTimer, not {timer!r}")
        self._name = name
        self._timer = timer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waits: threads.Purgatory[_Wait] | None = None
        self._closed = False
        self._queued: deque[Hashable] = deque()
        self._scheduled = False
        reset_in_child(self)

    async def wait(
        self, keys: Iterable[Hashable], until: Callable[[], object] | None = None, *, timeout: float | timedelta
    ) -> WaitOutcome:
        """Wait until `until()` is true, tested now and at every `check` of one of `keys`; `timeout` is in seconds.

        Returns WaitOutcome.COMPLETED, or WaitOutcome.EXPIRED after the time-out. If the condition holds already, it
        returns at once. Without `until`, the first check completes the wait. `until` runs on the loop's thread, in this
        task's context, and should be quick; an error that it raises ends the wait and is raised here. A cancelled wait
        leaves its keys and the timer before CancelledError is raised here.

        Raises PurgatoryClosedError after `close`, or when `close("cancel")` ends the wait; RuntimeError in a loop other
        than the first wait's; ValueError without keys, or for an infinite time-out; TypeError if `keys` is one key.
        """
        if until is not None:
            check_callback(until, "until")
        waits = self._bind(asyncio.get_running_loop())
        wait = _Wait(timeout, until, waits)
        try:
            waits.try_complete_else_watch(wait, keys)
            wait.submitted = True
            return await wait.future
        finally:
            waits.cancel(wait)  # if this task is cancelled, or its coroutine closed
            if wait.future.done() and not wait.future.cancelled():
                wait.future.exception()  # mark it as retrieved, in case the cancel came just after it

    def check(self, key: Hashable) -> int:
        """Complete the waits on `key` whose condition holds now. Return their number. O(waits on the key).

        Call it after each change. From another thread, or while the loop is not running, it returns 0 at once, and the
        loop checks in its next turn, as conditions run on the loop's thread. (Checks within one turn share a wake-up.)
        Returns 0 before the first wait, and when the loop is closed.
        """
        loop, waits = self._loop, self._waits
        if loop is None or waits is None:
            hash(key)
            return 0
        if asyncio._get_running_loop() is loop:
            return waits.check_and_complete(key)
        hash(key)  # an unhashable key raises here, in the caller
        self._queued.append(key)
        if not self._scheduled or loop.is_closed():  # or it was closed before the scheduled check ran
            self._scheduled = True
            self._schedule_check(loop)
        return 0

    def close(self, how: Literal["expire", "cancel"] = "expire") -> int:
        """Refuse new waits and end the pending waits. Return how many waits this call ended. O(waits).

        "expire" ends each wait as if its deadline had passed. "cancel" raises PurgatoryClosedError in each wait. The
        timer stays open. A second call returns 0.
        """
        if how not in ("expire", "cancel"):
            raise ValueError(f'how must be "expire" or "cancel", not {how!r}')
        self._closed = True
        waits = self._waits
        if waits is None:
            return 0
        ended = waits.close(how)
        if how == "cancel":
            for wait in ended:
                error = PurgatoryClosedError(f"{self!r} was closed during the wait")
                wait.resolve(lambda wait=wait, error=error: wait.future.set_exception(error))  # type: ignore[misc]
        return len(ended)

    @property
    def name(self) -> str:
        """Return the name."""
        return self._name

    @property
    def closed(self) -> bool:
        """Return whether `close` has been called."""
        return self._closed

    def stats(self) -> PurgatoryStats:
        """Return all counts, read at one moment. `cancelled` includes waits that ended by an error. O(1)."""
        if self._waits is None:
            return PurgatoryStats(0, 0, 0, 0, 0, 0, 0)
        return self._waits.stats()

    def __len__(self) -> int:
        """Return the exact number of pending waits. O(1)."""
        return 0 if self._waits is None else self._waits.delayed

    def __bool__(self) -> bool:
        # An empty purgatory is true, so that `purgatory or default` does not replace it.
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled, as its waits cannot be shared")

    def __repr__(self) -> str:
        return f"<aio.Purgatory {self._name!r}, {'closed' if self._closed else f'{len(self)} waiting'}>"

    # -- inside

    def _reset_in_child(self) -> object:
        inherited = self._waits, self._loop, self._queued
        self._loop = None  # the forked child has its own loop
        self._waits = None
        self._queued = deque()
        self._scheduled = False
        return inherited

    def _bind(self, loop: asyncio.AbstractEventLoop) -> threads.Purgatory[Any]:
        """Return the inner purgatory; the first call creates it in `loop`. Raises RuntimeError for another loop."""
        if self._closed:
            raise PurgatoryClosedError(f"{self!r} accepts no waits: create a new Purgatory")
        if self._waits is None:
            timer = Timer(loop) if self._timer is None else self._timer
            self._waits = threads.Purgatory(self._name, timer)
            self._loop = loop  # last, since from here on checks use it
        elif self._loop is not loop:
            raise RuntimeError(f"{self!r} is bound to a different event loop: create another Purgatory in this loop")
        return self._waits

    def _schedule_check(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self._check_queued)
        except RuntimeError:  # the loop is closed
            self._queued.clear()
            self._scheduled = False

    def _check_queued(self) -> None:
        """Check each key that other threads have queued so far, once. Runs on the loop's thread.

        Keys that arrive meanwhile wait for the next turn, so that a busy thread cannot starve the loop.
        """
        self._scheduled = False
        keys = [self._queued.popleft() for _ in range(len(self._queued))]
        with suppress(Exception):  # if comparing keys raises, check duplicates too
            keys = list(dict.fromkeys(keys))
        keys.reverse()
        try:
            while keys and self._waits is not None:  # None in the child, if a condition forked
                self._waits.check_and_complete(keys.pop())
        finally:
            if keys and self._loop is not None:  # comparing a key raised: check the others next turn
                self._queued.extendleft(keys)
                self._loop.call_soon(self._check_queued)
