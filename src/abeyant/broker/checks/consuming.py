"""What consumers were handed: in order, without gaps; and what they have committed."""

from __future__ import annotations

from collections import defaultdict

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import Committed, Handed, History, Place


def consumer_never_skips(topic: str) -> Check:
    """Check that within an assignment a consumer of `topic` neither goes back nor skips a record.

    Where the program seeks, it may. Offsets without a record that it may see are no gap: those of markers, of aborted
    transactions for a consumer of committed records, and what compaction or retention has removed.
    """

    def look(history: History) -> Verdict:
        every: dict[Place, set[int]] = defaultdict(set)
        committed: dict[Place, set[int]] = defaultdict(set)
        for one in history.stored:
            every[one.topic, one.partition].add(one.offset)
        for one in history.stored_committed:
            committed[one.topic, one.partition].add(one.offset)
        sought = {(one.client, one.assignment, one.topic, one.partition, one.offset) for one in history.sought}
        at: dict[tuple[str, int, Place], int] = {}
        seen, wrong = 0, []
        for handed in history.handed:
            if handed.topic != topic:
                continue
            seen += 1
            place = handed.topic, handed.partition
            key = handed.client, handed.assignment, place
            last = at.get(key)
            at[key] = handed.offset
            if last is None or (handed.client, handed.assignment, *place, handed.offset) in sought:
                continue
            readable = committed[place] if handed.committed_only else every[place]
            skipped = [offset for offset in range(last + 1, handed.offset) if offset in readable]
            where = f"{handed.client} at {topic}-{handed.partition}"
            if handed.offset <= last:
                wrong.append(f"{where} went back from offset {last} to {handed.offset}")
            elif skipped:
                wrong.append(f"{where} skipped offset {skipped[0]} after {last}")
        return Verdict(seen, f"record of {topic} handed to a consumer", tuple(wrong))

    return Check(f"consumer never skips ({topic})", look)


def commits_are_not_ahead(group: str, topic: str) -> Check:
    """Check that no offset of `topic` was committed by `group` beyond what its members had been handed by then.

    Kafka allows a commit of any offset; a program that commits one that it was not handed loses records.
    """

    def look(history: History) -> Verdict:
        reads = [one for one in history.handed if (one.group, one.topic) == (group, topic)]
        commits = [one for one in history.committed if (one.group, one.topic, one.error) == (group, topic, "NONE")]
        reached: dict[int, int] = defaultdict(int)  # by partition: what follows the last record handed or committed
        wrong = []
        moments: list[Handed | Committed] = [*reads, *commits]
        for one in sorted(moments, key=lambda one: (one.at, isinstance(one, Committed))):
            if isinstance(one, Committed) and one.offset > reached[one.partition]:
                what = f"{topic}-{one.partition} offset {one.offset}"
                wrong.append(f"at {one.at:.3f} s {what} was committed, and handed was up to {reached[one.partition]}")
            after = one.offset if isinstance(one, Committed) else one.offset + 1
            reached[one.partition] = max(after, reached[one.partition])
        return Verdict(len(commits), f"commit of {group} for {topic}", tuple(wrong))

    return Check(f"commits are not ahead ({group}, {topic})", look)


def everything_is_committed(group: str, topic: str) -> Check:
    """Check that in the end `group` has committed all of `topic`: nobody is stuck."""

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
