# cython: nonecheck=True
"""Idle time-outs: call `seen` for each packet of a peer; `on_idle` is called once when the peer has been silent.

The idea
--------
All watched peers are in one timing wheel (`peers.py`), and one task of the timer stands for them all. This task runs
when the wheel's next bucket comes up. `seen` refreshes a peer's entry in the wheel: a look-up and one store, however
many peers are watched. The wheel files an entry anew only when its bucket comes up, so a busy connection costs a
cascade per time-out, not a timer per packet.

Ground rules
------------
* The lock guards the wheel, the table and the alarm. Compiled, on an interpreter with a global lock (GIL), the GIL is
  the lock, by the ground rules of timer/base.py: between `lock` and `unlock` no Python call, and no new object that the
  collector tracks (but in `_grow`, `_widen` and `drain`, which pause it or expect it). Interpreted, `lock` acquires a
  `Mutex`, which keeps finalisers and signal handlers from using this detector half changed.
* Peers' `__hash__` and `__eq__` are the user's code, and run with the lock free: the hash is computed before; to
  compare, `find` releases the lock, and starts again if the peer was removed meanwhile. `on_idle` runs, and the timer
  is called, with the lock free too: the timer may be an `aio.Timer`, and its loop's clock the user's code.
* `_alarm_at` is the deadline of this detector's task in the timer: `_NEVER` without a task, `_AWAKE` during a turn,
  which sets the next alarm at its end. A thread that changes it under the lock draws a new `_number`, and then starts
  the task with the lock free. If another number has been drawn meanwhile, the started task is surplus, and cancelled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from datetime import timedelta
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.callbacks import is_coroutine
else:
    from cython.cimports.abeyant.timer.callbacks import is_coroutine

from abeyant.engine import MAX_TIME
from abeyant.engine.wheel import TimingWheel
from abeyant.forking import reset_in_child
from abeyant.idle.peers import Peers
from abeyant.signature import CLASS_SIGNATURE, trim_getters
from abeyant.timer.base import Timer, TimerClosedError, at_any_rate, check_callback, refuse_coroutine
from abeyant.timer.system import SystemTimer
from abeyant.timer.task import TimerTask
from abeyant.timer.units import to_nanoseconds, to_seconds

_AWAKE = -1  # for `_alarm_at`
_NEVER = MAX_TIME  # for `_alarm_at`; no deadline is as late
_LONGEST = 100 * 366 * 86_400 * 10**9  # nanoseconds: a hundred years
_BATCH = 32  # calls of `on_idle` in one of the timer's tasks, for fairness to other tasks (T7)
_NOBODY = object()


class IdleStats(NamedTuple):
    """One consistent reading of a detector's counts. `watched` is current; the others are sums since its start."""

    watched: int
    """Peers whose countdown runs now: each once. (`PurgatoryStats.watched` counts pairs of operation and key.)"""
    started: int
    """Countdowns started: peers seen while they were not watched."""
    expired: int
    """Peers that were silent for too long, and were passed to `on_idle`."""
    forgotten: int
    """Peers removed by `forget`, or returned by `close`."""

    @property
    def begun(self) -> int:
        """Former name of `started`."""
        return self.started

    @property
    def idle(self) -> int:
        """Former name of `expired`."""
        return self.expired


trim_getters(IdleStats.begun, IdleStats.idle)


class IdleDetector:
    """Calls `on_idle(peer)` once when a peer has not been `seen` for `timeout` seconds, and forgets it.

    A peer is anything hashable: a connection, its number, an address. Safe to use from any thread that may use the
    timer: from every thread with a `SystemTimer` or a `ManualTimer`, from the loop's thread with an `aio.Timer`.

    `on_idle` runs where the timer runs its callbacks: never earlier than `timeout` after the last `seen`, and at most
    one tick of the timer later. Its errors are reported as the timer reports errors, and harm no other peer. A peer
    that is seen again, in `on_idle` or after it, is watched again.

    Memory: some 60 bytes per peer, the peer itself not counted.

    Examples:
        >>> timer = ManualTimer()
        >>> sessions = IdleDetector(30.0, lambda peer: print(peer, "is gone"), timer)
        >>> sessions.seen("alice")
        >>> ran = timer.advance(20.0)
        >>> sessions.seen("alice")  # starts again
        >>> ran = timer.advance(30.0)
        alice is gone
    """

    __slots__ = (
        "__weakref__", "_alarm", "_alarm_at", "_number", "_on_idle", "_own_timer", "_peers", "_timeout", "_timer",
        "_wheel",
    )  # fmt: skip
    __signature__ = CLASS_SIGNATURE

    def __init__(
        self, timeout: float | timedelta, on_idle: Callable[[Any], object], timer: Timer | None = None
    ) -> None:
        """Create a detector without peers. `timeout` is in seconds, up to a hundred years; `timer` is of any kind.

        Without a `timer` it creates a `SystemTimer` of its own, whose thread starts with the first peer; `close` closes
        that timer. Inside a running asyncio loop this raises RuntimeError, as `on_idle` would run in the wrong thread.

        Raises ValueError for a time-out that is not positive, or is above a hundred years, and TypeError for an
        `on_idle` that is not callable, or is an `async def`, which nobody would await.
        """
        if self._is_made():
            raise TypeError(f"{self!r}: its __init__ has been called before")
        check_callback(on_idle, "on_idle")
        if timer is not None and not isinstance(timer, Timer):
            raise TypeError(f"timer must be a SystemTimer, ManualTimer or aio.Timer, not {timer!r}")
        timeout_ns = to_nanoseconds(timeout, "timeout")
        if not 0 < timeout_ns <= _LONGEST:
            raise ValueError(f"timeout must be more than zero seconds, and up to a hundred years, not {timeout!r}")
        self._timeout = timeout_ns
        self._on_idle = on_idle
        self._own_timer = _make_timer() if timer is None else None
        self._timer: Timer = self._own_timer or timer  # type: ignore[assignment]
        self._watch_nobody()
        reset_in_child(self)

    def _watch_nobody(self) -> None:
        self._wheel = TimingWheel(self._timer._wheel.tick, self._timer._wheel.wheel_size, self._timer._now())
        self._peers = Peers(self._wheel)
        self._alarm: TimerTask | None = None
        self._alarm_at = _NEVER
        self._number = 0

    # -- for users -----------------------------------------------------------------------------------------

    def seen(self, peer: Any) -> None:
        """Record that `peer` is alive now: start or restart its time-out. O(1).

        Raises TimerClosedError once the detector or its timer is closed, as `on_idle` would never be called.
        """
        hashed = hash(peer)
        deadline = self._timer._now() + self._timeout
        number = 0
        refused = not self._timer._accepts()
        peers = self._peers
        peers.lock()
        try:
            slot = peers.find(peer, hashed)
            closed = refused or peers.closed or self._timer._closed
            if not closed:
                if slot < 0:
                    peers.add(peer, hashed, deadline)
                else:
                    peers.refresh(slot, deadline)
                if deadline < self._alarm_at:
                    number = self._draw(deadline)
        finally:
            peers.unlock()
        if closed:
            raise TimerClosedError(
                f"{self!r} cannot watch {peer!r}: the detector, its timer or event loop is closed; create a new one"
            )
        if number:
            try:
                self._set_alarm(number, deadline)
            except BaseException:
                self.forget(peer)  # not watched, as the timer refuses the alarm
                raise

    def forget(self, peer: Any) -> bool:
        """Stop watching `peer`. Return True exactly if this prevented a call of `on_idle`. O(1)."""
        hashed = hash(peer)
        alarm = None
        known = None
        peers = self._peers  # the same to the end: a peer's `__eq__` might fork
        peers.lock()
        try:
            slot = peers.find(peer, hashed)
            if slot >= 0:
                known = peers.remove(slot)
                if len(self._wheel) == 0 and self._alarm_at != _AWAKE:
                    self._draw(_NEVER)
                    alarm, self._alarm = self._alarm, None
        finally:
            peers.unlock()
        if alarm is not None:
            alarm.cancel()  # without peers the timer has nothing to wake up for (T10)
        del known  # not before the lock is free
        return slot >= 0

    def idle_for(self, peer: Any) -> float | None:
        """Return how many seconds `peer` has been silent, within a timer tick; None if it is not watched. O(1)."""
        hashed = hash(peer)
        now = self._timer._now()
        deadline: int | None = None
        peers = self._peers
        peers.lock()
        try:
            slot = peers.find(peer, hashed)
            if slot >= 0:
                deadline = self._wheel.deadline(self._wheel._slab.handle(slot))
        finally:
            peers.unlock()
        return None if deadline is None else max(0.0, to_seconds(now - (deadline - self._timeout)))

    def stats(self) -> IdleStats:
        """Return all counts, read at one moment. O(1)."""
        self._peers.lock()
        try:
            counts = self._wheel.stats()
        finally:
            self._peers.unlock()
        return IdleStats(counts.pending, counts.started, counts.expired, counts.cancelled)

    def close(self) -> list[Any]:
        """Stop watching, and return the peers that were watched, in the order of their deadlines. O(n log n).

        `on_idle` is not called for them. Later calls of `seen` raise, and of `close` return an empty list. A timer that
        was passed in stays open. Close the detector before it: once the timer is closed, `on_idle` is never called.
        """
        if not self._is_made():
            raise TypeError(f"{type(self).__name__}: its __init__ must call super().__init__() before it is used")
        self._peers.lock()
        try:
            drained = [] if self._peers.closed else self._peers.close()
            self._draw(_NEVER)
            alarm, self._alarm = self._alarm, None
        finally:
            self._peers.unlock()
        if alarm is not None:
            alarm.cancel()
        if self._own_timer is not None:
            self._own_timer.close()
        return [peer for _, peer in drained]

    @classmethod
    def __class_getitem__(cls, peer: Any) -> GenericAlias:
        """Return an alias for annotations: `IdleDetector[str]` is a detector whose peers are strings."""
        return GenericAlias(cls, peer)

    @property
    def timeout(self) -> float:
        """The time-out, in seconds."""
        return to_seconds(self._timeout)

    @property
    def closed(self) -> bool:
        """Return whether `close` has been called."""
        return self._peers.closed

    def __len__(self) -> int:
        """Return the exact number of watched peers. O(1)."""
        return len(self._wheel)

    def __bool__(self) -> bool:
        # True also without peers: `detector or default` must not replace it.
        return True

    def __contains__(self, peer: Hashable) -> bool:
        """Return whether `peer` is watched: seen, and since then neither idle nor forgotten. O(1)."""
        hashed = hash(peer)
        peers = self._peers
        peers.lock()
        try:
            return peers.find(peer, hashed) >= 0
        finally:
            peers.unlock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: two detectors cannot share its peers")

    def _is_made(self) -> bool:
        """Return whether `__init__` has been called."""
        return self._wheel is not None if cython.compiled else hasattr(self, "_wheel")

    def __repr__(self) -> str:
        state = "closed" if self._peers.closed else f"{len(self)} watched"
        return f"<IdleDetector of {self.timeout:g}s, {state}>"

    def _reset_in_child(self) -> object:
        """Forget all peers in a forked child, as the parent watches them. Return the inherited objects."""
        former = self._peers
        inherited = former, self._alarm
        self._watch_nobody()
        if former.closed:
            self._peers.close()
        return inherited

    def _set_back(self, loop: Any) -> None:
        """If `loop` is the timer's loop, use its new clock, even if that shows an earlier time. For virtual time."""
        if getattr(self._timer, "loop", None) is loop:
            now = self._timer._now()
            self._peers.lock()
            try:
                if now < self._wheel._now():
                    self._wheel._set_back(now)
            finally:
                self._peers.unlock()

    # -- the timer's turn: with the lock free --------------------------------------------------------------

    def _turn(self) -> None:
        """Call `on_idle` for peers whose time-out has passed, then schedule the next turn. Called by the timer."""
        self._peers.lock()
        self._alarm_at = _AWAKE
        self._peers.unlock()
        try:
            for _ in range(_BATCH):
                now = self._timer._now()
                self._peers.lock()
                try:
                    slot = self._peers.next_idle(now)
                    peer = _NOBODY if slot < 0 else self._peers.take(slot)
                finally:
                    self._peers.unlock()
                if peer is _NOBODY:
                    break
                try:
                    result = self._on_idle(peer)
                    if is_coroutine(result):
                        refuse_coroutine(result)
                except self._timer._caught as error:
                    self._timer._report(error, self._on_idle)
                peer = None  # not to be kept alive while the next is looked for
        finally:
            self._set_next_alarm()

    def _set_next_alarm(self) -> None:
        number = 0
        deadline = _NEVER
        self._peers.lock()
        try:
            upcoming = self._wheel.next_expiration()
            if upcoming is not None:
                deadline = upcoming
            if not self._peers.closed:
                number = self._draw(deadline)
        finally:
            self._peers.unlock()
        if number and deadline < _NEVER and not self._timer._closed:
            self._set_alarm(number, deadline)

    def _set_alarm(self, number: int, deadline: int) -> None:
        """Have the timer call `_turn` at `deadline`, unless a number other than `number` has been drawn meanwhile."""
        try:
            task: TimerTask | None = self._timer._start(_TURN, (self,), 0, deadline)
        except BaseException:
            self._peers.lock()
            if number == self._number:
                self._alarm_at = _NEVER  # the next `seen` tries again
            self._peers.unlock()
            raise
        self._peers.lock()
        if number == self._number:
            task, self._alarm = self._alarm, task
        self._peers.unlock()
        if task is not None:
            task.cancel()  # the one before, or else this one, if another has been set meanwhile

    # -- with the lock held --------------------------------------------------------------------------------

    def _draw(self, deadline: int) -> int:
        """Record that the timer has to call `_turn` at `deadline`. Return this alarm's number, for `_set_alarm`."""
        self._alarm_at = deadline
        self._number += 1
        return self._number

    def _check(self) -> None:
        """Assert what must hold between two calls. O(peers + chains); for tests."""
        self._peers.check()
        upcoming = self._wheel.next_expiration()
        if upcoming is not None and self._alarm_at != _AWAKE:
            slab = self._wheel._slab
            deadlines = [slab.deadline[slot] * self._wheel._tick for slot in slab.live_slots()]
            assert self._alarm_at <= min(deadlines), "the timer wakes in time for the first"
            assert self._alarm is not None, "the timer's task is at hand"
            assert self._alarm.pending, "and will run"


def turn(detector: IdleDetector) -> None:
    """Run a detector's turn. Called by the timer."""
    detector._turn()


_TURN = at_any_rate(turn)


def _make_timer() -> SystemTimer:
    # Without an import of asyncio: where nobody has imported it, no loop runs.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise RuntimeError(
            "an IdleDetector made inside an event loop needs to know where on_idle shall run: pass "
            "timer=abeyant.aio.Timer() for this loop, or timer=abeyant.SystemTimer() for a thread"
        )
    return SystemTimer("idle")
