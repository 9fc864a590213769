"""How brokers behaved as followers near incidents: when they did not fetch, and how slowly they did.

Followers are known by `client_id` (`broker-3-fetcher-0`); the id of the broker that wrote a log is the only one that
fetches elsewhere and never from it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.activity import Activity, activity_rows

__all__ = [
    "SILENT_MS",
    "Pace",
    "Silence",
    "broker_ids",
    "fetch_paces",
    "follower_pairs",
    "followers",
    "replica_of",
    "silences",
]

SILENT_MS: Final = 1500

_FETCHER: Final = re.compile(r"broker-(\d+)-fetcher-\d+$")


class Silence(NamedTuple):
    """A time in which a follower sent no fetch to a leader."""

    instance: str
    """The leader's log."""
    replica: int
    first_us: int
    last_us: int


class Pace(NamedTuple):
    """How long a follower took from the end of a fetch to its next one, on average, in µs: then, and usually."""

    gap_us: float
    usual_us: float
    fetches: int


def followers(activity: pa.Table) -> Iterator[Activity]:
    """Yield the fetches of followers among `ACTIVITY`, in its order."""
    return activity_rows(activity.filter(pc.equal(activity["kind"], "FETCH_FOLLOWER")))


def silences(activity: Iterable[Activity], end_us: int) -> list[Silence]:
    """Return the times of `SILENT_MS` or more in which a follower sent no fetch to a leader, and none was waiting.

    `activity` is in order of time.
    """
    found = []
    reached: dict[tuple[str, int], int] = {}
    for row in activity:
        if (replica := _follower(row)) is not None:
            pair = row.instance, replica
            if row.first_us - reached.get(pair, row.first_us) >= SILENT_MS * 1000:
                found.append(Silence(*pair, reached[pair], row.first_us))
            reached[pair] = max(reached.get(pair, row.last_us), row.last_us)
    # What waits when the log ends is not in the log: allow it a second turn.
    allowed = end_us - SILENT_MS * 1000
    return found + [Silence(*pair, at, allowed) for pair, at in reached.items() if allowed - at >= SILENT_MS * 1000]


def fetch_paces(
    activity: Iterable[Activity], during: Collection[int], calm: Collection[int]
) -> dict[tuple[str, int], Pace]:
    """Return the pace of each (leader's log, follower) that fetched in both of two sets of seconds."""
    paces = {}
    for pair, rows in _by_follower(activity).items():
        gaps = []
        for seconds in (during, calm):
            mine = [row for row in rows if row.second in seconds]
            fetches = sum(row.operations for row in mine)
            # A second in which nothing started has no share: a follower that is silent is not slow.
            elapsed_us = 1_000_000 * len({row.second for row in mine})
            busy_us = sum(row.busy_us for row in mine)
            gaps.append((max(elapsed_us - busy_us, 0) / fetches if fetches else 0.0, fetches))
        (gap_us, fetches), (usual_us, usually) = gaps
        if fetches and usually:
            paces[pair] = Pace(gap_us, usual_us, fetches)
    return paces


def broker_ids(activity: Iterable[Activity]) -> dict[str, int]:
    """Return the broker that wrote each log."""
    fetching: dict[str, set[int]] = defaultdict(set)
    for row in activity:
        if (replica := _follower(row)) is not None:
            fetching[row.instance].add(replica)
    everyone = set().union(*fetching.values())
    own = {instance: everyone - there for instance, there in fetching.items()}
    return {instance: ids.pop() for instance, ids in own.items() if len(ids) == 1}


def follower_pairs(activity: Iterable[Activity]) -> Collection[tuple[str, int]]:
    """Return each (leader's log, follower) that fetched."""
    return _by_follower(activity).keys()


@lru_cache(1024)
def replica_of(client_id: str | None) -> int | None:
    """Return the broker whose fetcher has this client id, None where it is no follower's."""
    fetcher = _FETCHER.match(client_id or "")
    return int(fetcher[1]) if fetcher else None


def _by_follower(activity: Iterable[Activity]) -> Mapping[tuple[str, int], list[Activity]]:
    found: dict[tuple[str, int], list[Activity]] = defaultdict(list)
    for row in activity:
        if (replica := _follower(row)) is not None:
            found[row.instance, replica].append(row)
    return found


def _follower(row: Activity) -> int | None:
    return replica_of(row.client_id) if row.kind == "FETCH_FOLLOWER" else None
