"""The numbers at the head of the page of outcomes."""

from __future__ import annotations

import pandas as pd
import pytest

from abeyant.pipeline.report.outcomes import Outcomes, outcome_tiles


def outcomes(pending: int = 0, **counts: int) -> Outcomes:
    rows = [("order", outcome, 10, 5.0, operations) for outcome, operations in counts.items()]
    waits = pd.DataFrame(rows, columns=["kind", "outcome", "bin", "most_ms", "operations"])
    return Outcomes(waits=waits, keys=None, rejected={}, made={"pending_for_ever": pending} if pending else {})


def test_tiles_have_each_way_to_end() -> None:
    found = outcome_tiles(outcomes(completed=6, expired=3, cancelled=1))
    assert [(tile.name, tile.value) for tile in found[:4]] == [
        ("operations", "10"),
        ("completed", "6"),
        ("expired", "3"),
        ("cancelled", "1"),
    ]


def test_what_is_paused_for_ever_is_an_operation_too() -> None:
    found = outcomes(pending=2, completed=6)
    assert found.title.startswith("8 operations: 6 completed, ")
    assert found.title.endswith(", 2 pending for ever")
    assert [tile.value for tile in outcome_tiles(found) if tile.name in ("operations", "pending for ever")] == [
        "8",
        "2",
    ]
    assert "pending" not in outcomes(completed=6).title


@pytest.mark.parametrize("counts", [{"completed": 6}, {"completed": 6, "expired": 3}])
def test_nothing_is_said_of_cancelling_where_nothing_was(counts: dict[str, int]) -> None:
    assert "cancelled" not in [tile.name for tile in outcome_tiles(outcomes(**counts))]


def test_of_kinds_that_wait_until_the_deadline_the_one_with_the_longer_median_waits_longest() -> None:
    rows = [
        (kind, outcome, bin_, most_ms, 5)
        for kind, median in (("card", 10.0), ("transfer", 100.0))
        for outcome, bin_, most_ms in (("completed", 1, median), ("expired", 9, 900.0))
    ]
    waits = pd.DataFrame(rows, columns=["kind", "outcome", "bin", "most_ms", "operations"])
    found = Outcomes(waits=waits, keys=None, rejected={}, made={})
    assert found.slowest["kind"] == "transfer"
    assert outcome_tiles(found)[-1].note == "of transfer, which waits longest"
