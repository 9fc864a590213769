"""A soak: after hundreds of thousands of operations nothing is left. The long one: `python tests/engine/soak.py`."""

from __future__ import annotations

from random import Random

import pytest

from abeyant.engine import is_compiled
from engine import soak

OPERATIONS = 400_000 if is_compiled() else 40_000


@pytest.mark.slow
@pytest.mark.parametrize("subject", soak.SUBJECTS)
def test_nothing_is_left_behind(subject: str) -> None:
    growth = soak.soak(subject, OPERATIONS)
    if growth.leaks and not growth.alive:  # other tests' threads and caches share the process: look again
        growth = soak.soak(subject, OPERATIONS)
    assert not growth.leaks, growth


def test_the_soak_notices_a_leak_of_one_object_in_a_hundred_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    leaked: list[object] = []

    class Leaky(soak.Wheel):
        def __call__(self, operations: int, rng: Random, watch: soak.Watch) -> None:
            super().__call__(operations, rng, watch)
            leaked.extend(object() for _ in range(operations // 100))

    monkeypatch.setitem(soak.SUBJECTS, "wheel", Leaky)
    growth = soak.soak("wheel", 200_000)
    assert growth.leaks
    assert growth.blocks > 1000
