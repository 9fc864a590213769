"""With which versions of Spark the pipeline is tested, and the table that tells of it."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from scripts import test_spark_versions as sparks


def test_of_each_declared_minor_the_oldest_and_the_newest_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sparks.declared().oldest <= sparks.numbers(version("pyspark")) < sparks.declared().end
    monkeypatch.setattr(sparks, "declared", lambda: sparks.Range((4, 1), (5,)))
    there = ["5.0.0", "4.10.0", "4.2.1", "4.2.0", "4.1.4", "4.1.3", "4.1.0", "4.1.0.dev2", "4.0.5", "3.5.9"]
    assert sparks.ends_of_minors(there) == ["4.1.0", "4.1.4", "4.2.0", "4.2.1", "4.10.0"]
    assert sparks.oldest() == "4.1.0"


def test_the_installed_one_is_taken_as_it_is() -> None:
    assert sparks.prepare(version("pyspark")) == ""


def test_the_table_has_a_line_each() -> None:
    rows = [["4.1.0", "6 passed in 21.30s"], ["4.10.0", "FAILED: pip: no such version"]]
    assert sparks.table(rows).splitlines() == [
        "PySpark  the pipeline's tests",
        "4.1.0    6 passed in 21.30s",
        "4.10.0   FAILED: pip: no such version",
    ]
