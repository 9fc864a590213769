"""Pause the garbage collector briefly: it could run a finaliser that uses a wheel in the middle of a change.

Ground rules
------------
* The whole process has one collector, and `gc.isenabled()` does not show who switched it off. So only one thread at a
  time pauses it: the thread that has taken the item in `_free`. Other threads meanwhile go on without a pause. If two
  paused it, each would mistake the other's pause for the user's `gc.disable()`, and could leave it off for good.
* Nothing here waits: the caller may be a finaliser or a signal handler, run by the thread for which it would wait.
* Nothing here makes an object that the collector counts (a lock's `acquire` does so, for its arguments). This could
  start a collection at the very moment at which it is to be paused.
* A user's own `gc.disable()` is kept, with one exception: if a thread calls it while another thread has the collector
  paused, the collector comes on again. (Compiled and with the interpreter's global lock, no other thread runs
  meanwhile.)
"""

from __future__ import annotations

import gc
import os
from threading import get_ident

_free = [None]  # empty while a thread has the collector paused
_pauser = 0  # the thread that has switched it off, or is just about to


def pause_collection() -> bool:
    """Pause the garbage collector if it is on. Return whether this call paused it, for `resume_collection`. O(1)."""
    global _pauser
    try:
        if not _free or not gc.isenabled():
            return False
        _free.pop()
    except IndexError:  # another thread has just taken it
        return False
    _pauser = get_ident()
    gc.disable()
    return True


def resume_collection(paused: bool) -> None:
    """Resume the garbage collector if `paused`, the result of `pause_collection`, is true. O(1)."""
    global _pauser
    if paused:
        gc.enable()
        _pauser = 0
        _free.append(None)


def _in_child() -> None:
    """Resume the collector after a fork: the thread that paused it may not exist in the child."""
    if not _free and _pauser != get_ident():
        gc.enable()
        _free.append(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
