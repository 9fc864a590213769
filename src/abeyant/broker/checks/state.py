"""Check the brokers' state: transactions are atomic, replicas equal, groups and transactional ids consistent."""

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
        readable = {(record.topic, record.partition, record.offset) for record in history.stored_committed}
        count, wrong, missing = 0, [], []
        for transactional_id, records, ends in _transactions(history):
            count += 1
            visible = [place in readable for place in records]
            if ends is not None and not ends.committed and any(visible):
                topic, partition, offset = records[visible.index(True)]
                wrong.append(f"{transactional_id} aborted {topic}-{partition} offset {offset}, which can be read")
            elif not all(visible) and ((ends is not None and ends.committed) or any(visible)):
                topic, partition, offset = records[visible.index(False)]
                action = "committed" if ends is not None else "wrote, beside records that can be read,"
                missing.append(f"{transactional_id} {action} {topic}-{partition} offset {offset}, which cannot be read")
        return Verdict(count, "transaction with an acknowledged record", tuple(wrong), tuple(missing))

    return Check("transactions are atomic", look)


def _transactions(history: History) -> list[tuple[str, list[tuple[str, int, int]], Ended | None]]:
    """Return each transaction's id, (topic, partition, offset) of its acknowledged records, and acknowledged end."""
    transactions = []
    open_: dict[tuple[str, tuple[int, int]], list[tuple[str, int, int]]] = defaultdict(list)
    moments: list[Produced | Ended] = [*history.produced, *history.ended]
    for response in sorted(moments, key=lambda response: (response.at, isinstance(response, Ended))):
        if response.transactional_id is None or response.error != "NONE":
            continue
        writer = response.transactional_id, response.producer
        if isinstance(response, Produced):
            open_[writer] += [
                (response.topic, response.partition, response.offset + number) for number in range(len(response.items))
            ]
        elif writer in open_:
            transactions.append((response.transactional_id, open_.pop(writer), response))
    return transactions + [(transactional_id, records, None) for (transactional_id, _), records in open_.items()]


def replicas_agree() -> Check:
    """Check that all replicas of a partition are the same below their high watermarks, and in sync once faults end.

    A follower's high watermark may be behind the leader's. Batches above a high watermark may differ until they are
    truncated.
    """

    def look(history: History) -> Verdict:
        count, wrong, missing = 0, [], []
        for (topic, partition), replicas in sorted(history.replicas.items()):
            leader = next((replica for replica in replicas if replica.leads), None)
            if leader is None:
                missing.append(f"{topic}-{partition} has no leader")
                continue
            batches = set(leader.batches)
            for replica in replicas:
                if replica is leader:
                    continue
                count += len(replica.batches)
                divergent = next(
                    (batch for batch in replica.batches if batch[0] < leader.high_watermark and batch not in batches),
                    None,
                )
                if divergent is not None:
                    message = (
                        f"broker {replica.broker} has another {topic}-{partition} "
                        f"than its leader, broker {leader.broker}"
                    )
                    wrong.append(f"{message}: at offset {divergent[0]}, of leader epoch {divergent[1]}")
                if not replica.in_sync:
                    missing.append(f"broker {replica.broker} is not in sync for {topic}-{partition}")
        return Verdict(count, "batch of a follower", tuple(wrong), tuple(missing))

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
            duplicates = [f"{topic}-{partition}" for (topic, partition), times in owners.items() if times > 1]
            if duplicates and group.state == "Stable":
                wrong.append(f"group {name} has two members with {duplicates[0]}")
        for name, transaction in history.transactions.items():
            if len(transaction.coordinators) > 1:
                missing.append(f"transactional id {name} has the coordinators {transaction.coordinators}")
            if transaction.state in _ENDING:
                missing.append(f"transactional id {name} is in {transaction.state}")
            if transaction.left is not None and transaction.left < -_LATE:
                missing.append(f"the transaction of {name} has been open for {-transaction.left:.0f} s too long")
        ends = {
            place: max(replica.high_watermark for replica in replicas if replica.leads)
            for place, replicas in history.replicas.items()
            if any(replica.leads for replica in replicas)
        }
        for (name, topic, partition), offset in sorted(history.offsets.items()):
            end = ends.get((topic, partition))
            if end is not None and offset > end:
                missing.append(f"{name} has committed {topic}-{partition} up to {offset}, and it ends at {end}")
        return Verdict(
            len(history.groups) + len(history.transactions), "group or transactional id", tuple(wrong), tuple(missing)
        )

    return Check("state is consistent", look)
