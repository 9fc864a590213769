"""Whether asyncio's clock is as Python made it: the interpreted loop need not know (compiled: unpatched.pxd)."""

from __future__ import annotations

__all__ = ["is_unpatched", "version_of"]


def version_of(loop: object) -> int:
    """Return a number that changes whenever an attribute of the loop's class or of a base is set; 0 for unknown."""
    return 0


def is_unpatched() -> bool:
    """Return whether `time.monotonic`, as asyncio looks it up, is Python's and may be read in C. Here there is no C."""
    return False
