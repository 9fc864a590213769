"""A stand-in for the module `cython` where Cython is not installed, so that nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

T = TypeVar("T")

compiled = False
nogil = nullcontext()  # held all the time


def no_gc(cls: T) -> T:
    """Return the class unchanged: the decorator affects compiled classes only."""
    return cls


def cclass(cls: T) -> T:
    """Return the class unchanged: the decorator affects compiled classes only."""
    return cls


def freelist(size: int) -> Callable[[T], T]:
    """Return a decorator that changes nothing, as it affects compiled classes only."""
    return no_gc
