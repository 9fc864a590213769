"""List a purgatory's operations in slices, for observers in other threads, so that the lock is held briefly."""

from __future__ import annotations

from typing import Any

from abeyant.engine.collector import pause_collection, resume_collection
from abeyant.purgatory.operation import DelayedOperation
from abeyant.purgatory.room import Room
from abeyant.timer.base import enter, leave
from abeyant.timer.units import to_seconds


def timer_of(purgatory: Room) -> Any:
    """Return the timer of a purgatory."""
    return purgatory._timer


def slots_of(purgatory: Room) -> int:
    """Return the number of slots that `operations_in` can read."""
    return purgatory._directory._fresh


def operations_in(purgatory: Room, begin: int, count: int) -> list[tuple[Any, Any]]:
    """Return (operation, its keys) for the operations whose first watch is in one of `count` slots from `begin`.

    A slot holds one watch of the purgatory's directory, so that reading all slots once returns each operation once.
    O(count + keys).
    """
    found: list[tuple[Any, Any]] = []
    directory = purgatory._directory
    directory.lock()
    paused = pause_collection()
    try:
        for slot in range(begin, min(begin + count, directory._fresh)):
            if directory._number[slot] < 0 or directory._list[slot] < 0:
                continue
            operation = directory._objects[slot]
            if operation._dop_watches != slot:
                continue
            keys = []
            watch = slot
            while watch >= 0:
                if directory._list[watch] >= 0:
                    keys.append(directory._objects[directory._list[watch]])
                watch = directory._also[watch]
            found.append((operation, keys))
        return found
    finally:
        resume_collection(paused)
        directory.unlock()


def deadline_of(purgatory: Room, operation: DelayedOperation) -> float | None:
    """Return when a pending operation expires, in seconds on the timer's clock; None if that is unknown."""
    purgatory._directory.lock()
    handle, task = operation._dop_handle, operation._dop_task
    purgatory._directory.unlock()
    timer = purgatory._quick_timer
    if timer is None or not handle:
        found: float | None = getattr(task, "deadline", None)
        return found
    enter(timer)
    try:
        deadline = timer._wheel.deadline(handle)
    finally:
        leave(timer)
    return None if deadline is None else to_seconds(deadline)
