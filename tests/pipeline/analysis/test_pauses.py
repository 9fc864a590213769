"""Consumers that fetch seldom: what counts as a pause, and that it does not depend on how a log is cut."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from abeyant.pipeline.analysis.pauses import READING, joined_reading, pauses, reading, unfinished
from abeyant.pipeline.analysis.watching import KEPT_S, IncidentWatch, Notice
from pipeline.analysis.test_recordings import OPERATIONS, examined_operations
from pipeline.analysis.test_watching import batch, standing

SECOND = 1_000_000


def fetch(
    start_s: float, wait_ms: int = 0, client: str = "report", instance: str = "b1", **more: Any
) -> dict[str, Any]:
    fixed = {"instance": instance, "kind": "FETCH_CONSUMER", "client_id": client, "outcome": "completed"}
    times = {"start_us": round(start_s * SECOND), "wait_us": wait_ms * 1000, "local_ms": 0.2, "throttle_ms": 0.0}
    return {**fixed, **times, "send_ms": 0.1, "keys": ["clicks-0"], "error_code": 0, "size_bytes": 900} | more


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, OPERATIONS)


def eager(client: str, seconds: int, instance: str = "b1") -> list[dict[str, Any]]:
    """A consumer that waits at the broker for half of each second, and fetches again at once."""
    return [fetch(second + half, 490, client, instance) for second in range(seconds) for half in (0, 0.5)]


def seldom(times: int, every_s: float = 3, **more: Any) -> list[dict[str, Any]]:
    return [fetch(20 + every_s * turn, **more) for turn in range(times)]


def named(rows: list[dict[str, Any]]) -> list[tuple[str, int, list[tuple[str, str, float]]]]:
    _, incidents, suspects = examined_operations(table(rows))
    return [
        (one.trouble, one.operations, [(s.kind, s.suspect, s.confidence) for s in suspects if s.incident == one.number])
        for one in incidents
    ]


def test_a_consumer_that_polls_seldom_is_named() -> None:
    others = [*eager("app-a", 60), *eager("app-b", 60, "b2")]
    assert named([*others, *seldom(6)]) == [("paused", 5, [("seldom_polls", "client report", 0.75)])]
    assert named(seldom(6)) == [("paused", 5, [("seldom_polls", "client report", 0.55)])]
    assert named([*others, *seldom(6, every_s=50)]) == [("paused", 5, [("seldom_polls", "client report", 0.75)])]


@pytest.mark.parametrize(
    "rows",
    [
        eager("report", 60),
        seldom(5),
        seldom(20, every_s=0.9),
        seldom(20, every_s=90),
        seldom(20, wait_ms=400),  # it had to wait: there was nothing that it was late for
        seldom(20, size_bytes=0),
        seldom(20, error_code=6),
        seldom(20, kind="FETCH_FOLLOWER"),
        seldom(20, client_id=None),
        [one for turn in range(20) for one in [fetch(3 * turn, client=f"app-{turn}")]],
        [row | {"instance": f"b{number % 3}"} for number, row in enumerate(seldom(12, every_s=1.1))],
    ],
    ids=["eager", "few", "short", "rare", "waited", "empty", "refused", "follower", "unknown", "many", "in-turn"],
)
def test_nobody_is_named_for_less(rows: list[dict[str, Any]]) -> None:
    others = [*eager("app-a", 60), *eager("app-b", 60, "b2")]
    found = named([*others, *rows])
    assert [one for one in found if one[0] == "paused"] == ([] if rows[0]["instance"] == "b1" else found)


def test_a_group_that_rebalanced_is_named_and_not_its_member() -> None:
    join: dict[str, Any] = {"kind": "JOIN_GROUP", "keys": ["join-reports"], "size_bytes": None}
    joins = [fetch(21 + 3 * turn, 50, **join) for turn in range(5)]
    found = named([*eager("app-a", 60), *seldom(6), *joins])
    assert ("paused", 5, [("rebalance", "group reports", 0.7)]) in found


def test_runs_join_to_the_same_however_a_log_is_cut() -> None:
    chance = random.Random(7)
    for _ in range(60):
        rows = [
            fetch(chance.uniform(0, 90), chance.choice((0, 0, 300)), chance.choice("ab"), chance.choice(("b1", "b2")))
            for _ in range(chance.randrange(1, 80))
        ]
        whole = reading(table(rows))
        parts: list[list[dict[str, Any]]] = [[], [], []]
        for row in rows:
            chance.choice(parts).append(row)
        first, second, third = (reading(table(part)) for part in parts)
        some = joined_reading(pa.concat_tables([third, first]))
        assert joined_reading(pa.concat_tables([some, second])).equals(whole)
    assert not pauses(joined_reading(READING.empty_table())).num_rows
    assert not unfinished(READING.empty_table(), 0).num_rows


@pytest.mark.parametrize("every_s", [3, 45])
def test_a_watch_says_the_same_for_hours(every_s: int) -> None:
    seconds = 3 * KEPT_S
    rows = seldom(round(seconds / every_s), every_s=every_s)
    watch, told = IncidentWatch(), list[Notice]()
    for begin in range(0, seconds + 100, 100):
        some = [row for row in rows if begin <= row["start_us"] / SECOND < begin + 100]
        watch.add(table([*some, fetch(begin, 10, "app-a")]))
        told += watch.look()
        watch = IncidentWatch.restored(watch.packed())
    told += watch.look(idle_s=200)
    more = [fetch(begin, 10, "app-a") for begin in range(0, seconds + 100, 100)]
    (found,), (expected,) = standing(told), batch(table([*rows, *more]))
    assert found["operations"] == expected["operations"] == len(rows) - 1
    assert found["first"] == expected["first"]
    assert [notice["event"] for notice in told][:1] == ["begins"]
    assert {one["suspect"] for one in found["suspects"]} == {"client report"}
    assert watch._reading.num_rows < len(rows) + 10
