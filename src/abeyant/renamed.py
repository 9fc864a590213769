"""Accept the former names of renamed keywords in calls; signatures show only the new names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["former_keywords"]

P = ParamSpec("P")
T = TypeVar("T")


def former_keywords(**present: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that accepts the former names of renamed keywords too: `former_keywords(old="new")`.

    A call with both names raises TypeError.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> T:
            for old in present.keys() & keywords.keys():
                new = present[old]
                if new in keywords:
                    raise TypeError(f"{function.__name__}() got both {new}= and its former name {old}=: pass only one")
                keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return call

    return decorate
