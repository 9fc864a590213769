"""Check committed offsets: without gaps, never ahead of the work, never back, and kept."""

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
        reads = [one for one in history.handed if (one.group, one.topic) == (group, topic)]
        committed_only = all(one.committed_only for one in reads)
        stored = history.stored_committed if committed_only else history.stored
        there = {(one.partition, one.offset) for one in stored if one.topic == topic}
        passed = _passed_over(history, group, topic)
        first: dict[int, int] = {}
        for one in reads:
            first[one.partition] = min(one.offset, first.get(one.partition, one.offset))
        seen: set[tuple[int, int]] = set()
        below = dict(first)  # by partition: the records below this offset were handed, or are reported already
        wrong = []
        moments: list[Handed | Committed] = [*reads, *commits]
        for moment in sorted(moments, key=lambda one: (one.at, isinstance(one, Committed))):
            partition, offset = moment.partition, moment.offset
            if isinstance(moment, Handed):
                seen.add((partition, offset))
                continue
            at = below.get(partition, offset)
            while at < offset and ((partition, at) in seen or (partition, at) not in there or at in passed[partition]):
                at += 1
            if at < offset:
                what = f"{topic}-{partition} offset {offset} was committed, and no member was handed offset {at}"
                wrong.append(f"at {moment.at:.3f} s {what}")
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

    `ledger` is the program's own, made by `simulation.ledger()`, since the check compares times of entries; `entry`
    returns a record's entry in it. A record whose value was acknowledged in the topic `dead_letters` counts as
    processed. Records below the first one that a member was handed do not count, nor do those that a member skipped by
    a seek. Commits in transactions are not checked.
    """

    def look(history: History) -> Verdict:
        commits = [one for one in _commits(history, group, topic) if one.transactional_id is None]
        first: dict[int, int] = {}
        for one in history.handed:
            if (one.group, one.topic) == (group, topic):
                first[one.partition] = min(one.offset, first.get(one.partition, one.offset))
        done = ledger.first_times()
        dead: dict[bytes | None, float] = {}
        for made in history.produced:
            if made.topic == dead_letters and made.error == "NONE":
                for item in made.items:
                    dead.setdefault(item.value, made.at)
        passed = _passed_over(history, group, topic)
        records = sorted(
            (one for one in history.stored_committed if one.topic == topic), key=lambda one: (one.partition, one.offset)
        )
        wrong, complained = [], set()
        for commit in commits:
            sent = commit.at if commit.since is None else commit.since
            for record in records:
                partition, offset = place = record.partition, record.offset
                if partition != commit.partition or not first.get(partition, 0) <= offset < commit.offset:
                    continue
                when = min(done.get(entry(record.item), _NEVER), dead.get(record.item.value, _NEVER))
                if when > sent and offset not in passed[partition] and place not in complained:
                    complained.add(place)
                    later = "later" if when < _NEVER else "never"
                    what = f"{topic}-{commit.partition} offset {commit.offset} was committed"
                    wrong.append(f"at {sent:.3f} s {what}, and offset {offset} was worked off {later}")
        return Verdict(len(commits), f"commit of {group} for {topic}", tuple(wrong))

    return Check(f"commits follow the work ({group}, {topic})", look)


def commits_never_go_back(group: str, topic: str) -> Check:
    """Check that the offsets that `group` commits for a partition of `topic` never decrease, except after a seek.

    Kafka accepts a lower offset without an error; the next owner of the partition then reads the records from there on
    again.
    """

    def look(history: History) -> Verdict:
        commits = _commits(history, group, topic)
        assigned = {one.assignment for one in history.handed if one.group == group}
        back = [one for one in history.sought if one.topic == topic and one.assignment in assigned]
        at: dict[int, int] = {}
        wrong = []
        for one in commits:
            last = at.get(one.partition, -1)
            at[one.partition] = one.offset
            sought = any(seek.partition == one.partition and seek.at <= one.at for seek in back)
            if one.offset < last and not sought:
                what = f"{topic}-{one.partition} offset {one.offset} was committed"
                wrong.append(f"at {one.at:.3f} s {what}, after {last}")
        return Verdict(len(commits), f"commit of {group} for {topic}", tuple(wrong))

    return Check(f"commits never go back ({group}, {topic})", look)


def commits_are_kept(group: str) -> Check:
    """Check that offsets fetched by `group`, and its final ones, are not below the last acknowledged commit.

    They may be above it, by a commit whose response was lost. A partition for which the group itself committed a lower
    offset again is not checked. A transaction's commits count once it is committed, and then only for the final offset.
    """

    def look(history: History) -> Verdict:
        last: dict[Place, int] = {}
        back: set[Place] = set()
        wrong = []
        pending: dict[object, list[Committed]] = defaultdict(list)
        moments: list[Committed | Ended | Found] = [*history.committed, *history.ended, *history.found]
        for moment in sorted(moments, key=_moment):
            if isinstance(moment, Found):
                place = moment.topic, moment.partition
                if moment.group == group and moment.offset < last.get(place, -1) and place not in back:
                    what = f"{group} fetched the offset {moment.offset} of {place[0]}-{place[1]}"
                    wrong.append(f"at {moment.at:.3f} s {what}, but {last[place]} was committed")
                continue
            if moment.error != "NONE":
                continue
            writer = moment.transactional_id, moment.producer
            if isinstance(moment, Committed) and moment.transactional_id is not None:
                pending[writer].append(moment)
                continue
            effective = [moment] if isinstance(moment, Committed) else pending.pop(writer, [])
            for one in effective if isinstance(moment, Committed) or moment.committed else []:
                if one.group == group:
                    place = one.topic, one.partition
                    if one.offset < last.get(place, -1) or one.transactional_id is not None:
                        back.add(place)
                    last[place] = one.offset
        missing = []
        for (topic, partition), offset in sorted(last.items()):
            now = history.offsets.get((group, topic, partition))
            if (now is None or now < offset) and not _was_reset(history, group, (topic, partition)):
                missing.append(f"{topic}-{partition} offset {offset} was committed, and {now or 'nothing'} is there")
        return Verdict(len(last), f"partition with a commit of {group}", tuple(wrong), tuple(missing))

    return Check(f"commits are kept ({group})", look)


def _moment(one: Committed | Ended | Found) -> tuple[float, bool]:
    """Return a sort key: when a commit was acknowledged or an OffsetFetch arrived; at equal times the latter first."""
    return (one.since, False) if isinstance(one, Found) else (one.at, True)


def _was_reset(history: History, group: str, place: Place) -> bool:
    offsets = [
        one.offset
        for one in history.committed
        if (one.group, one.error, (one.topic, one.partition)) == (group, "NONE", place) and one.transactional_id is None
    ]
    return offsets != sorted(offsets)


def everything_is_committed(group: str, topic: str) -> Check:
    """Check that in the end `group` has committed all of `topic`, so that no consumer is stuck."""

    def look(history: History) -> Verdict:
        ends: dict[int, int] = {}
        for one in history.stored_committed:
            if one.topic == topic:
                ends[one.partition] = one.offset + 1
        missing = []
        for partition, end in sorted(ends.items()):
            at = history.offsets.get((group, topic, partition), 0)
            if at < end:
                missing.append(f"{group} has committed {topic}-{partition} up to {at} of {end}")
        return Verdict(sum(ends.values()), f"record of {topic}", (), tuple(missing))

    return Check(f"everything is committed ({group}, {topic})", look)


def _commits(history: History, group: str, topic: str) -> list[Committed]:
    return [one for one in history.committed if (one.group, one.topic, one.error) == (group, topic, "NONE")]


def _passed_over(history: History, group: str, topic: str) -> dict[int, set[int]]:
    """Return, by partition, the offsets that members have skipped by seeking forward."""
    found: dict[int, set[int]] = defaultdict(set)
    at: dict[tuple[str, int, int], int] = {}  # the position of a member
    sought: set[tuple[str, int, int]] = set()
    assigned = {one.assignment for one in history.joined if one.group == group}
    for one in in_order(history, topic):
        key = one.client, one.assignment, one.partition
        if one.assignment not in assigned:
            continue
        if isinstance(one, Handed):
            if key in sought:  # the broker chose the offset
                found[one.partition].update(range(at.get(key, 0), one.offset))
                sought.discard(key)
            at[key] = one.offset + 1
        elif one.offset < 0:
            sought.add(key)
        else:
            found[one.partition].update(range(at.get(key, 0), one.offset))
            at[key] = one.offset
    return found
