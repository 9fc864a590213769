"""Accept former spellings of keywords in calls; signatures show only the present ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["former_keywords"]

P = ParamSpec("P")
T = TypeVar("T")


def former_keywords(**present: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for a function whose keywords were renamed: `former_keywords(old="new")`.

    A call with both spellings raises TypeError.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> T:
            for old in present.keys() & keywords.keys():
                new = present[old]
                if new in keywords:
                    raise TypeError(f"{function.__name__}() got {new}= and {old}=, which is its former spelling")
                keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return call

    return decorate
