"""Which laws a test checks: `pytest -m T3` runs the tests of one law.

A test names its laws in its own name (`test_t3_...`), or in its docstring, its class's or its module's ("T1-T3, P5").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

LAWS = {"T": 10, "P": 8, "O": 4, "K": 12}
"""How many laws there are of timers, purgatories, outcomes and the broker (docs/laws.md, docs/resolve.md)."""

_NAMED = re.compile(r"\b([TPOK])(\d{1,2})(?:-\1?(\d{1,2}))?\b")
_IN_NAME = re.compile(r"(?<![a-z0-9])([tpok])(\d{1,2})(?![a-z0-9])")


def all_laws() -> Iterator[str]:
    """Yield the name of each law."""
    for letter, count in LAWS.items():
        yield from (f"{letter}{number}" for number in range(1, count + 1))


def laws_of(name: str, *docstrings: str | None) -> set[str]:
    """Return the laws that a test of this name and with these docstrings checks."""
    found = {f"{letter.upper()}{number}" for letter, number in _IN_NAME.findall(name)}
    return (found & _every()).union(*(_named_in(text) for text in docstrings if text))


@cache
def _every() -> frozenset[str]:
    return frozenset(all_laws())


@cache
def _named_in(text: str) -> frozenset[str]:
    """A module's docstring is that of each of its tests, and is looked at once."""
    found = set[str]()
    for letter, first, last in _NAMED.findall(text):
        found.update(f"{letter}{number}" for number in range(int(first), int(last or first) + 1))
    return _every() & found
