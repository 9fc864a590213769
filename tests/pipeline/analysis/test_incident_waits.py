"""Which operations are kept of the worst incidents, beside a plain loop."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from abeyant.pipeline.analysis.activity import Incident
from abeyant.pipeline.analysis.incident_waits import (
    FOUND,
    MOST_INCIDENTS,
    MOST_WAITS,
    incident_waits,
    waits_during,
    worst,
)


def incident(number: int, first_s: int, last_s: int, expired: int = 0, trouble: str = "waited") -> Incident:
    return Incident(
        number, "PRODUCE", first_s * 1_000_000, last_s * 1_000_000, 9, expired, ["b1"], ["orders-7"], trouble
    )


def test_it_keeps_what_waited_during_each_incident_of_its_kind_first() -> None:
    chance = random.Random(3)
    rows: list[dict[str, Any]] = [
        {
            "instance": chance.choice(["b1", "b2"]),
            "kind": chance.choice(["PRODUCE", "FETCH_CONSUMER", None]),
            "start_us": None if chance.random() < 0.05 else chance.randrange(0, 900_000_000),
            "wait_us": chance.choice([0, chance.randrange(1, 30_000_000)]),
            "outcome": chance.choice(["expired", "completed"]),
            "keys": chance.choice([["orders-1", "orders-7"], ["orders-1"], [], None]),
            "timeout_ms": chance.choice([None, 30_000]),
        }
        for _ in range(4_000)
    ]
    operations = pa.Table.from_pylist(rows)
    incidents = [incident(1, 100, 130), incident(2, 200, 880, expired=3)]  # of the second ten minutes are drawn
    batches = (operations.slice(at, 500) for at in range(0, 4_000, 500))
    parts = [part for batch in batches for part in waits_during(batch, incidents)]
    found = incident_waits(pa.concat_tables(parts)).to_pylist()
    for one in incidents:
        until = min(one.last_us, one.first_us + 600_000_000)
        waited = [
            row
            for row in rows
            if row["start_us"] is not None
            and row["wait_us"] > 0
            and row["start_us"] <= until
            and row["start_us"] + row["wait_us"] > one.first_us
        ]
        assert (len(waited) > MOST_WAITS) == (one.number == 2), "one is cut, the other is not"
        waited.sort(key=lambda row: (row["kind"] != "PRODUCE", -row["wait_us"], row["start_us"]))
        mine = [row for row in found if row["incident"] == one.number]
        assert [(row["kind"], row["waited_ms"], row["outcome"], row["timeout_ms"]) for row in mine] == [
            (row["kind"], row["wait_us"] / 1000, row["outcome"], row["timeout_ms"]) for row in waited[:MOST_WAITS]
        ]
        assert [row["key"] for row in mine] == [
            "orders-7" if "orders-7" in (row["keys"] or ()) else (row["keys"] or [None])[0]
            for row in waited[:MOST_WAITS]
        ]


_NOTHING = pa.table(
    {name: FOUND.empty_table()[name] for name in ("instance", "kind", "outcome", "start_us", "wait_us", "timeout_ms")}
    | {"keys": pa.array([], pa.list_(pa.string()))}
)


def test_the_worst_come_first_and_what_did_not_wait_is_not_drawn() -> None:
    incidents = [incident(number, 10, 20, expired=number % 5) for number in range(1, 11)]
    incidents.append(incident(11, 10, 20, expired=99, trouble="throttled"))
    assert [one.number for one in worst(incidents)] == [4, 9, 3, 8, 2, 7]
    assert len(worst(incidents)) == MOST_INCIDENTS
    assert list(waits_during(_NOTHING, incidents)) == []
    assert incident_waits(FOUND.empty_table()).num_rows == 0
