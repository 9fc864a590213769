"""The server-side assignors `uniform` and `range` (KIP-848).

Both compute the next target assignment from the members' subscriptions, the topics' partition counts and the current
target. They are deterministic, whatever the order of their input.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping

Partition = tuple[uuid.UUID, int]
"""A topic's id and a partition's index."""

Assignment = frozenset[Partition]
NOTHING: Assignment = frozenset()

Subscriptions = Mapping[str, frozenset[uuid.UUID]]
"""The ids of the topics that each member subscribes to, by member id."""

Assignor = Callable[[Subscriptions, Mapping[uuid.UUID, int], Mapping[str, Assignment]], dict[str, Assignment]]


def by_range(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], _: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Assign each subscriber a range of a topic's partitions, by member id. The first members may get one more."""
    assigned: dict[str, set[Partition]] = {member: set() for member in members}
    for topic, count in topics.items():
        readers = sorted(member for member, subscribed in members.items() if topic in subscribed)
        start = 0
        for place, member in enumerate(readers):
            size = count // len(readers) + (place < count % len(readers))
            assigned[member].update((topic, index) for index in range(start, start + size))
            start += size
    return {member: frozenset(partitions) for member, partitions in assigned.items()}


def uniform(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], present: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Assign the partitions of all topics evenly, and move as few partitions as possible."""
    if not members:
        return {}
    if len(set(members.values())) == 1:
        return _assign_evenly(members, topics, present)
    return _assign_greedily(members, topics, present)


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": by_range}
"""The assignors by name. The first is the default."""


def _assign_evenly(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], present: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Assign equally many partitions (+-1) to members with the same subscription. O(partitions log partitions)."""
    (subscribed,) = set(members.values())
    free = {(topic, index) for topic, count in topics.items() if topic in subscribed for index in range(count)}
    least, extra = divmod(len(free), len(members))
    assigned: dict[str, list[Partition]] = {}
    # Members with the most partitions get the extra ones, so that as few as possible move.
    for member in sorted(members, key=lambda member: (-len(present.get(member, NOTHING) & free), member)):
        own_partitions = sorted(present.get(member, NOTHING) & free)
        share = least + (extra > 0)
        extra -= 1
        assigned[member] = own_partitions[:share]
        free.difference_update(assigned[member])
    remaining = sorted(free, reverse=True)
    least, extra = divmod(sum(map(len, assigned.values())) + len(remaining), len(members))
    for place, member in enumerate(sorted(members, key=lambda member: (-len(assigned[member]), member))):
        while remaining and len(assigned[member]) < least + (place < extra):
            assigned[member].append(remaining.pop())
    return {member: frozenset(partitions) for member, partitions in assigned.items()}


def _assign_greedily(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], present: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Assign free partitions to the least loaded subscribers, then move some to balance. Subscriptions may differ."""
    readers = {
        topic: sorted(member for member, subscribed in members.items() if topic in subscribed) for topic in topics
    }
    assigned: defaultdict[str, set[Partition]] = defaultdict(set)
    free = {(topic, index) for topic, count in topics.items() if readers[topic] for index in range(count)}
    for member in sorted(members):
        assigned[member] = {
            candidate
            for candidate in present.get(member, NOTHING)
            if candidate in free and candidate[0] in members[member]
        }
        free -= assigned[member]

    def least_loaded(topic: uuid.UUID) -> str:
        return min(readers[topic], key=lambda member: (len(assigned[member]), member))

    for partition in sorted(free, key=lambda candidate: (len(readers[candidate[0]]), candidate)):
        assigned[least_loaded(partition[0])].add(partition)
    moved = True
    while moved:  # each move reduces the sum of squares, so this ends
        moved = False
        for member in sorted(members, key=lambda member: (-len(assigned[member]), member)):
            for partition in sorted(assigned[member]):
                receiver = least_loaded(partition[0])
                if len(assigned[member]) - len(assigned[receiver]) > 1:
                    assigned[member].remove(partition)
                    assigned[receiver].add(partition)
                    moved = True
    return {member: frozenset(assigned[member]) for member in members}
