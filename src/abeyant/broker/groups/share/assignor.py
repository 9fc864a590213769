"""The server-side assignor of share groups, `simple`: a partition may have several members.

Members with the same subscription share the partitions evenly. If there are more members than partitions, each member
gets one or two partitions, and the partitions have about equally many members. Otherwise each partition has one member,
and the members have about equally many partitions. Members keep their partitions as far as this balance allows.
Deterministic, whatever the order of its input. Kafka: `SimpleAssignor`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping

from abeyant.broker.groups.consumer.assignors import NOTHING, Assignment, Subscriptions


def assign(
    members: Subscriptions, partitions: Mapping[uuid.UUID, Collection[int]], present: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Return each member's partitions. `partitions` are all assignable ones, `present` is the previous assignment.

    O(members x partitions) if members differ in their subscriptions.
    """
    sizes: Counter[frozenset[uuid.UUID]] = Counter(members.values())
    assigned: dict[str, Assignment] = {}
    total_counts: Counter[tuple[uuid.UUID, int]] = Counter()
    for subscribed in sorted(sizes, key=sorted):
        subscribers = sorted(member for member, topics in members.items() if topics == subscribed)
        targets = [(topic, index) for topic in sorted(subscribed) for index in sorted(partitions.get(topic, ()))]
        shares = _shares(len(subscribers), len(targets))
        limit = -(-sum(shares) // len(targets)) if targets else 0
        current = {
            member: _assigned_of(present.get(member, NOTHING), targets, share)
            for member, share in zip(subscribers, shares, strict=True)
        }
        counts: Counter[tuple[uuid.UUID, int]] = Counter()
        for member in subscribers:
            member_targets = {target for target in current[member] if counts[target] < limit}
            counts.update(member_targets)
            current[member] = member_targets
        for member, share in zip(subscribers, shares, strict=True):
            member_targets = current[member]
            while len(member_targets) < share:
                free = [target for target in targets if target not in member_targets]
                best = min(free, key=lambda target: (counts[target], total_counts[target], targets.index(target)))
                member_targets.add(best)
                counts[best] += 1
            assigned[member] = frozenset(member_targets)
        total_counts.update(counts)
    return assigned


def _shares(members: int, partitions: int) -> list[int]:
    """Return how many partitions each of `members` members gets. The sum is a multiple of `partitions`."""
    if not partitions:
        return [0] * members
    total = -(-members // partitions) * partitions
    return [min(total * (n + 1) // members - total * n // members, partitions) for n in range(members)]


def _assigned_of(present: Assignment, targets: list[tuple[uuid.UUID, int]], share: int) -> set[tuple[uuid.UUID, int]]:
    return set(sorted(present.intersection(targets))[:share])
