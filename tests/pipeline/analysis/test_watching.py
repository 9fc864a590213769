"""Watching a log that grows: what is told is what an analysis of the log so far finds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from abeyant.pipeline.analysis.watching import IncidentWatch, Notice
from abeyant.pipeline.request_log.growing import GROWING
from pipeline.analysis.test_recordings import NAMES, RECORDINGS, examined_operations, operations
from seeds import with_slow

PIECES = 23


def pieces(table: pa.Table) -> list[pa.Table]:
    """Cut a recording by when its lines were written."""
    ends = table["start_us"].to_numpy() + table["wait_us"].to_numpy()
    order = np.argsort(ends, kind="stable")
    return [table.take(pa.array(part)) for part in np.array_split(order, PIECES)]


def batch(table: pa.Table) -> list[dict[str, Any]]:
    """Return the incidents of an analysis, each with its suspects, as notices have them."""
    rows, incidents, suspects = examined_operations(table)
    found = []
    for row, incident in zip(rows.to_pylist(), incidents, strict=True):
        row |= {name: row[name].isoformat() for name in ("first", "last")}
        mine = [one for one in suspects if one.incident == incident.number]
        row["suspects"] = [
            {name: getattr(one, name) for name in ("suspect", "kind", "evidence", "confidence")}
            | {name: getattr(one, name).isoformat() for name in ("first", "last")}
            for one in mine
        ]
        found.append(row)
    return found


def standing(notices: list[Notice]) -> list[dict[str, Any]]:
    """Return what was told last of each incident that was not withdrawn, in the order of an analysis."""
    last = {notice["incident"]: notice for notice in notices}
    rows = [notice for notice in last.values() if notice["event"] != "withdrawn"]
    rows.sort(key=lambda row: (row["first"], row["kind"], row["trouble"]))
    return [{name: value for name, value in row.items() if name not in ("event", "incident")} for row in rows]


@pytest.mark.parametrize("name", with_slow(NAMES, set(NAMES) - {"follower-frozen", "group-storm", "clean-steady"}))
def test_what_is_told_in_the_end_is_what_an_analysis_finds(name: str) -> None:
    table = operations(RECORDINGS / name)
    watch, told = IncidentWatch(), list[Notice]()
    for piece in pieces(table):
        watch.add(piece)
        told += watch.look()
        watch = IncidentWatch.restored(watch.packed())  # killed, and begun again
    told += watch.look(idle_s=70)
    assert standing(told) == batch(table)
    assert watch.look(idle_s=80) == []
    last = {notice["incident"]: notice["event"] for notice in told}
    assert set(last.values()) <= {"ends", "changed", "withdrawn"}, "nothing is left open"
    json.dumps(told)


@pytest.mark.parametrize("name", with_slow(["follower-frozen", "group-storm", "quota"], ["follower-frozen", "quota"]))
def test_at_every_moment_those_under_way_are_what_an_analysis_finds(name: str) -> None:
    table = operations(RECORDINGS / name)
    watch, told = IncidentWatch(), list[Notice]()
    so_far = GROWING.empty_table()
    for piece in pieces(table):
        watch.add(piece)
        told += watch.look()
        so_far = pa.concat_tables([so_far, piece.select(GROWING.names).cast(GROWING)])
        known = {(row["kind"], row["trouble"]) for row in standing(told)}
        assert known == {(row["kind"], row["trouble"]) for row in batch(so_far)}


def test_clients_that_suffer_in_the_same_millisecond_keep_their_order() -> None:
    start = 1_700_000_000_000_000

    def put(watch: IncidentWatch, rows: list[tuple[str, int, float]]) -> list[Notice]:
        constant = {"instance": "b1", "kind": "PRODUCE", "outcome": "completed", "wait_us": 0, "size_bytes": 10}
        constant |= {"error_code": 0, "local_ms": 0.1, "send_ms": 0.1, "keys": ["t-0"]}
        columns: dict[str, list[Any]] = {name: [value] * len(rows) for name, value in constant.items()}
        for name, column in zip(("client_id", "start_us", "throttle_ms"), zip(*rows, strict=True), strict=True):
            columns[name] = list(column)
        watch.add(pa.table({name: columns[name] for name in GROWING.names}, schema=GROWING))
        return watch.look()

    def healthy(second: int) -> list[tuple[str, int, float]]:
        return [(f"app-{n}", start + second * 1_000_000 + n * 37_000, 0.0) for n in range(200)]

    watch = IncidentWatch()
    throttled = [(f"etl-{n % 5}", start + (20 + n // 5) * 1_000_000, 3000.0) for n in range(15)]
    notices = put(watch, throttled + healthy(0))
    for second in range(41, 105, 8):
        notices += put(watch, healthy(second))
    assert [notice["event"] for notice in notices] == ["begins", "ends"]
    assert [suspect["suspect"] for suspect in notices[0]["suspects"]] == [f"client etl-{n}" for n in range(5)]
