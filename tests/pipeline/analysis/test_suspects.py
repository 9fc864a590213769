"""The rules that name suspects, each against a few seconds of activity that only its cause explains."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from abeyant.pipeline.analysis import suspects
from abeyant.pipeline.analysis.activity import ACTIVITY, Activity, Incident, activity_rows
from abeyant.pipeline.analysis.followers import SILENT_MS, Fetching, Gap, Pair, Silence, replica_of, silences
from abeyant.pipeline.analysis.suspects import Suspect

END_S = 100
CLUSTER = ("b1", "b2", "b3")


def find(incidents: list[Incident], rows: Sequence[Activity], end_s: int = END_S) -> list[Suspect]:
    return suspects.find_suspects(incidents, as_table(rows), end_s * 1_000_000)


def as_table(rows: Sequence[Activity]) -> pa.Table:
    ordered = sorted(rows, key=lambda row: (row.second, row.first_us))
    return pa.table({name: [getattr(row, name) for row in ordered] for name in ACTIVITY.names}, ACTIVITY)


def activity(
    instance: str, kind: str, second: int, client: str | None = "app", operations: int = 10, **more: Any
) -> Activity:
    """What a client did in a second, at ease: `more` says what was otherwise."""
    start = second * 1_000_000
    usual = Activity(
        *(instance, kind, client, None, 0, second, operations, 0),
        *(operations * 1_000, operations * 200, operations * 100, start, start + 990_000, 1_000, 0, 300),
    )
    return usual._replace(**more)


def usual(kind: str = "PRODUCE", seconds: range = range(END_S), clients: int = 3) -> list[Activity]:
    """What several clients do at several brokers, but for some seconds nothing is out of the ordinary."""
    return [
        activity(instance, kind, second, f"app-{client}")
        for instance in CLUSTER
        for second in seconds
        for client in range(clients)
    ]


INCIDENT = Incident(1, "PRODUCE", 40_000_000, 50_000_000, 20, 5, ["b1", "b2"], ["orders-0"])


def fetches(leader: int, follower: int, silent: range = range(0), end: int = END_S) -> Iterator[Activity]:
    """A follower that fetches all the time, but in some seconds."""
    for second in range(end):
        if second not in silent:
            start = second * 1_000_000
            client = f"broker-{follower}-fetcher-0"
            yield activity(f"b{leader}", "FETCH_FOLLOWER", second, client, 2, busy_us=990_000, last_us=start + 990_000)


def cluster(frozen: int | None, silent: range = range(40, 48), end: int = END_S) -> list[Activity]:
    """Three brokers that follow each other; one stands still, and its own log with it."""
    rows: list[Activity] = []
    for leader in (1, 2, 3):
        for follower in {1, 2, 3} - {leader}:
            rows += fetches(leader, follower, silent if frozen in (leader, follower) else range(0), end)
    return rows


def test_a_broker_that_stands_still_is_named_once() -> None:
    (suspect,) = find([INCIDENT], cluster(frozen=3))
    assert (suspect.incident, suspect.suspect, suspect.kind) == (1, "broker 3", "silent_broker")
    assert suspect.confidence == 0.95
    assert suspect.evidence == (
        "broker 3 stopped fetching at 00:00:39: silent for 8.0 s at b1 and b2, while 20 PRODUCE waited; "
        "its own log is silent too"
    )


def test_a_broker_whose_log_has_another_number_is_named_by_both() -> None:
    """Pods are counted from 0, brokers often from 1."""
    pods = {"b1": "kafka-0", "b2": "kafka-1", "b3": "kafka-2"}
    rows = [row._replace(instance=pods[row.instance]) for row in cluster(frozen=3)]
    (suspect,) = find([INCIDENT._replace(instances=["kafka-0", "kafka-1"])], rows)
    assert suspect.suspect == "broker 3"
    assert suspect.evidence.startswith("broker 3 (its log is kafka-2) stopped fetching at 00:00:39: silent for 8.0 s")


def test_a_follower_that_leaves_one_leader_alone_is_less_certain() -> None:
    rows = [row for row in cluster(None) if (row.instance, row.client_id) != ("b1", "broker-2-fetcher-0")]
    rows += fetches(1, 2, silent=range(41, 49))
    (suspect,) = find([INCIDENT], rows)
    assert (suspect.suspect, suspect.confidence) == ("broker 2", 0.6)


def test_a_broker_that_never_comes_back_is_named() -> None:
    rows = [row for row in cluster(None) if row.second < 41 or ("2" not in row.instance + (row.client_id or ""))]
    (suspect,) = find([INCIDENT], rows)
    assert (suspect.suspect, suspect.confidence) == ("broker 2", 0.95)


def test_nobody_is_named_where_nobody_was_silent() -> None:
    assert find([INCIDENT], cluster(None)) == []
    assert find([INCIDENT], cluster(3, silent=range(60, 70))) == [], "another time"
    assert find([INCIDENT], cluster(None, end=49), 49) == [], "the end of the log is no silence"
    assert find([INCIDENT], []) == []


def named(rows: list[Activity], incident: Incident = INCIDENT) -> list[tuple[str, str, float]]:
    found = find([incident], rows)
    assert all(suspect.incident == incident.number and suspect.evidence for suspect in found)
    return [(suspect.kind, suspect.suspect, suspect.confidence) for suspect in found]


STRUCK = range(40, 51)
"""The seconds of INCIDENT."""


def paces(slow: list[tuple[int, int]], gap_us: int = 200_000) -> list[Activity]:
    """The fetches of three brokers, of which some pairs (leader, follower) have gaps during the incident."""
    return [
        row._replace(busy_us=1_000_000 - 5 * gap_us, operations=5)
        if row.second in STRUCK
        and any((row.instance, row.client_id) == (f"b{a}", f"broker-{b}-fetcher-0") for a, b in slow)
        else row._replace(operations=20)
        for row in cluster(None)
    ]


def test_a_follower_with_a_slow_disk_fetches_slowly_and_one_behind_a_slow_network_is_fetched_from_slowly() -> None:
    assert named(paces([(1, 2), (3, 2)])) == [("slow_follower", "broker 2", 0.6)]
    assert named(paces([(1, 2), (3, 2), (2, 1), (2, 3)])) == [("slow_network", "broker 2", 0.75)]
    assert named(paces([(1, 2)])) == [], "from one leader only: it is not the follower"
    every = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b]
    assert named(paces(every)) == [], "all are slow: the machine"
    assert named(paces([(1, 2), (3, 2)], gap_us=15_000)) == [], "that is not slow"


def test_a_slow_disk_makes_appends_slow_and_a_slow_broker_everything() -> None:
    fetches = usual("FETCH_CONSUMER")
    slow = [row for row in usual() if row.instance != "b2" or row.second not in STRUCK]
    slow += [activity("b2", "PRODUCE", second, local_us=10 * 60_000) for second in STRUCK]
    assert named([*slow, *fetches, *cluster(None)]) == [("slow_disk", "broker 2", 0.75)]
    assert named([*slow, *fetches]) == [("slow_disk", "b2", 0.75)], "without followers the log is all that is known"
    also = [row._replace(local_us=600_000) if row.instance == "b2" and row.second in STRUCK else row for row in fetches]
    assert named([*slow, *also]) == [("slow_broker", "b2", 0.5)]
    assert named([*usual(), *fetches]) == []


def test_slow_sending_is_the_network() -> None:
    rows = usual("FETCH_CONSUMER")
    slow = [row._replace(send_us=10 * 80_000) if row.instance == "b1" and row.second in STRUCK else row for row in rows]
    assert named(slow, INCIDENT._replace(kind="FETCH_CONSUMER", trouble="sent")) == [("slow_sending", "b1", 0.65)]
    assert named(rows, INCIDENT._replace(kind="FETCH_CONSUMER", trouble="sent")) == []


def test_a_client_that_does_not_read_is_named_and_not_the_network() -> None:
    rows, sent = usual("FETCH_CONSUMER"), INCIDENT._replace(kind="FETCH_CONSUMER", trouble="sent")
    slow = [activity("b1", "FETCH_CONSUMER", second, "report", send_us=10 * 300_000) for second in STRUCK]
    assert named([*rows, *slow], sent) == [("slow_reader", "client report", 0.75)]
    too = [row._replace(client_id="other report") for row in slow]
    assert ("slow_reader", "client report", 0.75) not in named([*rows, *slow, *too], sent), "two are no suspect"


def test_a_disk_that_blocks_fetching_is_named_once_and_no_follower_for_it() -> None:
    slow = [row for row in usual() if row.instance != "b3" or row.second not in STRUCK]
    slow += [activity("b3", "PRODUCE", second, local_us=10 * 900_000) for second in STRUCK]
    assert named([*slow, *cluster(3)]) == [("slow_disk", "broker 3", 0.9)], "its log goes on: it does not stand still"


def test_followers_that_all_leave_one_leader_are_not_named() -> None:
    rows = [row for row in cluster(None) if row.instance != "b1"]
    rows += [*fetches(1, 2, silent=STRUCK), *fetches(1, 3, silent=STRUCK)]
    assert named([*rows, *usual()]) == []


def test_a_client_over_its_quota_is_named() -> None:
    rows = [*usual(), *(activity("b1", "PRODUCE", second, "bulk", throttle_us=700_000) for second in STRUCK)]
    assert named(rows, INCIDENT._replace(trouble="throttled")) == [("quota", "client bulk", 0.9)]


def test_a_leader_that_moved_is_named_by_its_refusals() -> None:
    refused = activity("b3", "PRODUCE", 41, error_code=6, operations=4)
    assert named([*usual(), refused]) == [("moved_leader", "b3", 0.7)]
    assert named([*usual(), refused], INCIDENT._replace(trouble="refused")) == [("moved_leader", "b3", 0.85)]
    assert named([*usual(), refused._replace(second=70)]) == [], "later"
    assert named([*usual(), refused._replace(operations=2)]) == [], "too few"
    moved = activity("b3", "HEARTBEAT", 41, error_code=16)
    assert named([*usual(), moved], INCIDENT._replace(kind="HEARTBEAT")) == [("moved_coordinator", "b3", 0.7)]


def test_a_group_that_rebalanced_is_named() -> None:
    joins = [activity("b1", "JOIN_GROUP", second, operations=2, group="payments") for second in STRUCK]
    rows = [*usual(), *joins, activity("b1", "JOIN_GROUP", 45, operations=1, group="audit")]
    assert named(rows, INCIDENT._replace(kind="JOIN_GROUP", trouble="rebalanced")) == [
        ("rebalance", "group payments", 0.85)
    ]
    assert named(rows) == [], "a produce does not wait for a group"


def test_a_client_with_huge_batches_is_named() -> None:
    huge = [activity("b1", "PRODUCE", second, "bulk", size_bytes=6_000_000) for second in STRUCK]
    assert named([*usual(), *huge]) == [("huge_batches", "client bulk", 0.8)]
    always = [activity("b1", "PRODUCE", second, "bulk", size_bytes=6_000_000) for second in range(END_S)]
    assert named(always) == [], "that is usual there"


def test_a_client_that_alone_waits_is_named_if_nobody_else_is() -> None:
    rows = [*usual(), activity("b1", "PRODUCE", 44, "stuck", longest_us=4_000_000)]
    assert named(rows) == [("lone_client", "client stuck", 0.5)]
    assert named([*rows, activity("b2", "PRODUCE", 45, "stuck too", longest_us=300_000)]) == []
    hasty = activity("b1", "PRODUCE", 44, "hasty", expired=10)
    assert named([*usual(), hasty]) == [("lone_client", "client hasty", 0.5)], "its own time-out is too short"
    assert named([*rows, hasty]) == [], "two have trouble"
    frozen = [row for row in rows if row.second not in range(40, 48) or row.instance != "b3"]
    assert named([*frozen, *cluster(3)]) == [("silent_broker", "broker 3", 0.95)]


def repeated(table: pa.Table, times: int) -> pa.Table:
    """The same activity again and again, every `END_S`."""
    parts = []
    for number in range(times):
        later = table
        for name, step in (("second", END_S), ("first_us", END_S * 1_000_000), ("last_us", END_S * 1_000_000)):
            column = pc.add(later[name], number * step)
            later = later.set_column(later.column_names.index(name), name, column)
        parts.append(later)
    return pa.concat_tables(parts).combine_chunks()


@pytest.mark.slow
def test_memory_is_one_incident_and_a_few_columns_of_the_table() -> None:
    def peak(times: int) -> tuple[int, int]:
        step = END_S * 1_000_000
        found = [
            INCIDENT._replace(
                number=number + 1, first_us=INCIDENT.first_us + number * step, last_us=INCIDENT.last_us + number * step
            )
            for number in range(times)
        ]
        table = repeated(as_table([*usual(), *cluster(3)]), times)
        tracemalloc.start()
        named = suspects.find_suspects(found, table, times * step)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [(one.incident, one.suspect) for one in named] == [(number + 1, "broker 3") for number in range(times)]
        return memory, table.num_rows

    (some, rows), (more, more_rows) = peak(10), peak(40)
    assert more - some < 100 * (more_rows - rows), "bytes a row: made as a tuple each it would take several hundred"


def test_fetches_as_columns_are_what_they_are_row_by_row() -> None:
    random = Random(35)
    rows = [
        activity(
            f"b{leader}", random.choice(["FETCH_FOLLOWER", "PRODUCE"]), second, client, random.randint(1, 9)
        )._replace(busy_us=random.randint(0, 1_200_000), first_us=start, last_us=start + random.randint(0, 3_000_000))
        for second in range(END_S)
        for leader in range(1, 4)
        for client in ("broker-1-fetcher-0", "broker-2-fetcher-0", "broker-2-fetcher-1", "app", None)
        if random.random() < 0.4
        for start in [second * 1_000_000 + random.randint(0, 999_999)]
    ]
    table = as_table(rows)
    is_calm = np.array([second % 7 < 4 for second in table["second"].to_pylist()])
    fetching, ordered = Fetching(table, is_calm), list(activity_rows(table))
    assert len(silences(fetching, END_S * 1_000_000)) > 20
    assert silences(fetching, END_S * 1_000_000) == silent_by_row(ordered, END_S * 1_000_000)
    for seconds in (range(10, 40), range(3, 4), range(200, 210)):
        mine = [row for row in ordered if row.second in seconds]
        assert fetching.gaps(seconds) == gaps_by_row(mine)
        assert fetching.gaps(seconds, calm=True) == gaps_by_row([row for row in mine if row.second % 7 < 4])
        assert set(fetching.pairs_in(seconds)) == gaps_by_row(mine).keys()


def pair_of(row: Activity) -> Pair | None:
    replica = replica_of(row.client_id) if row.kind == "FETCH_FOLLOWER" else None
    return None if replica is None else (row.instance, replica)


def silent_by_row(rows: Sequence[Activity], end_us: int) -> list[Silence]:
    found, reached = list[Silence](), dict[Pair, int]()
    for row in rows:
        if (pair := pair_of(row)) is not None:
            if row.first_us - reached.get(pair, row.first_us) >= SILENT_MS * 1000:
                found.append(Silence(*pair, reached[pair], row.first_us))
            reached[pair] = max(reached.get(pair, row.last_us), row.last_us)
    allowed = end_us - SILENT_MS * 1000
    return found + [Silence(*pair, at, allowed) for pair, at in reached.items() if allowed - at >= SILENT_MS * 1000]


def gaps_by_row(rows: Sequence[Activity]) -> dict[Pair, Gap]:
    gaps = {}
    for pair in {pair for row in rows if (pair := pair_of(row)) is not None}:
        mine = [row for row in rows if pair_of(row) == pair]
        fetches, busy_us = sum(row.operations for row in mine), sum(row.busy_us for row in mine)
        gaps[pair] = Gap(max(1_000_000 * len({row.second for row in mine}) - busy_us, 0) / fetches, fetches)
    return gaps
