"""What the rules of `tables.resolve` cost: each is measured."""

from __future__ import annotations

from dataclasses import fields

import pytest

from abeyant.tables.rules import Rules
from lab.spark.rules import RULES, measure


@pytest.mark.slow
def test_every_word_is_measured() -> None:
    measured = {name for rules in RULES.values() for name in rules} | {name for name in RULES if name.endswith("_key")}
    left_out = {"deadline", "within"}  # they change a comparison, and what `then` counts from
    assert measured == {field.name for field in fields(Rules)} - left_out | {"cancel_key", "extend_key", "pause_key"}
    ratios = measure(500, rounds=1)
    assert list(ratios) == list(RULES)
    assert ratios["plain"] == 1
    assert min(ratios.values()) > 0
