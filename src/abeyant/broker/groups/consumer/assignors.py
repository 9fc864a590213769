"""The server-side assignors `uniform` and `range` (KIP-848).

Both are functions of the members' subscriptions, the topics' partition counts and the current target assignment, and
return the next target assignment. They are deterministic, whatever the order of their input.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping

Partition = tuple[uuid.UUID, int]
"""A topic's id, and a partition's index."""

Assignment = frozenset[Partition]
NOTHING: Assignment = frozenset()

Subscriptions = Mapping[str, frozenset[uuid.UUID]]
"""By member: the topics."""

Assignor = Callable[[Subscriptions, Mapping[uuid.UUID, int], Mapping[str, Assignment]], dict[str, Assignment]]


def by_range(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], _: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Assign each member a range of each topic's partitions, in the order of member ids; the first get one more."""
    given: dict[str, set[Partition]] = {member: set() for member in members}
    for topic, count in topics.items():
        readers = sorted(member for member, subscribed in members.items() if topic in subscribed)
        start = 0
        for place, member in enumerate(readers):
            size = count // len(readers) + (place < count % len(readers))
            given[member].update((topic, index) for index in range(start, start + size))
            start += size
    return {member: frozenset(partitions) for member, partitions in given.items()}


def uniform(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], present: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Balance partitions over all topics, and move as few as that allows."""
    if not members:
        return {}
    if len(set(members.values())) == 1:
        return _evenly(members, topics, present)
    return _greedily(members, topics, present)


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": by_range}
"""By their names; the first is what a group has that does not choose."""


def _evenly(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], present: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Assign where all subscribe to the same topics: equal shares, some one more. O(partitions log partitions)."""
    (subscribed,) = set(members.values())
    free = {(topic, index) for topic, count in topics.items() if topic in subscribed for index in range(count)}
    least, more = divmod(len(free), len(members))
    kept: dict[str, list[Partition]] = {}
    # Members that have most get the extra ones, so that as few as possible move.
    for member in sorted(members, key=lambda member: (-len(present.get(member, NOTHING) & free), member)):
        mine = sorted(present.get(member, NOTHING) & free)
        share = least + (more > 0)
        more -= 1
        kept[member] = mine[:share]
        free.difference_update(kept[member])
    left = sorted(free, reverse=True)
    least, more = divmod(sum(map(len, kept.values())) + len(left), len(members))
    for place, member in enumerate(sorted(members, key=lambda member: (-len(kept[member]), member))):
        while left and len(kept[member]) < least + (place < more):
            kept[member].append(left.pop())
    return {member: frozenset(partitions) for member, partitions in kept.items()}


def _greedily(
    members: Subscriptions, topics: Mapping[uuid.UUID, int], present: Mapping[str, Assignment]
) -> dict[str, Assignment]:
    """Assign where subscriptions differ: free partitions to the least loaded, then moves while they balance."""
    readers = {
        topic: sorted(member for member, subscribed in members.items() if topic in subscribed) for topic in topics
    }
    given: defaultdict[str, set[Partition]] = defaultdict(set)
    free = {(topic, index) for topic, count in topics.items() if readers[topic] for index in range(count)}
    for member in sorted(members):
        given[member] = {one for one in present.get(member, NOTHING) if one in free and one[0] in members[member]}
        free -= given[member]

    def poorest(topic: uuid.UUID) -> str:
        return min(readers[topic], key=lambda member: (len(given[member]), member))

    for partition in sorted(free, key=lambda one: (len(readers[one[0]]), one)):
        given[poorest(partition[0])].add(partition)
    moved = True
    while moved:  # each move reduces the sum of squares, so this ends
        moved = False
        for member in sorted(members, key=lambda member: (-len(given[member]), member)):
            for partition in sorted(given[member]):
                other = poorest(partition[0])
                if len(given[member]) - len(given[other]) > 1:
                    given[member].remove(partition)
                    given[other].add(partition)
                    moved = True
    return {member: frozenset(given[member]) for member in members}
