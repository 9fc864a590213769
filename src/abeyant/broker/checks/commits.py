"""Check committed offsets: they never get ahead of the work, never go back, are kept, and reach the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.consuming import in_order
from abeyant.broker.checks.history import Committed, Ended, Found, Handed, History, Item, Place
from abeyant.broker.checks.ledger import Ledger

_NEVER: Final = float("inf")


def commits_are_not_ahead(group: str, topic: str) -> Check:
    """Check that `group` committed no offset of `topic` before its members were handed every record below it.

    Checking starts at the first record that a member was handed, or at the first commit if that is earlier. Records
    that a member skips by seeking forward do not count. Kafka allows a commit of any offset, but a program that commits
    past records that it was not handed loses them.
    """

    def look(history: History) -> Verdict:
        commits = _commits(history, group, topic)
        reads = [record for record in history.handed if (record.group, record.topic) == (group, topic)]
        committed_only = all(record.committed_only for record in reads)
        stored = history.stored_committed if committed_only else history.stored
        stored_places = {(record.partition, record.offset) for record in stored if record.topic == topic}
        skipped = _passed_over(history, group, topic)
        first: dict[int, int] = {}
        for record in reads:
            first[record.partition] = min(record.offset, first.get(record.partition, record.offset))
        seen: set[tuple[int, int]] = set()
        below = dict(first)  # by partition: the records below this offset were handed, or are reported already
        wrong = []
        moments: list[Handed | Committed] = [*reads, *commits]
        for moment in sorted(moments, key=lambda moment: (moment.at, isinstance(moment, Committed))):
            partition, offset = moment.partition, moment.offset
            if isinstance(moment, Handed):
                seen.add((partition, offset))
                continue
            at = below.get(partition, offset)
            while at < offset and (
                (partition, at) in seen or (partition, at) not in stored_places or at in skipped[partition]
            ):
                at += 1
            if at < offset:
                message = f"{topic}-{partition} offset {offset} was committed, and no member was handed offset {at}"
                wrong.append(f"at {moment.at:.3f} s {message}")
            below[partition] = max(offset, at)
        return Verdict(len(commits), f"commit of {group} for {topic}", tuple(wrong))

    return Check(f"commits are not ahead ({group}, {topic})", look)


def commits_follow_the_work(
    group: str,
    topic: str,
    ledger: Ledger,
    *,
    entry: Callable[[Item], object] = lambda item: item.value,
    dead_letters: str | None = None,
) -> Check:
    """Check that `group` committed no offset of `topic` before each record below it had been processed.

    `ledger` is a list made by `simulation.ledger()`, which keeps the times of its entries. The program adds an entry to
    it for each record that it has processed; `entry` returns the entry of a record. A record whose value was
    acknowledged in the topic `dead_letters` counts as processed. Records before the first one that a member was handed
    are not checked, nor records that a member skipped by a seek, nor commits in transactions.
    """

    def look(history: History) -> Verdict:
        commits = [commit for commit in _commits(history, group, topic) if commit.transactional_id is None]
        first: dict[int, int] = {}
        for read in history.handed:
            if (read.group, read.topic) == (group, topic):
                first[read.partition] = min(read.offset, first.get(read.partition, read.offset))
        first_times = ledger.first_times()
        dead_times: dict[bytes | None, float] = {}
        for response in history.produced:
            if response.topic == dead_letters and response.error == "NONE":
                for item in response.items:
                    dead_times.setdefault(item.value, response.at)
        skipped = _passed_over(history, group, topic)
        records = sorted(
            (record for record in history.stored_committed if record.topic == topic),
            key=lambda record: (record.partition, record.offset),
        )
        wrong, complained = [], set()
        for commit in commits:
            sent = commit.at if commit.since is None else commit.since
            for record in records:
                partition, offset = place = record.partition, record.offset
                if partition != commit.partition or not first.get(partition, 0) <= offset < commit.offset:
                    continue
                time = min(first_times.get(entry(record.item), _NEVER), dead_times.get(record.item.value, _NEVER))
                if time > sent and offset not in skipped[partition] and place not in complained:
                    complained.add(place)
                    processed = "processed only later" if time < _NEVER else "never processed"
                    message = f"{topic}-{commit.partition} offset {commit.offset} was committed"
                    wrong.append(f"at {sent:.3f} s {message}, and offset {offset} was {processed}")
        return Verdict(len(commits), f"commit of {group} for {topic}", tuple(wrong))

    return Check(f"commits follow the work ({group}, {topic})", look)


def commits_never_go_back(group: str, topic: str) -> Check:
    """Check that the offsets that `group` commits for a partition of `topic` never decrease, except after a seek.

    Kafka accepts a lower offset without an error; the next owner of the partition then reads the records from that
    offset on again.
    """

    def look(history: History) -> Verdict:
        commits = _commits(history, group, topic)
        assigned = {record.assignment for record in history.handed if record.group == group}
        seeks = [seek for seek in history.sought if seek.topic == topic and seek.assignment in assigned]
        positions: dict[int, int] = {}
        wrong = []
        for commit in commits:
            last = positions.get(commit.partition, -1)
            positions[commit.partition] = commit.offset
            sought = any(seek.partition == commit.partition and seek.at <= commit.at for seek in seeks)
            if commit.offset < last and not sought:
                message = f"{topic}-{commit.partition} offset {commit.offset} was committed"
                wrong.append(f"at {commit.at:.3f} s {message}, after {last}")
        return Verdict(len(commits), f"commit of {group} for {topic}", tuple(wrong))

    return Check(f"commits never go back ({group}, {topic})", look)


def commits_are_kept(group: str) -> Check:
    """Check that no offset that `group` fetches or has at the end is below its last acknowledged commit.

    An offset may be above that commit, by a commit whose response was lost. A partition for which the group itself
    committed a lower offset later is not checked. The commits of a transaction count once the transaction is committed,
    and only for the offset at the end.
    """

    def look(history: History) -> Verdict:
        last: dict[Place, int] = {}
        reset_places: set[Place] = set()
        wrong = []
        pending: dict[object, list[Committed]] = defaultdict(list)
        moments: list[Committed | Ended | Found] = [*history.committed, *history.ended, *history.found]
        for moment in sorted(moments, key=_moment):
            if isinstance(moment, Found):
                place = moment.topic, moment.partition
                if moment.group == group and moment.offset < last.get(place, -1) and place not in reset_places:
                    message = f"{group} fetched the offset {moment.offset} of {place[0]}-{place[1]}"
                    wrong.append(f"at {moment.at:.3f} s {message}, but {last[place]} was committed")
                continue
            if moment.error != "NONE":
                continue
            writer = moment.transactional_id, moment.producer
            if isinstance(moment, Committed) and moment.transactional_id is not None:
                pending[writer].append(moment)
                continue
            effective = [moment] if isinstance(moment, Committed) else pending.pop(writer, [])
            for commit in effective if isinstance(moment, Committed) or moment.committed else []:
                if commit.group == group:
                    place = commit.topic, commit.partition
                    if commit.offset < last.get(place, -1) or commit.transactional_id is not None:
                        reset_places.add(place)
                    last[place] = commit.offset
        missing = []
        for (topic, partition), offset in sorted(last.items()):
            current = history.offsets.get((group, topic, partition))
            if (current is None or current < offset) and not _was_reset(history, group, (topic, partition)):
                missing.append(
                    f"{topic}-{partition} offset {offset} was committed, and {current or 'nothing'} is there"
                )
        return Verdict(len(last), f"partition with a commit of {group}", tuple(wrong), tuple(missing))

    return Check(f"commits are kept ({group})", look)


def _moment(moment: Committed | Ended | Found) -> tuple[float, bool]:
    """Return a sort key: when a commit was acknowledged or an OffsetFetch arrived; at equal times OffsetFetch first."""
    return (moment.since, False) if isinstance(moment, Found) else (moment.at, True)


def _was_reset(history: History, group: str, place: Place) -> bool:
    offsets = [
        commit.offset
        for commit in history.committed
        if (commit.group, commit.error, (commit.topic, commit.partition)) == (group, "NONE", place)
        and commit.transactional_id is None
    ]
    return offsets != sorted(offsets)


def everything_is_committed(group: str, topic: str) -> Check:
    """Check that in the end `group` has committed `topic` up to its last record, so that no consumer is stuck."""

    def look(history: History) -> Verdict:
        ends: dict[int, int] = {}
        for record in history.stored_committed:
            if record.topic == topic:
                ends[record.partition] = record.offset + 1
        missing = []
        for partition, end in sorted(ends.items()):
            at = history.offsets.get((group, topic, partition), 0)
            if at < end:
                missing.append(f"{group} has committed {topic}-{partition} up to {at} of {end}")
        return Verdict(sum(ends.values()), f"record of {topic}", (), tuple(missing))

    return Check(f"everything is committed ({group}, {topic})", look)


def _commits(history: History, group: str, topic: str) -> list[Committed]:
    return [
        commit for commit in history.committed if (commit.group, commit.topic, commit.error) == (group, topic, "NONE")
    ]


def _passed_over(history: History, group: str, topic: str) -> dict[int, set[int]]:
    """Return, by partition, the offsets that members have skipped by seeking forward."""
    skipped: dict[int, set[int]] = defaultdict(set)
    positions: dict[tuple[str, int, int], int] = {}  # the position of a member
    pending_seeks: set[tuple[str, int, int]] = set()
    assigned = {start.assignment for start in history.joined if start.group == group}
    for event in in_order(history, topic):
        key = event.client, event.assignment, event.partition
        if event.assignment not in assigned:
            continue
        if isinstance(event, Handed):
            if key in pending_seeks:  # the broker chose the offset
                skipped[event.partition].update(range(positions.get(key, 0), event.offset))
                pending_seeks.discard(key)
            positions[key] = event.offset + 1
        elif event.offset < 0:
            pending_seeks.add(key)
        else:
            skipped[event.partition].update(range(positions.get(key, 0), event.offset))
            positions[key] = event.offset
    return skipped
