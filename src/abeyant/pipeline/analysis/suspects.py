"""Suspects: who or what an incident is put down to, by stated rules, each with its evidence and its confidence.

An incident with no suspect has no row: a log without evidence names nobody.

`silent_broker`
    A broker stopped fetching. Its fetcher sent no request to a leader for `SILENT_MS` or more, between the end of one
    fetch and the start of the next (or the log's end), and the silence overlaps the incident. A fetch that waits is not
    silence. Where a broker's own log is silent too, every follower seems silent there: then that broker is the suspect.
    Confidence: 0.6 for silence at one leader, 0.8 at several, and 0.15 more where its own log is silent too.
    Leaders and followers are told apart by `client_id` (`broker-3-fetcher-0`); the id of the broker that wrote a log is
    the only one that never fetches from it.

The rules read `Activity`, counts by second near the incidents, so they cost little however long the log is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa

from abeyant.pipeline.analysis.activity import Activity, Incident
from abeyant.pipeline.schemas import SUSPECTS
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = ["SILENT_MS", "Suspect", "find_suspects", "suspect_rows"]

SILENT_MS: Final = 1500

_FETCHER: Final = re.compile(r"broker-(\d+)-fetcher-\d+$")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Suspect:
    """Who or what an incident is put down to: a row of the table `suspects` (`schemas.SUSPECTS`)."""

    incident: int
    """The incident's number, from 1, in the order of the table `incidents`: by first start, then kind."""
    suspect: str
    """`broker 2`, `group payments`, `client app-b`."""
    kind: str
    """The rule that named it: `silent_broker`, ..."""
    evidence: str
    """One sentence: what the log shows, when and how long."""
    confidence: float
    """From 0 to 1, by the rule."""
    first: datetime
    """When what it is suspected of began, and when that ended."""
    last: datetime


class _Silence(NamedTuple):
    instance: str
    replica: int
    first_us: int
    last_us: int


def find_suspects(incidents: Iterable[Incident], activity: Sequence[Activity], end_us: int) -> list[Suspect]:
    """Return the suspects of each incident, the likeliest first; `end_us` is the end of the log.

    O(n log n) in the rows of activity, for each incident.
    """
    silences = _silences(activity, end_us)
    brokers = _broker_ids(activity)
    return [
        suspect
        for incident in incidents
        for suspect in sorted(_silent_brokers(incident, silences, brokers, activity), key=lambda s: -s.confidence)
    ]


def suspect_rows(suspects: Sequence[Suspect]) -> pa.Table:
    """Return the table `suspects`, in the order given."""
    schema = arrow_schema(SUSPECTS)
    return pa.table({name: [getattr(one, name) for one in suspects] for name in schema.names}, schema)


def _silences(activity: Iterable[Activity], end_us: int) -> list[_Silence]:
    """Return the times in which a follower sent no fetch to a leader."""
    seconds: dict[tuple[str, int], list[Activity]] = defaultdict(list)
    for row in activity:
        replica = _replica(row)
        if replica is not None:
            seconds[row.instance, replica].append(row)
    found = []
    for (instance, replica), rows in seconds.items():
        rows.sort(key=lambda row: row.first_us)
        times = [(row.last_us, after.first_us) for row, after in pairwise(rows)]
        # What waits when the log ends is not in the log: allow it a second turn.
        times.append((rows[-1].last_us, end_us - SILENT_MS * 1000))
        reached = 0
        for began, ended in times:
            reached = max(reached, began)
            if ended - reached >= SILENT_MS * 1000:
                found.append(_Silence(instance, replica, reached, ended))
    return found


def _silent_brokers(
    incident: Incident, silences: Iterable[_Silence], brokers: Mapping[str, int], activity: Iterable[Activity]
) -> list[Suspect]:
    """Apply the rule `silent_broker`."""
    during = [one for one in silences if one.first_us < incident.last_us and one.last_us > incident.first_us]
    began: dict[str, set[int]] = defaultdict(set)
    for row in activity:
        began[row.instance].add(row.second)

    def is_silent(instance: str | None, one: _Silence) -> bool:
        """Return whether nothing started in a log during the silence, but in its first and last second."""
        inside = range(one.first_us // 1_000_000 + 1, one.last_us // 1_000_000)
        return instance in began and bool(inside) and began[instance].isdisjoint(inside)

    logs = {broker: instance for instance, broker in brokers.items()}
    by_broker: dict[int, list[_Silence]] = defaultdict(list)
    for one in during:
        # To a broker that stands still all followers seem silent: that tells of itself, not of them.
        if not is_silent(one.instance, one):
            by_broker[one.replica].append(one)
    return [
        _silent_broker(incident, broker, mine, is_silent=all(is_silent(logs.get(broker), one) for one in mine))
        for broker, mine in by_broker.items()
    ]


def _silent_broker(incident: Incident, broker: int, silences: Sequence[_Silence], *, is_silent: bool) -> Suspect:
    leaders = sorted({one.instance for one in silences})
    first, last = min(one.first_us for one in silences), max(one.last_us for one in silences)
    seconds = (last - first) / 1_000_000
    also = "; its own log is silent too" if is_silent else ""
    return Suspect(
        incident.number,
        f"broker {broker}",
        "silent_broker",
        f"broker {broker} stopped fetching at {_time(first):%H:%M:%S}: silent for {seconds:.1f} s at "
        f"{' and '.join(leaders)}, while {incident.operations:,} {incident.kind} waited{also}",
        round((0.6 if len(leaders) == 1 else 0.8) + (0.15 if is_silent else 0), 2),
        _time(first),
        _time(last),
    )


def _broker_ids(activity: Iterable[Activity]) -> dict[str, int]:
    """Return the broker that wrote each log: the only one that fetches elsewhere, and never from it."""
    followers: dict[str, set[int]] = defaultdict(set)
    for row in activity:
        replica = _replica(row)
        if replica is not None:
            followers[row.instance].add(replica)
    everyone = set().union(*followers.values())
    own = {instance: everyone - there for instance, there in followers.items()}
    return {instance: ids.pop() for instance, ids in own.items() if len(ids) == 1}


def _replica(row: Activity) -> int | None:
    """Return the id of the follower that fetched."""
    fetcher = _FETCHER.match(row.client_id or "") if row.kind == "FETCH_FOLLOWER" else None
    return int(fetcher[1]) if fetcher else None


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
