"""What the words of `tables.resolve` cost: each is measured."""

from __future__ import annotations

from dataclasses import fields

import pytest

from abeyant.tables.words import Words
from lab.spark.words import WORDS, measure


@pytest.mark.slow
def test_every_word_is_measured() -> None:
    measured = {name for words in WORDS.values() for name in words} | {name for name in WORDS if name.endswith("_key")}
    left_out = {"deadline", "within"}  # they change a comparison, and what `then` counts from
    assert measured == {field.name for field in fields(Words)} - left_out | {"cancel_key", "extend_key", "pause_key"}
    ratios = measure(500, rounds=1)
    assert list(ratios) == list(WORDS)
    assert ratios["plain"] == 1
    assert min(ratios.values()) > 0
