"""Recordings of genuine Kafka with one planted cause each: who is named, and that nobody else is.

`scripts/record_causes` made them; `planted.json` says what was planted, when, and who has to be named.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from abeyant.pipeline.analysis.activity import Incident, activity_of, incidents_of
from abeyant.pipeline.analysis.incidents import incident_rows, long_waits, paused, suffering
from abeyant.pipeline.analysis.pauses import joined_reading, reading
from abeyant.pipeline.analysis.ranked import count_waits, known_groups, rank
from abeyant.pipeline.analysis.suspects import Suspect, find_suspects
from abeyant.pipeline.request_log.line import KNOWN_TOPICS, LineParser
from abeyant.pipeline.request_log.operation import DELAYABLE, operation
from pipeline.request_log.kafka_lines import names_told
from seeds import with_slow

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
NAMES = sorted(folder.name for folder in RECORDINGS.iterdir())
RULES = {
    "broker-killed": "silent_broker",
    "disk-slowed": "slow_disk",
    "follower-frozen": "silent_broker",
    "group-storm": "rebalance",
    "huge-batches": "huge_batches",
    "impatient-client": "lone_client",
    "leader-frozen": "silent_broker",
    "leaders-moved": "moved_leader",
    "member-frozen": "rebalance",
    "network-delayed": "slow_network",
    "quota": "quota",
    "slow-reader": "seldom_polls",
}
OPERATIONS = pa.schema(
    {
        **dict.fromkeys(("instance", "kind", "outcome", "client_id"), pa.string()),
        **dict.fromkeys(("start_us", "wait_us", "size_bytes", "error_code"), pa.int64()),
        **dict.fromkeys(("local_ms", "send_ms", "throttle_ms"), pa.float64()),
        "keys": pa.list_(pa.string()),
    }
)


def operations(folder: Path) -> pa.Table:
    """Return the operations of a recording as the analysis sees them, without Spark."""
    parser = LineParser()
    lines = [
        (file.parent.name, line)
        for file in sorted(folder.glob("*/kafka-request.log.gz"))
        for line in gzip.decompress(file.read_bytes()).splitlines()
    ]
    names = dict(KNOWN_TOPICS) | names_told(line for _, line in lines)
    rows: list[dict[str, Any]] = []
    for instance, line in lines:
        request = parser.parse(line)
        if request.api in DELAYABLE or request.remote_ms > 0:
            found = operation(request, names)
            columns = {name: getattr(found, name, getattr(request, name, None)) for name in OPERATIONS.names}
            rows.append(columns | {"instance": instance, "keys": [key for key, _ in found.watches]})
    return pa.Table.from_pylist(rows, OPERATIONS)


def examined(folder: Path) -> tuple[list[Incident], list[Suspect]]:
    """Return the incidents of a recording and their suspects."""
    return examined_operations(operations(folder))[1:]


def examined_operations(table: pa.Table) -> tuple[pa.Table, list[Incident], list[Suspect]]:
    """Return the table of incidents of operations, the same as rows, and their suspects."""
    long = long_waits(rank(count_waits(known_groups(table, ["kind"]), ["kind"]), ["kind"]))
    long_us = dict(zip(*(long[name].to_pylist() for name in ("kind", "long_us")), strict=True))
    late = paused(joined_reading(reading(table)))
    rows = incident_rows(pa.concat_tables([suffering(table, long_us), late]))
    rows = rows.sort_by([(name, "ascending") for name in ("first", "kind", "trouble")])
    found = incidents_of(rows)
    ends = table["start_us"].to_numpy() + table["wait_us"].to_numpy()
    return rows, found, find_suspects(found, activity_of(table, found), int(ends.max()))


QUICK = {"clean-busy", "follower-frozen", "group-storm", "quota", "disk-slowed"}


@pytest.mark.parametrize("name", with_slow(NAMES, set(NAMES) - QUICK))
def test_who_is_named(name: str) -> None:
    planted = json.loads((RECORDINGS / name / "planted.json").read_text())
    incidents, suspects = examined(RECORDINGS / name)
    named = {one.suspect for one in suspects}
    if planted["suspect"] is None:
        assert not named, incidents
    else:
        assert named == {planted["suspect"]}, incidents
        likeliest = {one.incident: one for one in sorted(suspects, key=lambda one: one.confidence)}
        assert RULES[name] in {one.kind for one in likeliest.values()}


def test_there_are_twelve_causes_and_three_recordings_without_one() -> None:
    assert {name for name in NAMES if not name.startswith("clean-")} == RULES.keys()
    assert len(NAMES) == 15


def reader(slow_ms: list[float], others_ms: float = 0.2) -> pa.Table:
    """Return the fetches of three consumers, of which one reads some responses slowly."""
    rows = []
    for client, sends in (("report", slow_ms), ("app-a", []), ("app-b", [])):
        for second in range(60):
            send = sends[second - 20] if 20 <= second < 20 + len(sends) else others_ms if 20 <= second < 40 else 0.2
            fixed = {"instance": "b1", "kind": "FETCH_CONSUMER", "client_id": client, "outcome": "completed"}
            times = {"start_us": second * 1_000_000, "wait_us": 5_000, "local_ms": 0.2, "throttle_ms": 0.0}
            quick = {**fixed, **times, "send_ms": 0.2, "keys": ["clicks-0"], "error_code": 0, "size_bytes": 900_000}
            rows += [quick] * 9 + [{**quick, "send_ms": send}]
    return pa.Table.from_pylist(rows, OPERATIONS)


@pytest.mark.parametrize("slow_ms", [[400.0] * 12, [120.0] * 20, [5000.0, 0.2, 5000.0, 0.2, 4000.0]])
def test_a_client_that_reads_some_responses_slowly_is_named(slow_ms: list[float]) -> None:
    _, incidents, suspects = examined_operations(reader(slow_ms))
    assert [one.trouble for one in incidents] == ["sent"]
    assert [(one.suspect, one.kind) for one in suspects] == [("client report", "slow_reader")]


def test_a_few_slow_responses_or_a_slow_network_are_no_slow_reader() -> None:
    assert not examined_operations(reader([400.0] * 5))[1]
    _, incidents, suspects = examined_operations(reader([400.0] * 12, others_ms=300.0))
    assert [one.trouble for one in incidents] == ["sent"]
    assert {one.kind for one in suspects} <= {"slow_sending"}
