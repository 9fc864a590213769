"""Law K12: in every scenario of the set a client of ours sees what genuine Kafka showed it."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .differences import DIFFERENCES, why
from .families import FAMILIES, all_scenarios
from .ours import OurKafka, our_kafka
from .record import Written, load, play
from .scenario import Scenario

COSTLY = ("dynamic_settings", "replication_throttles")
"""Families that set what all partitions look at: first, while there are few."""
SET = sorted(all_scenarios(), key=lambda one: one.family not in COSTLY)
QUICK = 4  # one in so many of each family is quick
recorded = functools.cache(load)


def marked() -> list[Any]:
    found, before = [], Counter[str]()
    for scenario in SET:
        family = scenario.family
        marks = [pytest.mark.slow] if before[family] % QUICK else []
        before[family] += 1
        found.append(pytest.param(scenario, marks=marks, id=f"{family}: {scenario.title}"))
    return found


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[bool, OurKafka]]:
    with our_kafka() as brokers, our_kafka(guarded=True) as guarded:
        yield {False: brokers, True: guarded}


@pytest.mark.parametrize("scenario", marked())
def test_shows_what_genuine_kafka_shows(clusters: dict[bool, OurKafka], scenario: Scenario) -> None:
    """K12. A difference that is listed has to be there, so that the list stays true."""
    kafka = clusters[scenario.is_guarded]
    expected = recorded(scenario.family)[scenario.title]
    reason = why(scenario)
    if reason is None:
        assert play(kafka, scenario) == expected
    else:
        assert _played(kafka, scenario) != expected, f"there is no difference any more: {reason}"


def _played(kafka: OurKafka, scenario: Scenario) -> Written | None:
    """What was written down; None where it came to nothing."""
    try:
        return play(kafka, scenario)
    except (KeyError, TimeoutError, RuntimeError):
        return None


def test_every_scenario_is_recorded_and_every_record_has_one() -> None:
    found = {(one.family, one.title) for one in SET}
    assert len(found) == len(SET), "two scenarios have one title"
    assert {(family, title) for family in FAMILIES for title in recorded(family)} == found


def test_the_page_says_how_many_there_are() -> None:
    page = (Path(__file__).parents[3] / "docs" / "broker-compared.md").read_text()
    stated = re.search(r"More than ([\d,]+) scenarios", page)
    assert stated is not None
    assert 0 < len(SET) - int(stated[1].replace(",", "")) < 500
    assert f"{len(DIFFERENCES)} differences stay" in page


def test_listed_differences_are_of_scenarios() -> None:
    for family, title in DIFFERENCES:
        assert any(one.family == family and one.title.startswith(title) for one in SET), title
