"""The sentences that say what happened: few, the worst first, and nobody is named without a suspect."""

from __future__ import annotations

import pandas as pd

from abeyant.pipeline.report.what_happened import what_happened


def at(second: int) -> pd.Timestamp:
    return pd.Timestamp("2026-01-01T00:00:00Z") + pd.Timedelta(seconds=second)


def incidents(*operations: int) -> pd.DataFrame:
    rows = [("PRODUCE", "waited", at(100 * n), number) for n, number in enumerate(operations)]
    return pd.DataFrame(rows, columns=["kind", "trouble", "first", "operations"])


def suspects(*rows: tuple[int, str, float, int, int]) -> pd.DataFrame:
    columns = ["incident", "suspect", "kind", "evidence", "confidence", "first", "last"]
    found = [
        (number, who, "silent_broker", f"{who} of {number}", sure, at(first), at(last))
        for number, who, sure, first, last in rows
    ]
    return pd.DataFrame(found, columns=columns).astype({"incident": "int64"})


def test_incidents_of_one_cause_are_one_sentence_and_the_worst_comes_first() -> None:
    said = what_happened(
        incidents(5, 80, 20, 9),
        suspects(
            (1, "broker 1", 0.9, 0, 5),
            (2, "broker 2", 0.6, 90, 105),
            (2, "broker 3", 0.8, 90, 105),
            (3, "broker 3", 0.8, 95, 110),
            (4, "broker 1", 0.9, 300, 305),
        ),
    )
    assert said == [
        "Broker 3 of 2 (broker 3 is the suspect of 1 more incident at the same time).",
        "Broker 1 of 4.",
        "Broker 1 of 1.",
    ]


def test_each_suspect_has_a_sentence_before_one_has_two() -> None:
    said = what_happened(
        incidents(80, 70, 60, 8, 5),
        suspects(
            (1, "broker 3", 0.9, 0, 5),
            (2, "broker 3", 0.9, 1, 5),
            (3, "broker 3", 0.9, 200, 205),
            (4, "broker 1", 0.9, 300, 305),
        ),
    )
    assert said == [
        "Broker 3 of 1 (broker 3 is the suspect of 1 more incident at the same time and 1 at other times).",
        "Broker 1 of 4.",
        "No suspect for 1 incident.",
    ]


def test_a_log_of_several_days_has_the_day_of_each() -> None:
    day = 86_400
    rows = incidents(5, 6)
    rows["first"] = [at(0), at(day)]
    named = suspects((1, "broker 1", 0.9, 0, 5), (2, "broker 1", 0.9, day, day + 5))
    assert what_happened(rows, named) == ["2 January: Broker 1 of 2.", "1 January: Broker 1 of 1."]


def test_incidents_without_a_suspect_are_told() -> None:
    assert what_happened(incidents(5, 6, 7), suspects((2, "broker 1", 0.9, 0, 5))) == [
        "Broker 1 of 2.",
        "No suspect for 2 incidents.",
    ]
    assert what_happened(incidents(5), suspects()) == ["No suspect for 1 incident."]
    assert what_happened(incidents(), suspects()) == []
