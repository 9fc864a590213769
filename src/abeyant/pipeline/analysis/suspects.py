"""Find suspects: the probable causes of an incident, by the rules below, each with its evidence and its confidence.

An incident without a suspect has no row: without evidence in the log, nobody is named. *Usual* values are measured
within a minute of the incident, but outside of every incident.

`silent_broker`
    A broker stopped fetching. Its fetcher sent no request to a leader for `SILENT_MS` or more, between the end of one
    fetch and the start of the next (or the log's end), and the silence overlaps the incident. A fetch that waits is not
    silence. If all followers of a leader are silent, or the leader's own log is, the silence is evidence against the
    leader, not against the followers.
    Confidence: 0.6 for silence at one leader, 0.8 at several, and 0.15 more if the follower's own log is silent too.
`slow_network`, `slow_follower`
    A follower took `SLOW_TIMES` as long as usual, and at least 20 ms, from the end of a fetch to its next fetch. If all
    brokers that fetch from this follower are slow too, its network is suspected (0.75); else its disk or its network
    (0.6). Of several such followers, none is named, unless exactly one of them is also slow as a leader.
`slow_disk`, `slow_broker`
    A broker took `SLOW_TIMES` as long as usual, and at least 20 ms, to append produces, not counting huge batches: its
    disk is suspected (0.75). If its handling of fetches is as slow, the whole broker is suspected instead (0.5). If the
    broker stopped fetching while its log went on, its disk explains both (0.9), and `silent_broker` is left out.
`slow_sending`, `slow_reader`
    A broker took `SLOW_TIMES` as long as usual, and at least 20 ms, to send its responses: its network is suspected
    (0.65). In an incident of slow sending, a client that reads slowly is suspected instead (0.75), if nine tenths of
    the sending time went to its responses, and responses to the other clients (at least two) took less than 20 ms each.
`seldom_polls`
    In an incident of late fetches: a consumer that had `LEAST_PAUSES` or more pauses between its fetches (0.75; 0.55
    if every other consumer had as many). Pauses count here whether or not records waited.
`quota`
    In an incident of throttled requests: a client that a quota made pause (0.9).
`moved_leader`, `moved_coordinator`
    A broker answered at least three requests with NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH (NOT_COORDINATOR for
    groups), from 5 s before the incident to its end (0.7; 0.85 in an incident of refused requests).
`rebalance`
    In an incident of joins or syncs: the consumer group with most of these requests (0.7; 0.85 from ten requests on).
    In an incident of late fetches: the consumer group that the late client joined meanwhile (0.7).
`huge_batches`
    A client's largest produce had half a megabyte or more, and 20 times the usual size (0.8).
`lone_client`
    No rule above names anybody, and of at least three clients that sent requests of the incident's kind to the same
    brokers, only one had requests that expired or waited 0.1 s (0.5).

The rules read `Activity`, counts by second near the incidents, so they cost little however long the log is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress
from operator import attrgetter
from statistics import median
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyant.pages.formatting import counted
from abeyant.pipeline.analysis.activity import NEAR_S, Activity, Incident
from abeyant.pipeline.analysis.cases import Case, NearRows, Suspect, affected, clock, longest, moment, ms
from abeyant.pipeline.analysis.followers import SILENT_MS, Fetching, Silence, broker_ids, silences
from abeyant.pipeline.analysis.pauses import LEAST_PAUSES, longest_pauses
from abeyant.pipeline.request_log.operation import LONG_POLLS
from abeyant.pipeline.schemas import SUSPECTS
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = ["SILENT_MS", "SLOW_TIMES", "Suspect", "find_suspects", "suspect_rows"]

SLOW_TIMES: Final = 5
_SLOW_US: Final = 20_000
_LONG_US: Final = 100_000
_LEAST: Final = 5
"""Minimum number of requests for a mean; a mean of fewer requests says little."""
_FEW: Final = 3
_READER_SHARE: Final = 0.9
_HUGE_BYTES: Final = 500_000
_HUGE_TIMES: Final = 20
_MOVED: Final = {"moved_leader": (6, 74), "moved_coordinator": (16,)}
_GROUPS: Final = frozenset({"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "OFFSET_COMMIT", "LEAVE_GROUP"})


def find_suspects(incidents: Iterable[Incident], activity: pa.Table, end_us: int) -> list[Suspect]:
    """Return the suspects of each incident, the likeliest first; `end_us` is the end of the log.

    `activity` has the schema `ACTIVITY`. O(n) in its rows, and for each incident O(n log n) in the rows near the
    incident. Rows outside of incidents, which show what is usual, are read only for rules that the rows during the
    incident may satisfy. Memory: a few columns of the table, and the rows of the busiest incident.
    """
    incidents = list(incidents)
    second = activity["second"].to_numpy()
    is_calm = np.ones(len(second), bool)
    for burst in incidents:
        begin, end = np.searchsorted(second, [burst.first_us // 1_000_000, burst.last_us // 1_000_000 + 2])
        is_calm[begin:end] = False
    fetching = Fetching(activity, is_calm)
    quiet, brokers = silences(fetching, end_us), broker_ids(fetching)
    suspects, rows = list[Suspect](), NearRows(activity)
    for incident in incidents:
        near = range(incident.first_us // 1_000_000 - NEAR_S, incident.last_us // 1_000_000 + NEAR_S + 1)
        begin, end = map(int, np.searchsorted(second, [near.start, near.stop]))
        calm = partial(_calm, rows, is_calm, begin, end)
        columns = activity.slice(begin, end - begin), second[begin:end], near
        case = Case(incident, *columns, calm, fetching, quiet, brokers)
        causes = _without_doubles([suspect for rule in _RULES for suspect in rule(case)]) or list(_lone_client(case))
        suspects += sorted(causes, key=lambda suspect: -suspect.confidence)
    return suspects


def suspect_rows(suspects: Sequence[Suspect]) -> pa.Table:
    """Return the table `suspects`, in the order given."""
    schema = arrow_schema(SUSPECTS)
    return pa.table({name: [getattr(suspect, name) for suspect in suspects] for name in schema.names}, schema)


def _calm(rows: NearRows, is_calm: npt.NDArray[np.bool_], begin: int, end: int) -> list[Activity]:
    return list(compress(rows.between(begin, end), is_calm[begin:end]))


def _without_doubles(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects, but leave out a `silent_broker` whose `slow_disk` explains the silence."""
    disks = {suspect.suspect for suspect in suspects if suspect.kind == "slow_disk"}
    return [suspect for suspect in suspects if suspect.kind != "silent_broker" or suspect.suspect not in disks]


def _silent_brokers(case: Case) -> Iterator[Suspect]:
    incident = case.incident
    by_broker: dict[int, list[Silence]] = defaultdict(list)
    for silence in case.silent:
        if not case.is_silent(silence.instance, silence) and silence.instance not in case.deserted:
            by_broker[silence.replica].append(silence)
    for broker, times in by_broker.items():
        leaders = sorted({silence.instance for silence in times})
        first, last = min(silence.first_us for silence in times), max(silence.last_us for silence in times)
        silent = broker in case.still
        also = "; its own log is silent too" if silent else ""
        yield Suspect(
            incident.number,
            f"broker {broker}",
            "silent_broker",
            f"{case.named(broker)} stopped fetching at {moment(first):%H:%M:%S}: silent for "
            f"{(last - first) / 1_000_000:.1f} s at {' and '.join(leaders)}, while {affected(incident)}{also}",
            round((0.6 if len(leaders) == 1 else 0.8) + (0.15 if silent else 0), 2),
            moment(first),
            moment(last),
        )


def _slow_followers(case: Case) -> Iterator[Suspect]:
    gaps, usual = case.fetching.gaps(case.seconds), case.fetching.gaps(case.near_seconds, calm=True)
    paces = {pair: gap.gap_us for pair, gap in gaps.items() if pair in usual and gap.fetches >= _LEAST}
    quiet = {silence.replica for silence in case.silent}
    slow = {pair for pair, gap_us in paces.items() if _is_slow(gap_us, usual[pair].gap_us)}
    candidates = []
    for broker in {replica for _, replica in slow}:
        own_pairs = {pair for pair in paces if pair[1] == broker}
        if broker in quiet or not own_pairs <= slow:
            continue
        from_it = {pair for pair in paces if case.brokers.get(pair[0]) == broker}
        others = slow - own_pairs - from_it
        if not others:
            candidates.append((broker, own_pairs, bool(from_it) and from_it <= slow))
    if len(candidates) > 1:  # two may each look slow to the other: keep the one slow in both directions, if only one
        candidates = [entry for entry in candidates if entry[2]] if sum(entry[2] for entry in candidates) == 1 else []
    for broker, own_pairs, network in candidates:
        worst = max(sorted(own_pairs), key=lambda pair: paces[pair])
        detail = "and the others fetched as slowly from it" if network else "its disk, or its network"
        evidence = (
            f"{case.named(broker)} fetched slowly from {clock(case)}: {ms(paces[worst])} from one fetch to the next, "
            f"usually {ms(usual[worst].gap_us)}, {detail}, while {affected(case.incident)}"
        )
        rule = "slow_network" if network else "slow_follower"
        yield case.suspect(f"broker {broker}", rule, evidence, 0.75 if network else 0.6)


def _slow_disk(case: Case) -> Iterator[Suspect]:
    huge = {client for client, _ in _huge(case)}
    appends = _slower(case, "local_us", lambda row: row.kind == "PRODUCE" and row.client_id not in huge)
    fetches = _slower(case, "local_us", lambda row: row.kind in LONG_POLLS) if appends else {}
    for instance, (mean, usual) in appends.items():
        broker = case.broker(instance)
        stuck = any(silence.replica == case.brokers.get(instance) for silence in case.silent)
        general = instance in fetches and not stuck
        detail = (
            ", and was as slow in all else" if general else " and stopped fetching: its disk" if stuck else ": its disk"
        )
        evidence = (
            f"{case.named_log(instance)} took {ms(mean)} to append a produce from {clock(case)}, usually {ms(usual)}"
            f"{detail}, while {affected(case.incident)}"
        )
        confidence = 0.5 if general else 0.9 if stuck else 0.75
        yield case.suspect(broker, "slow_broker" if general else "slow_disk", evidence, confidence)


def _slow_sending(case: Case) -> Iterator[Suspect]:
    if case.incident.trouble == "sent":
        sums: dict[str | None, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for row in case.during:
            total, number = sums[row.client_id]
            sums[row.client_id] = total + row.send_us, number + row.operations
        client, (sending_us, number) = max(sums.items(), key=lambda item: item[1][0], default=(None, (0, 1)))
        others = max((total / count for other, (total, count) in sums.items() if other != client), default=0.0)
        is_alone = sending_us >= _READER_SHARE * sum(total for total, _ in sums.values()) and others < _SLOW_US
        if is_alone and client is not None and len(sums) >= _FEW:
            evidence = (
                f"client {client} read slowly from {clock(case)}: {ms(sending_us / number)} on average to send it a "
                f"response, while {ms(others)} at most were enough for {len(sums) - 1} others"
            )
            yield case.suspect(f"client {client}", "slow_reader", evidence, 0.75)
            return
    for instance, (mean, usual) in _slower(case, "send_us", lambda _: True).items():
        evidence = (
            f"{case.named_log(instance)} took {ms(mean)} to send a response from {clock(case)}, usually {ms(usual)}: "
            f"its network, while {affected(case.incident)}"
        )
        yield case.suspect(case.broker(instance), "slow_sending", evidence, 0.65)


def _seldom_polls(case: Case) -> Iterator[Suspect]:
    if case.incident.trouble != "paused":
        return
    by_client = longest_pauses(case.started_in(range(case.seconds.start - 1, case.seconds.stop + 1)))
    late = {client: pauses for client, pauses in by_client.items() if len(pauses) >= LEAST_PAUSES}
    others = len(by_client) - len(late)
    for client, pauses in sorted(late.items(), key=lambda item: -len(item[1]))[:_FEW]:
        joined = Counter(row.group for row in case.during if row.client_id == client and row.group is not None)
        if joined:
            ((group, number),) = joined.most_common(1)
            evidence = (
                f"group {group} rebalanced from {clock(case)}: client {client} joined it in {number:,} of the seconds "
                f"in which its fetches came up to {ms(pauses[0])} late"
            )
            yield case.suspect(f"group {group}", "rebalance", evidence, 0.7)
            continue
        evidence = (
            f"client {client} polled seldom from {clock(case)}: {len(pauses):,} times it sent no fetch for up to "
            f"{ms(pauses[0])}, while records waited"
            + (f" and {counted(others, 'other consumer')} fetched on" if others else "")
        )
        yield case.suspect(f"client {client}", "seldom_polls", evidence, 0.75 if others else 0.55)


def _slower(case: Case, name: str, which: Callable[[Activity], bool]) -> dict[str, tuple[float, float]]:
    """Return (mean, usual mean) of the requests' time `name`, in µs, for each instance whose mean is far above usual.

    Leave out an instance whose broker hung: requests in flight took at least as long as the broker hung.
    """
    means = {
        instance: mean
        for instance, mean in _means(case.during, name, which).items()
        if mean >= _SLOW_US and case.brokers.get(instance) not in case.still
    }
    usual = _means(case.calm, name, which) if means else {}
    return {
        instance: (mean, usual[instance])
        for instance, mean in means.items()
        if instance in usual and _is_slow(mean, usual[instance])
    }


def _means(rows: Iterable[Activity], name: str, which: Callable[[Activity], bool]) -> dict[str, float]:
    """Return the mean of the time `name`, in µs, of the requests that `which` selects, by instance.

    Instances with fewer than `_LEAST` such requests are left out.
    """
    time_of = attrgetter(name)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if which(row):
            entry = sums[row.instance]
            entry[0] += time_of(row)
            entry[1] += row.operations
    return {instance: total / number for instance, (total, number) in sums.items() if number >= _LEAST}


def _quota(case: Case) -> Iterator[Suspect]:
    if case.incident.trouble != "throttled":
        return
    longest: dict[str, int] = defaultdict(int)
    for row in case.during:
        if row.throttle_us >= _LONG_US and row.client_id is not None:
            longest[row.client_id] = max(longest[row.client_id], row.throttle_us)
    for client, most in longest.items():
        evidence = f"client {client} exceeded its quota from {clock(case)} and had to pause for up to {ms(most)}"
        yield case.suspect(f"client {client}", "quota", evidence, 0.9)


def _moved(case: Case) -> Iterator[Suspect]:
    rule = "moved_coordinator" if case.incident.kind in _GROUPS else "moved_leader"
    answers: Counter[str] = Counter()
    first: dict[str, int] = {}
    before = case.started_in(range(case.seconds.start - 5, case.seconds.start))
    for row in before + case.during:
        if row.error_code in _MOVED[rule]:
            answers[row.instance] += row.operations
            first[row.instance] = min(row.first_us, first.get(row.instance, row.first_us))
    for instance, number in answers.most_common(1):
        if number >= 3:
            role = "coordinator of groups" if "coord" in rule else "leader of partitions"
            evidence = (
                f"{case.named_log(instance)} ceased to be {role} about {moment(first[instance]):%H:%M:%S}: it refused "
                f"{number:,} requests, while {affected(case.incident)}"
            )
            yield case.suspect(
                case.broker(instance), rule, evidence, 0.85 if case.incident.trouble == "refused" else 0.7
            )


def _rebalance(case: Case) -> Iterator[Suspect]:
    if case.incident.kind not in ("JOIN_GROUP", "SYNC_GROUP"):
        return
    joins: Counter[str] = Counter()
    for row in case.during:
        if row.group is not None:
            joins[row.group] += row.operations
    for group, number in joins.most_common(1):
        evidence = f"group {group} rebalanced from {clock(case)}: {number:,} joins and syncs, up to {longest(case)}"
        yield case.suspect(f"group {group}", "rebalance", evidence, 0.85 if number >= 10 else 0.7)


def _huge(case: Case) -> Iterator[tuple[str, int]]:
    """Yield the client with the largest produce, and the size in bytes, if it is huge compared with the usual."""
    sizes: dict[str, int] = defaultdict(int)
    for row in case.during:
        if row.kind == "PRODUCE" and row.client_id is not None:
            sizes[row.client_id] = max(sizes[row.client_id], row.size_bytes or 0)
    for client, size in sorted(sizes.items(), key=lambda item: -item[1])[:1]:
        if size >= _HUGE_BYTES:
            usual = [row.size_bytes for row in case.calm if row.kind == "PRODUCE" and row.size_bytes is not None]
            if not usual or size >= _HUGE_TIMES * median(usual):
                yield client, size


def _huge_batches(case: Case) -> Iterator[Suspect]:
    for client, size in _huge(case):
        evidence = (
            f"client {client} produced up to {size / 1e6:,.1f} MB at once from {clock(case)}, "
            f"while {affected(case.incident)}"
        )
        yield case.suspect(f"client {client}", "huge_batches", evidence, 0.8)


def _lone_client(case: Case) -> Iterator[Suspect]:
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
        outcome = (
            f"{expired[long[0]]:,} of its requests expired, after at most" if expired[long[0]] else "it waited up to"
        )
        evidence = (
            f"client {long[0]} alone had trouble from {clock(case)}: {outcome} {ms(waits[long[0]])}, "
            f"while {len(waits) - 1} other clients had none"
        )
        yield case.suspect(f"client {long[0]}", "lone_client", evidence, 0.5)


_RULES: Final = (
    _silent_brokers,
    _slow_followers,
    _slow_disk,
    _slow_sending,
    _seldom_polls,
    _quota,
    _moved,
    _rebalance,
    _huge_batches,
)


def _is_slow(us: float, usual_us: float) -> bool:
    return us >= max(_SLOW_US, SLOW_TIMES * usual_us)
