"""Weak references to timers, as the interpreted handles use them (compiled: weak.pxd)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abeyant.timer.task import TaskOwner


def owner_of(reference: weakref.ref[TaskOwner]) -> TaskOwner | None:
    """Return the timer that a weak reference refers to; None if the timer is gone."""
    return reference()
