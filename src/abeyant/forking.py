"""Reset timers, detectors and purgatories in a forked child. Pending tasks stay in the parent only: docs/fork.md.

At the fork, another thread of the parent may have been in the middle of a change. So the child makes new locks, and
replaces the inherited objects whatever their state. It drops the inherited objects last, as this may run finalisers.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """An object that is reset after a fork: a timer, a detector or a purgatory."""

    def _reset_in_child(self) -> object:
        """Reset this object in a forked child, but leave it open or closed. Return inherited objects, to be dropped."""


_all: weakref.WeakSet[ForkAware] = weakref.WeakSet()


def reset_in_child(thing: ForkAware) -> None:
    """Register `thing`: after every fork it is reset in the child process, as long as it lives."""
    _all.add(thing)


def everything() -> list[ForkAware]:
    """Return all live timers, detectors and purgatories."""
    return list(_all)


def _in_child() -> None:
    inherited = [thing._reset_in_child() for thing in everything()]
    del inherited


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
