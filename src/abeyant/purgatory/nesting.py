"""The locks of operations, how many a thread holds, and the actions it has deferred until it holds none.

An operation's own code may complete other operations: `on_complete` appends to a log, say, and other operations
wait for that. So a thread that holds one operation's lock may need the lock of another operation. If it waited
for that lock, two threads that go opposite ways would wait for each other for ever. Kafka avoids this deadlock
by convention: completions that may touch other operations go into an "action queue", which request handlers
empty once they hold no lock. Here it is built in:

    A thread that is inside an operation never waits for another operation's lock.

The thread defers an action for which it would have to wait, and runs it, waiting if need be, as soon as it has
left the outermost operation. No action is handed to another thread and none is lost; the call that deferred it
merely returns before it is done. The same queue bounds the stack: a chain of operations that complete one
another nests to a fixed depth, and goes on from the queue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

try:
    import cython
except ImportError:
    from abeyant.engine import uncompiled as cython

if TYPE_CHECKING or not cython.compiled:
    from abeyant.timer.callbacks import is_async
else:
    from cython.cimports.abeyant.timer.callbacks import is_async

if TYPE_CHECKING or not cython.compiled:
    from abeyant.purgatory.thread_state import depth, get_ident, owed, set_depth, set_owed
else:
    from cython.cimports.abeyant.purgatory.thread_state import depth, get_ident, owed, set_depth, set_owed

from abeyant.mutex import LOCKED
from abeyant.purgatory.ports import ReentrantLock

DEEPEST = 64
"""The number of locks from which a thread defers actions that would nest deeper: some 30 operations, 200 frames."""
_DEEPEST = DEEPEST  # a C constant when compiled

_LOCKED = LOCKED  # a C constant when compiled

_PLAIN_LOCK: Any = type(threading.Lock())


class Locked:
    """The base class of operations, whose code runs under a lock: the user's, or the operation's own.

    The operation's own lock is a `threading.RLock`. Compiled, on an interpreter with a global lock, it begins as two
    integers, the thread that holds it and how often, as C code that reads and changes them is not interrupted there.
    The RLock is created, held by the same thread, only when another thread has to wait, or `whole_lock` is called.
    """

    # Long names: subclasses have their own `_lock`, and must not tread on ours.
    __slots__ = ("_dop_held", "_dop_lock", "_dop_owner")

    _dop_lock: ReentrantLock | None  # None while the two integers suffice
    _dop_owner: int  # the thread that holds it, where `_dop_held` is not 0
    _dop_held: int  # how often


def begin(operation: Locked, lock: ReentrantLock | None) -> None:
    """Set an operation's lock: `lock`, or a new one if None. Raises TypeError for an unsuitable lock."""
    if lock is None:
        if _LOCKED:
            lock = threading.RLock()
    elif isinstance(lock, _PLAIN_LOCK):
        raise TypeError("an operation's lock must be reentrant: pass a threading.RLock, not a threading.Lock")
    elif not (callable(getattr(lock, "acquire", None)) and callable(getattr(lock, "release", None))):
        raise TypeError(f"lock must be a threading.RLock, or have its acquire() and release(), not {lock!r}")
    elif is_async(lock.acquire):
        raise TypeError(f"lock must be a lock of threads, a threading.RLock say, not {lock!r}, which is for coroutines")
    operation._dop_held = 0
    operation._dop_owner = 0
    operation._dop_lock = lock


def _take(operation: Locked, blocking: bool) -> bool:
    """Acquire the lock and return True. Unless `blocking`, return False if another thread holds it."""
    if operation._dop_lock is None:
        me = get_ident()
        if operation._dop_held == 0:
            operation._dop_owner = me
            operation._dop_held = 1
            return True
        if operation._dop_owner == me:
            operation._dop_held += 1
            return True
        if not blocking:
            return False
        whole_lock(operation)
    lock: Any = operation._dop_lock
    return bool(lock.acquire(blocking))


def _give(operation: Locked) -> None:
    """Release the lock, once for each time it was acquired."""
    if operation._dop_lock is None:
        operation._dop_held -= 1
    else:
        operation._dop_lock.release()


def whole_lock(operation: Locked) -> ReentrantLock:
    """Return the lock as an object; create it if the lock is still two integers."""
    while operation._dop_lock is None:
        held = operation._dop_held
        owner = operation._dop_owner
        whole: Any = threading.RLock()
        if held:
            whole._acquire_restore((held, owner))  # as threading.Condition does, after a wait
        if operation._dop_held == held and operation._dop_owner == owner and operation._dop_lock is None:
            operation._dop_lock = whole
    return operation._dop_lock


def enter(operation: Locked) -> bool:
    """Acquire an operation's lock. Return False if this thread must not wait for it, or is nested too deeply."""
    if depth() >= _DEEPEST:
        return False
    return enter_at_any_depth(operation)


def enter_at_any_depth(operation: Locked) -> bool:
    """Acquire an operation's lock. Return False if this thread must not wait for it, as it holds another lock."""
    if not _take(operation, False):
        if depth():
            return False
        _take(operation, True)
    set_depth(depth() + 1)
    return True


def release(operation: Locked) -> None:
    """Release the lock without running the deferred actions: call `settle` afterwards."""
    set_depth(depth() - 1)
    _give(operation)


def leave(operation: Locked) -> None:
    """Release the lock and, if this thread now holds none, run the deferred actions."""
    set_depth(depth() - 1)
    _give(operation)
    if owed():
        settle()


class _PutOff(threading.local):
    """The deferred actions of the current thread."""

    def __init__(self) -> None:
        self.actions: deque[tuple[Callable[[Any], object], Any]] = deque()
        self.settling = False


_PUT_OFF = _PutOff()


def defer(action: Callable[[Any], object], operation: Any) -> None:
    """Defer `action(operation)` until this thread holds no operation's lock."""
    _PUT_OFF.actions.append((action, operation))
    set_owed(owed() + 1)


def settle() -> None:
    """Run the deferred actions in order, if this thread holds no operation's lock and is not running them already.

    The actions report their own errors. If one raises a KeyboardInterrupt or its like, the other actions run first,
    and then it is raised again.
    """
    if not owed() or depth() or _PUT_OFF.settling:
        return
    interruption: BaseException | None = None
    _PUT_OFF.settling = True
    try:
        while _PUT_OFF.actions:
            action, operation = _PUT_OFF.actions.popleft()
            set_owed(owed() - 1)
            try:
                action(operation)
            except BaseException as raised:  # noqa: BLE001  raised again below
                interruption = raised
    finally:
        _PUT_OFF.settling = False
    if interruption is not None:
        try:
            raise interruption
        finally:
            del interruption  # a frame must not hold the exception that holds the frame
