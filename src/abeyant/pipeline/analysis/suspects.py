"""Suspects: who or what an incident is put down to, by stated rules, each with its evidence and its confidence.

An incident with no suspect has no row: a log without evidence names nobody. *Usual* is what holds within a minute of
the incident, outside of every incident.

`silent_broker`
    A broker stopped fetching. Its fetcher sent no request to a leader for `SILENT_MS` or more, between the end of one
    fetch and the start of the next (or the log's end), and the silence overlaps the incident. A fetch that waits is not
    silence. Where all followers of a broker are silent at it, or its own log is, that is evidence against that
    broker, not them.
    Confidence: 0.6 for silence at one leader, 0.8 at several, and 0.15 more where its own log is silent too.
`slow_network`, `slow_follower`
    From the end of a fetch to the next one a follower took `SLOW_TIMES` as long as usual, and 20 ms at least. Where all
    that fetch from it are slow too, it is the broker's network (0.75), else the broker, its disk or its network (0.6).
    Where more than one broker is like that, none is named.
`slow_disk`, `slow_broker`
    A broker took `SLOW_TIMES` as long as usual to append produces, and 20 ms at least (0.75), huge batches not counted.
    Where its handling of fetches is as slow, it is not the disk but the broker as a whole (0.5). Where it stopped
    fetching, and yet its log went on, both are its disk (0.9), and `silent_broker` does not name it again.
`slow_sending`, `slow_reader`
    A broker took `SLOW_TIMES` as long as usual to send its responses, and 20 ms at least: the network (0.65). Of
    incidents of slow sending: where nine tenths of the time were spent on one client's responses, and those of two
    others and more were sent in less than 20 ms on average, that client does not read (0.75).
`quota`
    A quota made a client pause: of incidents of throttled requests (0.9).
`moved_leader`, `moved_coordinator`
    A broker answered at least three requests with NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH (NOT_COORDINATOR for
    groups), from 5 s before the incident to its end (0.7; 0.85 of incidents of refused requests).
`rebalance`
    A consumer group: of incidents of joins and syncs, the one with most of them (0.7; 0.85 from ten joins on).
`huge_batches`
    A client's produces had half a megabyte or more, and 20 times what is usual (0.8).
`lone_client`
    Of at least three clients that sent requests of the incident's kind to the same brokers only one had requests that
    expired or waited 0.1 s, and no rule above names anybody (0.5).

The rules read `Activity`, counts by second near the incidents, so they cost little however long the log is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import compress
from operator import attrgetter
from statistics import median
from typing import Final

import numpy as np
import pyarrow as pa

from abeyant.pages.words import duration
from abeyant.pipeline.analysis.activity import NEAR_S, Activity, Incident, activity_rows
from abeyant.pipeline.analysis.followers import (
    SILENT_MS,
    Silence,
    broker_ids,
    fetch_paces,
    follower_pairs,
    followers,
    silences,
)
from abeyant.pipeline.schemas import SUSPECTS
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = ["SILENT_MS", "SLOW_TIMES", "TROUBLES", "Suspect", "find_suspects", "suspect_rows"]

SLOW_TIMES: Final = 5
_SLOW_US: Final = 20_000
_LONG_US: Final = 100_000
_LEAST: Final = 5
"""Of fewer requests a mean says little."""
_FEW: Final = 3
_READER_SHARE: Final = 0.9
_HUGE_BYTES: Final = 500_000
_HUGE_TIMES: Final = 20
_MOVED: Final = {"moved_leader": (6, 74), "moved_coordinator": (16,)}
_GROUPS: Final = frozenset({"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "OFFSET_COMMIT", "LEAVE_GROUP"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Suspect:
    """Who or what an incident is put down to: a row of the table `suspects` (`schemas.SUSPECTS`)."""

    incident: int
    """The incident's number, from 1, in the order of the table `incidents`."""
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


@dataclass(frozen=True)
class _Case:
    """An incident, and what was done near it."""

    incident: Incident
    activity: Sequence[Activity]
    calm: Sequence[Activity]
    """Of these, what was done outside of every incident."""
    silences: Sequence[Silence]
    brokers: dict[str, int]
    """The broker that wrote each log."""

    @cached_property
    def seconds(self) -> range:
        return range(self.incident.first_us // 1_000_000, self.incident.last_us // 1_000_000 + 1)

    @cached_property
    def during(self) -> list[Activity]:
        return [row for row in self.activity if row.second in self.seconds]

    @cached_property
    def silent(self) -> list[Silence]:
        """The silences that overlap the incident."""
        first_us, last_us = self.incident.first_us, self.incident.last_us
        return [one for one in self.silences if one.first_us < last_us and one.last_us > first_us]

    @cached_property
    def still(self) -> set[int]:
        """The brokers that fetched nowhere while their own log was silent too: they stood still."""
        logs = {broker: instance for instance, broker in self.brokers.items()}
        elsewhere = [one for one in self.silent if not self.is_silent(one.instance, one)]
        talked = {one.replica for one in elsewhere if not self.is_silent(logs.get(one.replica), one)}
        return {one.replica for one in elsewhere} - talked

    @cached_property
    def deserted(self) -> set[str]:
        """The logs of brokers from which all of at least two followers stopped fetching: that is the broker's doing."""
        followers: dict[str, set[int]] = defaultdict(set)
        for instance, replica in follower_pairs(self.activity):
            followers[instance].add(replica)
        silent: dict[str, set[int]] = defaultdict(set)
        for one in self.silent:
            silent[one.instance].add(one.replica)
        return {log for log, replicas in silent.items() if len(replicas) > 1 and replicas == followers[log]}

    @cached_property
    def _began(self) -> dict[str, set[int]]:
        began: dict[str, set[int]] = defaultdict(set)
        for row in self.activity:
            began[row.instance].add(row.second)
        return began

    def is_silent(self, instance: str | None, one: Silence) -> bool:
        """Return whether nothing started in a log during the silence, but in its first and last second."""
        inside = range(one.first_us // 1_000_000 + 1, one.last_us // 1_000_000)
        return instance in self._began and bool(inside) and self._began[instance].isdisjoint(inside)

    def broker(self, instance: str) -> str:
        """Return a broker's name in words, by its id where it is known."""
        return f"broker {self.brokers[instance]}" if instance in self.brokers else instance

    def suspect(self, name: str, rule: str, evidence: str, confidence: float) -> Suspect:
        """Return a suspect for the time of the incident."""
        times = _time(self.incident.first_us), _time(self.incident.last_us)
        return Suspect(self.incident.number, name, rule, evidence, confidence, *times)


def find_suspects(incidents: Iterable[Incident], activity: pa.Table, end_us: int) -> list[Suspect]:
    """Return the suspects of each incident, the likeliest first; `end_us` is the end of the log.

    `activity` has the rows of `ACTIVITY`. O(n) in it, and for each incident O(n log n) in what was near it. Rows
    are made of that alone: beside the table, memory is bounded by the busiest incident.
    """
    incidents = list(incidents)
    second = activity["second"].to_numpy()
    is_calm = np.ones(len(second), bool)
    for one in incidents:
        begin, end = np.searchsorted(second, [one.first_us // 1_000_000, one.last_us // 1_000_000 + 2])
        is_calm[begin:end] = False
    quiet, brokers = silences(followers(activity), end_us), broker_ids(followers(activity))
    found = []
    for incident in incidents:
        near = incident.first_us // 1_000_000 - NEAR_S, incident.last_us // 1_000_000 + NEAR_S + 1
        begin, end = np.searchsorted(second, near)
        rows = list(activity_rows(activity.slice(begin, end - begin)))
        case = _Case(incident, rows, list(compress(rows, is_calm[begin:end])), quiet, brokers)
        mine = _without_doubles([suspect for rule in _RULES for suspect in rule(case)]) or list(_lone_client(case))
        found += sorted(mine, key=lambda suspect: -suspect.confidence)
    return found


def suspect_rows(suspects: Sequence[Suspect]) -> pa.Table:
    """Return the table `suspects`, in the order given."""
    schema = arrow_schema(SUSPECTS)
    return pa.table({name: [getattr(one, name) for one in suspects] for name in schema.names}, schema)


def _without_doubles(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects without a broker's silence where its slow disk explains it."""
    disks = {one.suspect for one in suspects if one.kind == "slow_disk"}
    return [one for one in suspects if one.kind != "silent_broker" or one.suspect not in disks]


def _silent_brokers(case: _Case) -> Iterator[Suspect]:
    incident = case.incident
    by_broker: dict[int, list[Silence]] = defaultdict(list)
    for one in case.silent:
        if not case.is_silent(one.instance, one) and one.instance not in case.deserted:
            by_broker[one.replica].append(one)
    for broker, mine in by_broker.items():
        leaders = sorted({one.instance for one in mine})
        first, last = min(one.first_us for one in mine), max(one.last_us for one in mine)
        silent = broker in case.still
        also = "; its own log is silent too" if silent else ""
        yield Suspect(
            incident.number,
            f"broker {broker}",
            "silent_broker",
            f"broker {broker} stopped fetching at {_time(first):%H:%M:%S}: silent for "
            f"{(last - first) / 1_000_000:.1f} s at {' and '.join(leaders)}, while {_affected(incident)}{also}",
            round((0.6 if len(leaders) == 1 else 0.8) + (0.15 if silent else 0), 2),
            _time(first),
            _time(last),
        )


def _slow_followers(case: _Case) -> Iterator[Suspect]:
    paces = fetch_paces(case.activity, case.seconds, {row.second for row in case.calm})
    paces = {pair: pace for pair, pace in paces.items() if pace.fetches >= _LEAST}
    quiet = {one.replica for one in case.silent}
    slow = {pair for pair, pace in paces.items() if _is_slow(pace.gap_us, pace.usual_us)}
    named = []
    for broker in {replica for _, replica in slow}:
        mine = {pair for pair in paces if pair[1] == broker}
        if broker in quiet or not mine <= slow:
            continue
        from_it = {pair for pair in paces if case.brokers.get(pair[0]) == broker}
        others = slow - mine - from_it
        if not others:
            named.append((broker, mine, bool(from_it) and from_it <= slow))
    if len(named) > 1:  # with two brokers each is slow to the other: both directions say whose network it is
        named = [one for one in named if one[2]] if sum(one[2] for one in named) == 1 else []
    for broker, mine, network in named:
        worst = max((paces[pair] for pair in mine), key=lambda pace: pace.gap_us)
        what = "and the others fetched as slowly from it" if network else "its disk, or its network"
        evidence = (
            f"broker {broker} fetched slowly from {_clock(case)}: {_ms(worst.gap_us)} from one fetch to the next, "
            f"usually {_ms(worst.usual_us)}, {what}, while {_affected(case.incident)}"
        )
        rule = "slow_network" if network else "slow_follower"
        yield case.suspect(f"broker {broker}", rule, evidence, 0.75 if network else 0.6)


def _slow_disk(case: _Case) -> Iterator[Suspect]:
    huge = {client for client, _ in _huge(case)}
    appends = _slower(case, "local_us", lambda row: row.kind == "PRODUCE" and row.client_id not in huge)
    fetches = _slower(case, "local_us", lambda row: row.kind.startswith("FETCH"))
    for instance, (mean, usual) in appends.items():
        broker = case.broker(instance)
        stuck = any(one.replica == case.brokers.get(instance) for one in case.silent)
        whole = instance in fetches and not stuck
        what = (
            ", and was as slow in all else" if whole else " and stopped fetching: its disk" if stuck else ": its disk"
        )
        evidence = (
            f"{broker} took {_ms(mean)} to append a produce from {_clock(case)}, usually {_ms(usual)}{what}, "
            f"while {_affected(case.incident)}"
        )
        confidence = 0.5 if whole else 0.9 if stuck else 0.75
        yield case.suspect(broker, "slow_broker" if whole else "slow_disk", evidence, confidence)


def _slow_sending(case: _Case) -> Iterator[Suspect]:
    if case.incident.trouble == "sent":
        sums: dict[str | None, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for row in case.during:
            total, number = sums[row.client_id]
            sums[row.client_id] = total + row.send_us, number + row.operations
        client, (mine, number) = max(sums.items(), key=lambda item: item[1][0], default=(None, (0, 1)))
        others = max((total / count for other, (total, count) in sums.items() if other != client), default=0.0)
        is_alone = mine >= _READER_SHARE * sum(total for total, _ in sums.values()) and others < _SLOW_US
        if is_alone and client is not None and len(sums) >= _FEW:
            evidence = (
                f"client {client} read slowly from {_clock(case)}: {_ms(mine / number)} on average to send it a "
                f"response, while {_ms(others)} at most were enough for {len(sums) - 1} others"
            )
            yield case.suspect(f"client {client}", "slow_reader", evidence, 0.75)
            return
    for instance, (mean, usual) in _slower(case, "send_us", lambda _: True).items():
        evidence = (
            f"{case.broker(instance)} took {_ms(mean)} to send a response from {_clock(case)}, usually {_ms(usual)}: "
            f"its network, while {_affected(case.incident)}"
        )
        yield case.suspect(case.broker(instance), "slow_sending", evidence, 0.65)


def _slower(case: _Case, name: str, which: Callable[[Activity], bool]) -> dict[str, tuple[float, float]]:
    """Return the mean time of requests at each instance where it is far above the usual one: both, in µs.

    An instance whose broker stood still is left out: what was under way then took as long as that.
    """
    spent = attrgetter(name)
    parts: list[dict[str, list[int]]] = []
    for rows in case.during, case.calm:
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for row in rows:
            if which(row):
                mine = sums[row.instance]
                mine[0] += spent(row)
                mine[1] += row.operations
        parts.append(sums)
    found = {}
    for instance, (total, number) in parts[0].items():
        usual_total, usual_number = parts[1].get(instance, (0, 0))
        if number >= _LEAST and usual_number >= _LEAST and case.brokers.get(instance) not in case.still:
            mean, usual = total / number, usual_total / usual_number
            if _is_slow(mean, usual):
                found[instance] = (mean, usual)
    return found


def _quota(case: _Case) -> Iterator[Suspect]:
    if case.incident.trouble != "throttled":
        return
    longest: dict[str, int] = defaultdict(int)
    for row in case.during:
        if row.throttle_us >= _LONG_US and row.client_id is not None:
            longest[row.client_id] = max(longest[row.client_id], row.throttle_us)
    for client, most in longest.items():
        evidence = f"client {client} exceeded its quota from {_clock(case)} and had to pause for up to {_ms(most)}"
        yield case.suspect(f"client {client}", "quota", evidence, 0.9)


def _moved(case: _Case) -> Iterator[Suspect]:
    rule = "moved_coordinator" if case.incident.kind in _GROUPS else "moved_leader"
    answers: Counter[str] = Counter()
    first: dict[str, int] = {}
    for row in case.activity:
        if row.error_code in _MOVED[rule] and case.seconds[0] - 5 <= row.second <= case.seconds[-1]:
            answers[row.instance] += row.operations
            first[row.instance] = min(row.first_us, first.get(row.instance, row.first_us))
    for instance, number in answers.most_common(1):
        if number >= 3:
            broker, what = case.broker(instance), "coordinator of groups" if "coord" in rule else "leader of partitions"
            evidence = (
                f"{broker} ceased to be {what} about {_time(first[instance]):%H:%M:%S}: it refused {number:,} requests"
                f", while {_affected(case.incident)}"
            )
            yield case.suspect(broker, rule, evidence, 0.85 if case.incident.trouble == "refused" else 0.7)


def _rebalance(case: _Case) -> Iterator[Suspect]:
    if case.incident.kind not in ("JOIN_GROUP", "SYNC_GROUP"):
        return
    joins: Counter[str] = Counter()
    for row in case.during:
        if row.group is not None:
            joins[row.group] += row.operations
    for group, number in joins.most_common(1):
        evidence = f"group {group} rebalanced from {_clock(case)}: {number:,} joins and syncs, up to {_longest(case)}"
        yield case.suspect(f"group {group}", "rebalance", evidence, 0.85 if number >= 10 else 0.7)


def _huge(case: _Case) -> Iterator[tuple[str, int]]:
    """Yield the client whose produces were huge, and the largest of them, if there is one."""
    usual = [row.size_bytes for row in case.calm if row.kind == "PRODUCE" and row.size_bytes is not None]
    sizes: dict[str, int] = defaultdict(int)
    for row in case.during:
        if row.kind == "PRODUCE" and row.client_id is not None:
            sizes[row.client_id] = max(sizes[row.client_id], row.size_bytes or 0)
    least = max(_HUGE_BYTES, _HUGE_TIMES * median(usual)) if usual else _HUGE_BYTES
    yield from (one for one in sorted(sizes.items(), key=lambda item: -item[1])[:1] if one[1] >= least)


def _huge_batches(case: _Case) -> Iterator[Suspect]:
    for client, size in _huge(case):
        evidence = (
            f"client {client} produced up to {size / 1e6:,.1f} MB at once from {_clock(case)}, "
            f"while {_affected(case.incident)}"
        )
        yield case.suspect(f"client {client}", "huge_batches", evidence, 0.8)


def _lone_client(case: _Case) -> Iterator[Suspect]:
    incident = case.incident
    if incident.trouble != "waited":
        return
    waits: dict[str, int] = defaultdict(int)
    expired: Counter[str] = Counter()
    for row in case.during:
        if row.kind == incident.kind and row.instance in incident.instances and row.client_id is not None:
            waits[row.client_id] = max(waits[row.client_id], row.longest_us)
            expired[row.client_id] += row.expired
    long = [client for client, wait in waits.items() if wait >= _LONG_US or expired[client]]
    if len(long) == 1 and len(waits) >= _FEW:
        ended = (
            f"{expired[long[0]]:,} of its requests expired, after at most" if expired[long[0]] else "it waited up to"
        )
        evidence = (
            f"client {long[0]} alone had trouble from {_clock(case)}: {ended} {_ms(waits[long[0]])}, "
            f"while {len(waits) - 1} other clients had none"
        )
        yield case.suspect(f"client {long[0]}", "lone_client", evidence, 0.5)


_RULES: Final = (
    _silent_brokers,
    _slow_followers,
    _slow_disk,
    _slow_sending,
    _quota,
    _moved,
    _rebalance,
    _huge_batches,
)


def _is_slow(us: float, usual_us: float) -> bool:
    return us >= max(_SLOW_US, SLOW_TIMES * usual_us)


TROUBLES: Final = {
    "waited": "waited",
    "throttled": "were throttled",
    "handled": "were handled slowly",
    "sent": "were answered slowly",
    "rebalanced": "waited",
    "refused": "were refused",
}


def _affected(incident: Incident) -> str:
    return f"{incident.operations:,} {incident.kind} {TROUBLES[incident.trouble]}"


def _longest(case: _Case) -> str:
    return _ms(max((row.longest_us for row in case.during if row.kind == case.incident.kind), default=0))


def _clock(case: _Case) -> str:
    return f"{_time(case.incident.first_us):%H:%M:%S}"


def _ms(us: float) -> str:
    return duration(us / 1000).replace("\N{NO-BREAK SPACE}", " ")


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
