"""Detect patches of asyncio's clock. The interpreted loop does not need it (compiled: unpatched.pxd)."""

from __future__ import annotations

__all__ = ["is_unpatched", "version_of"]


def version_of(loop: object) -> int:
    """Return a number that changes when an attribute of the loop's class or of a base is set; 0 if unknown."""
    return 0


def is_unpatched() -> bool:
    """Return whether asyncio's `time.monotonic` is Python's own, so that C may read the clock. Here always False."""
    return False
