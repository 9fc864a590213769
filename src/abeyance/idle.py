# cython: nonecheck=True
"""Idle time-outs: who has been silent for too long? Each packet says `seen`; silence says `on_idle`, once.

The idea
--------
All who are watched wait in one timing wheel, and one task of the timer stands for them all: it comes up when the
wheel's next bucket does. To be seen again is to be refreshed: a look-up and one store, whoever and however many are
watched. The wheel files a task anew only when its bucket comes up, so a busy connection costs a cascade a time-out
and not a timer a packet.

A peer is a slot of the wheel and no Python object: the look-up is a hash table of chains threaded through the same
slots (`_chain`, `_hash`), whose keys are the wheel's own items. The garbage collector sees a dozen objects, however
many are watched.

Ground rules
------------
* The lock guards the wheel, the table and the alarm. Compiled, on an interpreter with a global lock, that one is the
  lock, by the ground rules of timer/base.py: between `_enter` and `_leave` no Python call, and nothing made that the
  collector tracks (but in `_grow`, `_widen` and `drain`, which pause it or expect it). Interpreted, `_enter` takes a
  `Mutex`, which keeps finalisers and signal handlers from using this detector half changed.
* Peers' `__hash__` and `__eq__` are the user's code, and run with the lock free: the hash is taken before; to compare,
  `_find` lets go of the lock, and looks again where what it had read has changed meanwhile. So does `on_idle`, and the
  timer is called with the lock free: it may be a loop's, and its clock is then the user's code too.
* `_alarm_at` is the time for which the timer's task is set: `_NEVER` for none, `_AWAKE` while a turn is on, which will
  set the next by itself. It is written under the lock *before* the timer is called, without it, by whoever changed it
  and drew a `_number` for that; if another number has been drawn when the timer has answered, its task is surplus.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Hashable
from datetime import timedelta
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

try:
    import cython
except ImportError:
    from abeyance.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyance.timer.callbacks import is_coroutine
else:
    from cython.cimports.abeyance.timer.callbacks import is_coroutine

from abeyance.engine import MAX_TIME
from abeyance.engine.slab import grown, pause_collection, resume_collection
from abeyance.engine.wheel import TimingWheel
from abeyance.forking import begins_anew
from abeyance.mutex import LOCKED, mutex
from abeyance.signature import CLASS_SIGNATURE
from abeyance.timer.base import Timer, TimerClosedError, check_callback, refuse_coroutine
from abeyance.timer.system import SystemTimer
from abeyance.timer.task import TimerTask
from abeyance.timer.units import to_nanoseconds, to_seconds

_LOCKED = LOCKED
_AWAKE = -1  # for `_alarm_at`
_NEVER = MAX_TIME  # for `_alarm_at`; no deadline is as late
_LONGEST = 100 * 366 * 86_400 * 10**9  # nanoseconds: a hundred years
_SLOT_MASK = 0xFFFFFFFF
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: Fibonacci hashing (Knuth, volume 3, 6.4)
_WORD = 0xFFFFFFFFFFFFFFFF
_FIRST_BITS = 6
_BATCH = 32  # calls of `on_idle` in one of the timer's tasks, that others get their turn (T7)
_NOBODY = object()


class IdleStats(NamedTuple):
    """One consistent reading of a detector's counts. `watched` is now; the others are sums since it was made."""

    watched: int
    begun: int  # seen while they were not watched
    idle: int  # handed to `on_idle`
    forgotten: int  # by `forget`, or handed back by `close`


class IdleDetector:
    """Calls `on_idle(peer)` once when a peer has not been `seen` for `timeout` seconds, and forgets it.

    A peer is anything hashable: a connection, its number, an address. Safe to use from any thread that may use the
    timer: from any at all on a `SystemTimer` or a `ManualTimer`, from the loop's own on an `aio.Timer`.

    `on_idle` runs where the timer runs its callbacks: never earlier than `timeout` after the last `seen`, and at most
    one tick of the timer later. What it raises goes where the timer reports errors, and harms no other peer. A peer
    that is seen again, in `on_idle` or after it, starts again.

    Memory: some 60 bytes per peer, the peer itself not counted.
    """

    __slots__ = (
        "__weakref__", "_alarm", "_alarm_at", "_bits", "_chain", "_closed", "_first", "_hash", "_lock", "_number",
        "_on_idle", "_own_timer", "_timeout", "_timer", "_wheel",
    )  # fmt: skip
    __signature__ = CLASS_SIGNATURE

    def __init__(
        self, timeout: float | timedelta, on_idle: Callable[[Any], object], timer: Timer | None = None
    ) -> None:
        """Watch nobody yet. `timeout` in seconds, up to a hundred years; `timer` is any of this package's.

        Without a `timer` it makes a `SystemTimer` of its own, whose thread begins with the first peer; `close` closes
        it. Inside a running asyncio loop that would run `on_idle` in the wrong thread, and raises RuntimeError.

        Raises ValueError for a time-out that is not positive or that never ends, and TypeError for an `on_idle` that
        cannot be called, or is a coroutine function, which the timer would call and nobody would await.
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
        self._closed = False
        self._watch_nobody()
        begins_anew(self)

    def _watch_nobody(self) -> None:
        self._wheel = TimingWheel(self._timer._wheel.tick, self._timer._wheel.wheel_size, self._timer._now())
        self._lock = mutex("an IdleDetector")
        self._alarm: TimerTask | None = None
        self._alarm_at = _NEVER
        self._number = 0
        # By slot of the wheel: the hash of its peer, and the next slot of its chain; -1 ends one.
        self._hash = array("q", bytes(8 * 256))
        self._chain = array("i", bytes(4 * 256))
        self._bits = _FIRST_BITS
        self._first = array("i", [-1]) * (1 << _FIRST_BITS)  # the first slot of each chain

    # -- for users -----------------------------------------------------------------------------------------

    def seen(self, peer: Any) -> None:
        """Note that `peer` is alive now: its time-out starts again, or starts if it was not watched. O(1).

        Raises TimerClosedError once the detector or its timer is closed, for nothing would come of it.
        """
        hashed = hash(peer)
        deadline = self._timer._now() + self._timeout
        number = 0
        refused = not self._timer._accepts()
        self._enter()
        try:
            slot = self._find(peer, hashed)
            closed = refused or self._closed or self._timer._closed
            if not closed:
                if slot < 0:
                    self._watch(peer, hashed, deadline)
                elif self._is_later(slot, deadline):
                    self._wheel._refresh(self._wheel._slab.handle(slot), deadline)
                if deadline < self._alarm_at:
                    number = self._draw(deadline)
        finally:
            self._leave()
        if closed:
            raise TimerClosedError(
                f"{self!r} is closed, or its timer or event loop is, and cannot watch {peer!r}; make a new one"
            )
        if number:
            try:
                self._set_alarm(number, deadline)
            except BaseException:
                self.forget(peer)  # what the timer refuses is not watched
                raise

    def forget(self, peer: Any) -> bool:
        """Watch `peer` no longer, without a call of `on_idle`; True exactly when this prevented one. O(1)."""
        hashed = hash(peer)
        alarm = None
        known = None
        self._enter()
        try:
            slot = self._find(peer, hashed)
            if slot >= 0:
                self._unchain(slot)
                known = self._wheel._remove(self._wheel._slab.handle(slot))
                if len(self._wheel) == 0 and self._alarm_at != _AWAKE:
                    self._draw(_NEVER)
                    alarm, self._alarm = self._alarm, None
        finally:
            self._leave()
        if alarm is not None:
            alarm.cancel()  # with nobody watched the timer has nothing to wake for (T10)
        del known  # here at the earliest
        return slot >= 0

    def idle_for(self, peer: Any) -> float | None:
        """For how many seconds `peer` has been silent, to a tick of the timer; None when it is not watched. O(1)."""
        hashed = hash(peer)
        now = self._timer._now()
        deadline: int | None = None
        self._enter()
        try:
            slot = self._find(peer, hashed)
            if slot >= 0:
                deadline = self._wheel.deadline(self._wheel._slab.handle(slot))
        finally:
            self._leave()
        return None if deadline is None else max(0.0, to_seconds(now - (deadline - self._timeout)))

    def stats(self) -> IdleStats:
        """All counts, read at one moment. O(1)."""
        self._enter()
        try:
            counts = self._wheel.stats()
        finally:
            self._leave()
        return IdleStats(counts.pending, counts.started, counts.expired, counts.cancelled)

    def close(self) -> list[Any]:
        """Watch nobody any more; return who was watched, first those who would have been idle first. O(n log n).

        `on_idle` is not called for them. Refuses `seen` after it. A second call returns an empty list. The timer
        stays open if it was given; close the detector before it, for a timer closed under it calls nobody.
        """
        if not self._is_made():
            raise TypeError(f"{type(self).__name__}: its __init__ must call super().__init__() before it is used")
        self._enter()
        try:
            closed, self._closed = self._closed, True
            for bucket in range(1 << self._bits):  # from here on nobody is found, while `drain` allocates
                self._first[bucket] = -1
            drained = [] if closed else self._wheel.drain()
            self._draw(_NEVER)
            alarm, self._alarm = self._alarm, None
        finally:
            self._leave()
        if alarm is not None:
            alarm.cancel()
        if self._own_timer is not None:
            self._own_timer.close()
        return [peer for _, peer in drained]

    @classmethod
    def __class_getitem__(cls, peer: Any) -> GenericAlias:
        """For annotations: `IdleDetector[str]` is one whose peers are strings."""
        return GenericAlias(cls, peer)

    @property
    def timeout(self) -> float:
        """The time-out, in seconds."""
        return to_seconds(self._timeout)

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._closed

    def __len__(self) -> int:
        """How many are watched, exactly. O(1)."""
        return len(self._wheel)

    def __bool__(self) -> bool:
        # A detector that watches nobody is still one: `detector or default` must not replace it.
        return True

    def __contains__(self, peer: Hashable) -> bool:
        """Whether `peer` is watched: it has been seen, and since then neither been idle nor been forgotten. O(1)."""
        hashed = hash(peer)
        self._enter()
        try:
            return self._find(peer, hashed) >= 0
        finally:
            self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(f"{self!r} cannot be copied or pickled: two could not share those it watches")

    def _is_made(self) -> bool:
        """Whether `__init__` has been called."""
        return self._wheel is not None if cython.compiled else hasattr(self, "_wheel")

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self)} watched"
        return f"<IdleDetector of {self.timeout:g}s, {state}>"

    def _begin_anew(self) -> object:
        """In the child of a fork: those it watched are the parent's."""
        inherited = self._wheel, self._alarm
        self._watch_nobody()
        return inherited

    # -- the turn of those who have been idle: with the lock free ------------------------------------------

    def _turn(self) -> None:
        """The timer's task: tell of those whose time is over, then have it set again."""
        self._enter()
        self._alarm_at = _AWAKE
        self._leave()
        try:
            for _ in range(_BATCH):
                now = self._timer._now()
                self._enter()
                try:
                    peer = self._take_idle(now)
                finally:
                    self._leave()
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
        self._enter()
        try:
            upcoming = self._wheel.next_expiration()
            if upcoming is not None:
                deadline = upcoming
            if not self._closed:
                number = self._draw(deadline)
        finally:
            self._leave()
        if number and deadline < _NEVER and not self._timer._closed:
            self._set_alarm(number, deadline)

    def _set_alarm(self, number: int, deadline: int) -> None:
        """Have the timer call `_turn` at `deadline`, for whoever drew `number`."""
        try:
            task: TimerTask | None = self._timer._start(self._turn, (), 0, deadline)
        except BaseException:
            self._enter()
            if number == self._number:
                self._alarm_at = _NEVER  # whoever is seen next tries again
            self._leave()
            raise
        self._enter()
        if number == self._number:
            task, self._alarm = self._alarm, task
        self._leave()
        if task is not None:
            task.cancel()  # the one before, or else this one, if another has been set meanwhile

    # -- with the lock held --------------------------------------------------------------------------------

    def _enter(self) -> None:
        if _LOCKED:
            self._lock.acquire()

    def _leave(self) -> None:
        if _LOCKED:
            self._lock.release()

    def _draw(self, deadline: int) -> int:
        """Note when the timer is to wake this; return the number by which to set it."""
        self._alarm_at = deadline
        self._number += 1
        return self._number

    def _is_later(self, slot: int, deadline: int) -> bool:
        """Whether a peer is given more time by `deadline`: not by a thread that read the clock before another did."""
        filed: int = self._wheel._slab.deadline[slot]
        return deadline > (filed - 1) * self._wheel._tick

    def _take_idle(self, now: int) -> Any:
        """Forget the next whose time is over, and hand it out; `_NOBODY` where there is none."""
        wheel = self._wheel
        if self._closed or wheel._settle(wheel._to_clock(now), 1024) <= 0:
            return _NOBODY
        slot = wheel._next_due()
        if slot < 0:
            return _NOBODY
        self._unchain(slot)
        return wheel._hand_out(slot)

    def _find(self, peer: Hashable, hashed: int) -> int:
        """The slot of a peer, or -1. Let go of the lock to compare; what it returns is so when it returns."""
        slab = self._wheel._slab
        while True:
            started = self._wheel._started
            slot = self._first[self._bucket(hashed)]
            while slot >= 0:
                if self._hash[slot] == hashed:
                    other = slab.items[slot]
                    if other is peer:
                        return slot
                    handle = slab.handle(slot)
                    self._leave()
                    try:
                        same = bool(other == peer)
                    finally:
                        other = None  # maybe the last reference
                        self._enter()
                    if slab.find(handle) < 0 or self._closed:
                        break  # it went meanwhile: look again
                    if same:
                        return slot
                slot = self._chain[slot]
            else:
                if self._wheel._started == started:  # or else it may have come meanwhile
                    return -1

    def _bucket(self, hashed: int) -> int:
        return ((hashed * _GOLDEN) & _WORD) >> (64 - self._bits)

    def _watch(self, peer: Hashable, hashed: int, deadline: int) -> None:
        """Begin to watch a peer that is not watched. O(1), amortised."""
        if len(self._wheel) >> self._bits:
            self._widen()
        handle = self._wheel._add(deadline, peer)
        slot = handle & _SLOT_MASK
        if slot >= len(self._hash):
            try:
                self._grow()
            except BaseException:
                self._wheel._remove(handle)
                raise
        bucket = self._bucket(hashed)
        self._hash[slot] = hashed
        self._chain[slot] = self._first[bucket]
        self._first[bucket] = slot

    def _unchain(self, slot: int) -> None:
        """Take a slot out of its chain. O(those in the chain)."""
        bucket = self._bucket(self._hash[slot])
        before = self._first[bucket]
        if before == slot:
            self._first[bucket] = self._chain[slot]
            return
        while self._chain[before] != slot:
            before = self._chain[before]
        self._chain[before] = self._chain[slot]

    def _grow(self) -> None:
        """Room for as many as the wheel has."""
        collecting = pause_collection()
        try:
            room = self._wheel._slab._room
            hashes, chains = grown(self._hash, "q", room), grown(self._chain, "i", room)
            self._hash = hashes
            self._chain = chains
        finally:
            resume_collection(collecting)

    def _widen(self) -> None:
        """Twice as many chains. O(those watched)."""
        collecting = pause_collection()
        try:
            table = array("i", [-1]) * (2 << self._bits)
            slots = self._wheel._slab.live_slots()
            self._first = table
            self._bits += 1
            for slot in slots:
                bucket = self._bucket(self._hash[slot])
                self._chain[slot] = self._first[bucket]
                self._first[bucket] = slot
        finally:
            resume_collection(collecting)

    def _check(self) -> None:
        """Assert what must hold between two calls. O(those watched + chains); for tests."""
        self._wheel._check()
        slab = self._wheel._slab
        met = set()
        for bucket in range(1 << self._bits):
            slot = self._first[bucket]
            while slot >= 0:
                assert slot not in met, f"slot {slot} is in a chain twice"
                assert self._bucket(self._hash[slot]) == bucket, f"slot {slot} is in the wrong chain"
                assert self._hash[slot] == hash(slab.items[slot]), f"slot {slot} has another's hash"
                met.add(slot)
                slot = self._chain[slot]
        assert met == set(slab.live_slots()), "every peer is found, and nobody else"
        upcoming = self._wheel.next_expiration()
        if upcoming is not None and self._alarm_at != _AWAKE:
            deadlines = [slab.deadline[slot] * self._wheel._tick for slot in met]
            assert self._alarm_at <= min(deadlines), "the timer wakes in time for the first"
            assert self._alarm is not None, "the timer's task is at hand"
            assert self._alarm.pending, "and will run"


def _make_timer() -> SystemTimer:
    # Without an import of asyncio: where nobody has imported it, no loop runs.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise RuntimeError(
            "an IdleDetector made inside an event loop needs to know where on_idle shall run: pass "
            "timer=abeyance.aio.Timer() for this loop, or timer=abeyance.SystemTimer() for a thread"
        )
    return SystemTimer("idle")
