"""Recognise what cannot be a callback: coroutines and `async def` (compiled: callbacks.pxd)."""

from __future__ import annotations

from types import CoroutineType, FunctionType, MethodType
from typing import Any

__all__ = ["is_async", "is_coroutine"]

_CO_COROUTINE = 0x80  # as in `inspect`, which is slow to import
_CO_ASYNC_GENERATOR = 0x200


def is_async(callback: Any) -> bool:
    """Return whether `callback` is an `async def` function or method. For speed, wrappers are not examined."""
    if type(callback) is MethodType:
        callback = callback.__func__
    return type(callback) is FunctionType and callback.__code__.co_flags & (_CO_COROUTINE | _CO_ASYNC_GENERATOR) != 0


def is_coroutine(result: object) -> bool:
    """Return whether `result` is a coroutine."""
    return type(result) is CoroutineType
