"""The rules that name suspects, each against a few seconds of activity that only its cause explains."""

from __future__ import annotations

from collections.abc import Iterator

from abeyant.pipeline.analysis.activity import Activity, Incident
from abeyant.pipeline.analysis.suspects import find_suspects

END_S = 100
INCIDENT = Incident(1, "PRODUCE", 40_000_000, 50_000_000, 20, 5, ["b1", "b2"], ["orders-0"])


def fetches(leader: int, follower: int, silent: range = range(0), end: int = END_S) -> Iterator[Activity]:
    """A follower that fetches all the time, but in some seconds."""
    for second in range(end):
        if second not in silent:
            start = second * 1_000_000
            client = f"broker-{follower}-fetcher-0"
            yield Activity(f"b{leader}", "FETCH_FOLLOWER", client, 0, second, 2, 1, start, start + 990_000, 500_000)


def cluster(frozen: int | None, silent: range = range(40, 48), end: int = END_S) -> list[Activity]:
    """Three brokers that follow each other; one stands still, and its own log with it."""
    rows: list[Activity] = []
    for leader in (1, 2, 3):
        for follower in {1, 2, 3} - {leader}:
            rows += fetches(leader, follower, silent if frozen in (leader, follower) else range(0), end)
    return rows


def test_a_broker_that_stands_still_is_named_once() -> None:
    (suspect,) = find_suspects([INCIDENT], cluster(frozen=3), END_S * 1_000_000)
    assert (suspect.incident, suspect.suspect, suspect.kind) == (1, "broker 3", "silent_broker")
    assert suspect.confidence == 0.95
    assert suspect.evidence == (
        "broker 3 stopped fetching at 00:00:39: silent for 8.0 s at b1 and b2, while 20 PRODUCE waited; "
        "its own log is silent too"
    )


def test_a_follower_that_leaves_one_leader_alone_is_less_certain() -> None:
    rows = [row for row in cluster(None) if (row.instance, row.client_id) != ("b1", "broker-2-fetcher-0")]
    rows += fetches(1, 2, silent=range(41, 49))
    (suspect,) = find_suspects([INCIDENT], rows, END_S * 1_000_000)
    assert (suspect.suspect, suspect.confidence) == ("broker 2", 0.6)


def test_a_broker_that_never_comes_back_is_named() -> None:
    rows = [row for row in cluster(None) if row.second < 41 or ("2" not in row.instance + (row.client_id or ""))]
    (suspect,) = find_suspects([INCIDENT], rows, END_S * 1_000_000)
    assert (suspect.suspect, suspect.confidence) == ("broker 2", 0.95)


def test_nobody_is_named_where_nobody_was_silent() -> None:
    assert find_suspects([INCIDENT], cluster(None), END_S * 1_000_000) == []
    assert find_suspects([INCIDENT], cluster(3, silent=range(60, 70)), END_S * 1_000_000) == [], "another time"
    assert find_suspects([INCIDENT], cluster(None, end=49), 49_000_000) == [], "the end of the log is no silence"
    assert find_suspects([INCIDENT], [], END_S * 1_000_000) == []
