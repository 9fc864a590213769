"""Why tests of clients' own suites do not pass: reasons name tests that are there, and what the broker lacks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from abeyant.broker.wire.apis import BY_NAME
from scripts.client_suites import results
from scripts.client_suites.results import Result, reasons, summary

SUITES = ("kafka-python", "aiokafka", "librdkafka", "confluent-kafka")
LINES = [line.split("\t") for line in Path(results.__file__).with_name("reasons.tsv").read_text().splitlines()]


def test_every_reason_is_of_a_suite_a_test_and_a_cause() -> None:
    assert all(len(line) == 3 and all(line) for line in LINES)
    assert {suite for suite, _, _ in LINES} <= set(SUITES)
    assert sum(len(reasons(suite)) for suite in SUITES) == len(LINES)


def test_no_reason_says_that_an_api_is_missing_which_is_there() -> None:
    for suite, test, why in LINES:
        for name in re.findall(r"(\w+) (?:is|are) not there", why):
            meant = {name.lower(), f"create{name}".lower(), f"describe{name}".lower()}
            there = [one for one in BY_NAME if one.lower() in meant]
            assert not there, f"{suite}, {test}: {why!r}, but the broker has {there}"


def test_a_whole_run_names_reasons_of_tests_that_are_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also one alternative of a pattern; a run of some tests cannot know."""
    known = tmp_path / "reasons.tsv"
    known.write_text("some\ttest_old|test_kept\tit is slow\nother\ttest_b\tnot here\n")
    monkeypatch.setattr(results, "_REASONS", known)
    ran = [Result("T::test_kept", "failed", 1.0), Result("T::test_b", "passed", 0.1)]
    text, unexplained = summary("some", ran, whole=True)
    assert "1 failed: it is slow" in text
    assert "GONE test_old: no test has this name" in text
    assert unexplained == 1
    assert summary("some", ran, whole=False)[1] == 0
    assert summary("other", ran, whole=True)[1] == 1, "nobody has said why test_kept fails there"
