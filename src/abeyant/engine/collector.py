"""Pause the garbage collector briefly: it could run a finaliser that uses the wheel while it is half changed.

Ground rules
------------
* The collector is the whole process's, and `gc.isenabled()` does not show who switched it off. So one thread at a time
  has it paused, the one that has taken the item in `_free`. Another thread meanwhile goes on without a pause. Were both
  to pause it, each would take the other's pause for the user's wish, and could leave it off for good.
* Nothing here waits: the caller may be a finaliser or a signal handler, run by the thread that it would wait for.
* Nothing in here makes an object that the collector counts, as a lock's `acquire` does of its arguments. It would
  start at the very moment at which it is to be paused.
* A user's own `gc.disable()` is kept, but for one case: a thread that calls it while another has the collector paused
  finds it on again. (Compiled and with the interpreter's global lock, no other thread runs meanwhile.)
"""

from __future__ import annotations

import gc
import os
from threading import get_ident

_free = [None]  # empty while a thread has the collector paused
_pauser = 0  # the thread that has switched it off, or is just about to


def pause_collection() -> bool:
    """Pause the garbage collector; return the token for `resume_collection`. O(1)."""
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
    """Resume the collector that `pause_collection` paused. O(1)."""
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
