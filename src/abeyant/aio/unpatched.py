"""Detect patches of asyncio's clock: stubs for the interpreted loop, which needs no detection (see unpatched.pxd)."""

from __future__ import annotations

__all__ = ["is_unpatched", "version_of"]


def version_of(loop: object) -> int:
    """Return a number that changes when an attribute of the loop's class or a base is set. Here always 0: unknown."""
    return 0


def is_unpatched() -> bool:
    """Return whether asyncio's `time.monotonic` is Python's own, so that C may read the clock. Here always False."""
    return False
