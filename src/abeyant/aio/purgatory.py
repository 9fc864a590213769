"""The awaitable purgatory: wait in an event loop until a condition holds or a deadline passes.

What waits is an operation in an `abeyant.Purgatory`, whose end is a future's; so all of its laws hold.

Ground rules
------------
* Conditions run on the loop's thread only. A check from another thread is handed to the loop: its key goes into
  `_handed`, and the loop is called unless a call is on its way (`_called`, cleared before `_handed` is emptied, so
  that a key which comes meanwhile calls again, for a later turn).
* A wait may *end* elsewhere: its time-out where the timer runs its callbacks, `close` wherever it is called. The
  future is then resolved through the loop, which may be closed by then: nobody waits there any more.
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
from abeyant.forking import begins_anew
from abeyant.purgatory import DelayedOperation, PurgatoryClosedError, PurgatoryStats
from abeyant.timer import Timer as AnyTimer
from abeyant.timer.base import check_callback


class Outcome(StrEnum):
    """How a wait ended. True when it completed: `if not await purgatory.wait(...)` is "if its time ran out"."""

    COMPLETED = "completed"
    EXPIRED = "expired"

    def __bool__(self) -> bool:
        return self is Outcome.COMPLETED


class _Wait(DelayedOperation):
    """One `wait`: its condition, and the future that is awaited."""

    def __init__(
        self, timeout: float | timedelta, until: Callable[[], object] | None, home: threads.Purgatory[_Wait]
    ) -> None:
        super().__init__(timeout)
        self.until = until
        self.home = home
        self.waiting = False  # whether the submission is over
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Outcome] = self.loop.create_future()
        self.context = copy_context()

    def try_complete(self) -> bool:
        """Test the condition in the awaiter's context; what it raises ends the wait, and is raised there (P6)."""
        try:
            held = self.waiting if self.until is None else self.context.run(self.until)
            if held is not True and iscoroutine(held):
                held.close()
                raise TypeError(f"until must be a plain function, not {self.until!r}: its coroutine would be a truth")
        except (SystemExit, KeyboardInterrupt):  # these are nobody's in particular
            raise
        except BaseException as error:  # noqa: BLE001  raised where it is awaited
            self.fail(error)
            return False
        return bool(held) and self.force_complete()

    def fail(self, error: BaseException) -> bool:
        """End the wait with an error. Return True unless it had ended."""
        if not self.home.cancel(self):
            return False
        if isinstance(error, StopIteration):  # which neither a future nor a coroutine may raise
            error = RuntimeError(f"until raised {error!r}")
        self.resolve(lambda: self.future.set_exception(error))
        return True

    def on_complete(self) -> None:
        """Set the future's result: completed or expired."""
        assert self.outcome is not None
        outcome = Outcome(self.outcome)
        self.resolve(lambda: self.future.set_result(outcome))

    def resolve(self, action: Callable[[], object]) -> None:
        def unless_done() -> None:
            if not self.future.done():  # the awaiter was cancelled meanwhile
                action()

        if asyncio._get_running_loop() is self.loop:
            unless_done()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(unless_done)


class Purgatory:
    """Lets coroutines of one event loop wait for conditions by key, each with a deadline.

        outcome = await purgatory.wait([partition], until=lambda: partition.high_watermark >= offset, timeout=30.0)

    and whoever moves the high watermark calls `purgatory.check(partition)`. No change is missed in between (P2), and
    each wait ends once (P1). The purgatory belongs to the loop of the first wait, as asyncio's own locks do; make it
    anywhere. `check` may be called from any thread.

    It works on any of this package's timers. Without one it makes an `aio.Timer` of its own. It has no thread or task.
    """

    def __init__(self, name: str, timer: AnyTimer | None = None) -> None:
        """`timer` is an `aio.Timer`, a `SystemTimer`, or in tests a `ManualTimer`; it serves any number of these."""
        if not isinstance(name, str):
            raise TypeError(f'a purgatory is made with a name, Purgatory("produce"); not {name!r}')
        if timer is not None and not isinstance(timer, AnyTimer):
            raise TypeError(f"timer must be an aio.Timer, SystemTimer or ManualTimer, not {timer!r}")
        self._name = name
        self._timer = timer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waits: threads.Purgatory[_Wait] | None = None
        self._closed = False
        self._handed: deque[Hashable] = deque()
        self._called = False
        begins_anew(self)

    async def wait(
        self, keys: Iterable[Hashable], until: Callable[[], object] | None = None, *, timeout: float | timedelta
    ) -> Outcome:
        """Wait until `until()` is true, looking now and at every `check` of one of `keys`; `timeout` in seconds.

        Returns Outcome.COMPLETED, or Outcome.EXPIRED once the time is over. Where the condition holds already it
        returns at once. Without `until` the first check completes it. `until` runs on the loop's thread, in this
        task's context, and should be quick; what it raises is raised here, at the first look or any later one, and
        ends the wait. Cancelled, the wait leaves its keys and the timer before this returns.

        Raises PurgatoryClosedError after `close`, or when `close("cancel")` ends it; RuntimeError in another loop
        than before; ValueError without keys, or where the time-out never ends; TypeError for a key as `keys`.
        """
        if until is not None:
            check_callback(until, "until")
        waits = self._settle_in(asyncio.get_running_loop())
        wait = _Wait(timeout, until, waits)
        try:
            waits.try_complete_else_watch(wait, keys)
            wait.waiting = True
            return await wait.future
        finally:
            waits.cancel(wait)  # where this task is cancelled, or its coroutine closed
            if wait.future.done() and not wait.future.cancelled():
                wait.future.exception()  # seen, if cancelling came a moment after it

    def check(self, key: Hashable) -> int:
        """Complete the waits on `key` whose condition holds now; return how many. O(waits on it).

        Call it after the change. From another thread, or while the loop does not run, it returns 0 at once, nothing
        being completed yet: the loop checks at its next turn, since conditions run on its thread. (Checks
        that come faster than its turns cost it one wake-up together.) Where nobody has waited yet, or the loop is
        closed, nobody can be waiting, and it returns 0.
        """
        loop, waits = self._loop, self._waits
        if loop is None or waits is None:
            hash(key)
            return 0
        if asyncio._get_running_loop() is loop:
            return waits.check_and_complete(key)
        hash(key)  # raises here, in the caller, if it does
        self._handed.append(key)
        if not self._called or loop.is_closed():  # or it was closed before a call of ours had its turn
            self._called = True
            self._call(loop)
        return 0

    def close(self, how: Literal["expire", "cancel"] = "expire") -> int:
        """Accept no more waits and end those there are; returns how many this ended. O(waits).

        "expire" lets each end as its deadline would. "cancel" raises PurgatoryClosedError in each. A second call
        returns 0. The timer stays open.
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
        """The name."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._closed

    def stats(self) -> PurgatoryStats:
        """Return all counts, read at one moment. `cancelled` includes waits that ended by an error. O(1)."""
        if self._waits is None:
            return PurgatoryStats(0, 0, 0, 0, 0, 0, 0)
        return self._waits.stats()

    def __len__(self) -> int:
        """Return how many wait, exactly. O(1)."""
        return 0 if self._waits is None else self._waits.delayed

    def __bool__(self) -> bool:
        # One in which nobody waits is still one: `purgatory or default` must not replace it.
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: two could not share its waits")

    def __repr__(self) -> str:
        return f"<aio.Purgatory {self._name!r}, {'closed' if self._closed else f'{len(self)} waiting'}>"

    # -- inside

    def _begin_anew(self) -> object:
        inherited = self._waits, self._loop, self._handed
        self._loop = None  # the child has a loop of its own
        self._waits = None
        self._handed = deque()
        self._called = False
        return inherited

    def _settle_in(self, loop: asyncio.AbstractEventLoop) -> threads.Purgatory[Any]:
        """Return the inner purgatory, made in the first loop. Raises RuntimeError in another loop."""
        if self._closed:
            raise PurgatoryClosedError(f"{self!r} accepts no wait")
        if self._waits is None:
            timer = Timer(loop) if self._timer is None else self._timer
            self._waits = threads.Purgatory(self._name, timer)
            self._loop = loop  # the last: from here on, a check goes to it
        elif self._loop is not loop:
            raise RuntimeError(f"{self!r} is bound to a different event loop: make one for this")
        return self._waits

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self._check_handed)
        except RuntimeError:  # the loop is closed
            self._handed.clear()
            self._called = False

    def _check_handed(self) -> None:
        """Check the keys that other threads have handed in so far, once for each key. On the loop's thread.

        Not for those that come meanwhile: a thread that never stops must not keep the loop from its other work.
        """
        self._called = False
        keys = [self._handed.popleft() for _ in range(len(self._handed))]
        with suppress(Exception):  # a comparison raised: then each look is by itself
            keys = list(dict.fromkeys(keys))
        keys.reverse()
        try:
            while keys and self._waits is not None:  # None in the child, where a condition forked
                self._waits.check_and_complete(keys.pop())
        finally:
            if keys and self._loop is not None:  # a key's comparison raised: the others have their turn
                self._handed.extendleft(keys)
                self._loop.call_soon(self._check_handed)
