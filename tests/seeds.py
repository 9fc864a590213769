"""What `make test` takes of long searches and of many like cases: some. `make test-all` takes all."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import Any

import pytest


def seeds(count: int, *, quick: int) -> list[Any]:
    """Return the seeds from 0 to `count`, those from `quick` on marked as slow."""
    return with_slow(range(count), range(quick, count))


def with_slow(values: Iterable[Any], slow: Container[Any]) -> list[Any]:
    """Return the values as parameters of a test, those that are in `slow` marked so."""
    return [pytest.param(value, marks=[pytest.mark.slow] * (value in slow)) for value in values]


def share(count: int) -> int:
    """Return how many of so many made-up cases one test looks at: a quarter where Hypothesis looks at a quarter."""
    return -(-count // 4) if os.environ.get("HYPOTHESIS_PROFILE") == "brief" else count
