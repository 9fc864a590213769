"""Reset timers, detectors and purgatories in a forked child; what is pending stays the parent's: docs/fork.md.

Another of the parent's threads may have been in the middle of a change. So the child makes the locks anew, and puts
aside what was kept, whatever its state. It lets go of that at the very end, for that may run finalisers.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class BeginsAnew(Protocol):
    """A timer, a detector, a purgatory."""

    def _begin_anew(self) -> object:
        """Reset this in a forked child, open or closed as before; return inherited objects for the caller to drop."""


_all: weakref.WeakSet[BeginsAnew] = weakref.WeakSet()


def begins_anew(thing: BeginsAnew) -> None:
    """Reset `thing` in the child process after every fork, as long as it lives."""
    _all.add(thing)


def everything() -> list[BeginsAnew]:
    """Return all live timers, detectors and purgatories."""
    return list(_all)


def _in_child() -> None:
    inherited = [thing._begin_anew() for thing in everything()]
    del inherited


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
