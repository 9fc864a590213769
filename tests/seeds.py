"""Seeds of searches: `make test` takes the first few, `make test-all` and CI all."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(count: int, *, quick: int) -> list[Any]:
    """Return the seeds from 0 to `count`, those from `quick` on marked as slow."""
    return [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= quick)) for seed in range(count)]
