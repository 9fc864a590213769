"""Check the brokers' state: whole transactions, equal replicas, groups and transactional ids."""

from __future__ import annotations

from collections import Counter, defaultdict

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import Ended, History, Produced

_GROUP_AT_REST = ("Empty", "Stable", "Dead")
_LATE = 30.0  # seconds: Kafka looks for transactions past their time-out every 10 s
_ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")


def transactions_are_atomic() -> Check:
    """Check that all acknowledged records of a committed transaction can be read, and none of an aborted one.

    A transaction whose end was never acknowledged may be committed or aborted, but as a whole. A commit is acknowledged
    before its markers are written, so its records may become readable a little later. Do not use this check for topics
    with retention or compaction, which may remove records.
    """

    def look(history: History) -> Verdict:
        readable = {(one.topic, one.partition, one.offset) for one in history.stored_committed}
        seen, wrong, missing = 0, [], []
        for transactional_id, records, ends in _transactions(history):
            seen += 1
            there = [place in readable for place in records]
            if ends is not None and not ends.committed and any(there):
                topic, partition, offset = records[there.index(True)]
                wrong.append(f"{transactional_id} aborted {topic}-{partition} offset {offset}, which can be read")
            elif not all(there) and ((ends is not None and ends.committed) or any(there)):
                topic, partition, offset = records[there.index(False)]
                what = "committed" if ends is not None else "wrote, beside records that can be read,"
                missing.append(f"{transactional_id} {what} {topic}-{partition} offset {offset}, which cannot be read")
        return Verdict(seen, "transaction with an acknowledged record", tuple(wrong), tuple(missing))

    return Check("transactions are atomic", look)


def _transactions(history: History) -> list[tuple[str, list[tuple[str, int, int]], Ended | None]]:
    """Return each transaction's id, the places of its acknowledged records, and its acknowledged end, or None."""
    found = []
    open_: dict[tuple[str, tuple[int, int]], list[tuple[str, int, int]]] = defaultdict(list)
    moments: list[Produced | Ended] = [*history.produced, *history.ended]
    for one in sorted(moments, key=lambda one: (one.at, isinstance(one, Ended))):
        if one.transactional_id is None or one.error != "NONE":
            continue
        writer = one.transactional_id, one.producer
        if isinstance(one, Produced):
            open_[writer] += [(one.topic, one.partition, one.offset + number) for number in range(len(one.items))]
        elif writer in open_:
            found.append((one.transactional_id, open_.pop(writer), one))
    return found + [(transactional_id, records, None) for (transactional_id, _), records in open_.items()]


def replicas_agree() -> Check:
    """Check that all replicas of a partition are the same below their high watermarks, and in sync once faults end.

    A follower's high watermark may be behind its leader's, and what is above it may differ until it is truncated.
    """

    def look(history: History) -> Verdict:
        seen, wrong, missing = 0, [], []
        for (topic, partition), replicas in sorted(history.replicas.items()):
            leader = next((one for one in replicas if one.leads), None)
            if leader is None:
                missing.append(f"{topic}-{partition} has no leader")
                continue
            batches = set(leader.batches)
            for one in replicas:
                if one is leader:
                    continue
                seen += len(one.batches)
                odd = next(
                    (batch for batch in one.batches if batch[0] < leader.high_watermark and batch not in batches), None
                )
                if odd is not None:
                    what = (
                        f"broker {one.broker} has another {topic}-{partition} than its leader, broker {leader.broker}"
                    )
                    wrong.append(f"{what}: at offset {odd[0]}, of leader epoch {odd[1]}")
                if not one.in_sync:
                    missing.append(f"broker {one.broker} is not in sync for {topic}-{partition}")
        return Verdict(seen, "batch of a follower", tuple(wrong), tuple(missing))

    return Check("replicas agree", look)


def state_is_consistent() -> Check:
    """Check the groups and transactional ids that brokers coordinate, once faults have ended.

    Each has one coordinator and has settled (no rebalance, no ending transaction); in a stable group, no partition
    belongs to two members; no committed offset is beyond its partition's end. A transaction may be open until it
    times out.
    """

    def look(history: History) -> Verdict:
        wrong, missing = [], []
        for name, group in history.groups.items():
            if len(group.coordinators) > 1:
                missing.append(f"group {name} has the coordinators {group.coordinators}")
            if group.state not in _GROUP_AT_REST:
                missing.append(f"group {name} is in {group.state}")
            owners = Counter(place for _, places in group.members.values() for place in places)
            twice = [f"{topic}-{partition}" for (topic, partition), times in owners.items() if times > 1]
            if twice and group.state == "Stable":
                wrong.append(f"group {name} has two members with {twice[0]}")
        for name, transaction in history.transactions.items():
            if len(transaction.coordinators) > 1:
                missing.append(f"transactional id {name} has the coordinators {transaction.coordinators}")
            if transaction.state in _ENDING:
                missing.append(f"transactional id {name} is in {transaction.state}")
            if transaction.left is not None and transaction.left < -_LATE:
                missing.append(f"the transaction of {name} has been open for {-transaction.left:.0f} s too long")
        ends = {
            place: max(one.high_watermark for one in replicas if one.leads)
            for place, replicas in history.replicas.items()
            if any(one.leads for one in replicas)
        }
        for (name, topic, partition), offset in sorted(history.offsets.items()):
            end = ends.get((topic, partition))
            if end is not None and offset > end:
                missing.append(f"{name} has committed {topic}-{partition} up to {offset}, and it ends at {end}")
        return Verdict(
            len(history.groups) + len(history.transactions), "group or transactional id", tuple(wrong), tuple(missing)
        )

    return Check("state is consistent", look)
