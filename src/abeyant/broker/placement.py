"""Place the replicas of new partitions, and check assignments and topic names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

_LONGEST_NAME = 249
_MOST_PARTITIONS = 10_000  # per request, as in Kafka
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def place_replicas(
    first: int, partitions: int, replication: int, brokers: Sequence[int], racks: Mapping[int, str | None]
) -> list[tuple[int, ...]]:
    """Return the replicas of `partitions` partitions, placed round robin; `first` is the index of the first.

    A partition's replicas are spread evenly over the `racks`, as far as these have enough brokers.
    The lowest broker leads partition 0, so that tests know the leaders. (Kafka starts at a random broker.)
    Raises ApiError for too few brokers, no partitions, or more than 10,000.
    """
    if partitions < 1:
        raise ApiError(ErrorCode.invalid_partitions, "Number of partitions was set to an invalid non-positive value.")
    if replication < 1:
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions > _MOST_PARTITIONS:
        raise ApiError(ErrorCode.policy_violation, "Excessively large number of partitions per request.")
    if replication > len(brokers):
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            f"Unable to replicate the partition {replication} time(s): The target replication factor of {replication} "
            f"cannot be reached because only {len(brokers)} broker(s) are registered or some brokers have "
            "all their log directories cordoned.",
        )
    count = len(brokers)
    several = len({racks.get(broker) for broker in brokers}) > 1
    return [
        _spread([*brokers[index % count :], *brokers[: index % count]], replication, racks)
        if several
        else tuple(brokers[(index + replica) % count] for replica in range(replication))
        for index in range(first, first + partitions)
    ]


def _spread(brokers: list[int], replication: int, racks: Mapping[int, str | None]) -> tuple[int, ...]:
    """Choose a partition's brokers: each time the first one left on the least used rack. O(replication * brokers)."""
    used: Counter[str | None] = Counter()
    chosen = []
    for _ in range(replication):
        broker = min(brokers, key=lambda one: used[racks.get(one)])  # the first of several equal ones
        brokers.remove(broker)
        used[racks.get(broker)] += 1
        chosen.append(broker)
    return tuple(chosen)


def check_assignments(
    partitions: int, replication: int, assignments: Mapping[int, Sequence[int]], registered: Collection[int]
) -> list[tuple[int, ...]]:
    """Return a client's manual assignments by partition index.

    Raises ApiError if an assignment is invalid, or `partitions` or `replication` is not -1.
    """
    if replication != -1:
        raise ApiError(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if partitions != -1:
        raise ApiError(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    for index in range(len(assignments)):
        if index not in assignments:
            raise ApiError(
                ErrorCode.invalid_replica_assignment, "partitions should be a consecutive 0-based integer sequence"
            )
    size = len(assignments[0])
    for index in range(len(assignments)):
        check_replicas(assignments[index], registered, size if index else None)
    return [tuple(assignments[index]) for index in range(len(assignments))]


def check_replicas(replicas: Sequence[int], registered: Collection[int], size: int | None) -> None:
    """Raise ApiError for an invalid list of replicas. `size` is the topic's replication factor, if known."""
    if not replicas:
        raise ApiError(
            ErrorCode.invalid_replica_assignment, "The manual partition assignment includes an empty replica list."
        )
    seen = set()
    for broker in sorted(replicas):
        if broker in seen:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"The manual partition assignment includes the broker {broker} more than once.",
            )
        seen.add(broker)
        if broker not in registered:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"The manual partition assignment includes broker {broker}, but no such broker is registered.",
            )
    if size is not None and len(replicas) != size:
        raise ApiError(
            ErrorCode.invalid_replica_assignment,
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {size} replica(s).",
        )


def check_name(name: str, existing: Collection[str]) -> None:
    """Raise ApiError if a new topic's name is invalid, exists, or collides with an existing topic's name."""
    complaint = invalid_name(name)
    if complaint is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, complaint)
    if name in existing:
        raise ApiError(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    if "." in name or "_" in name:  # metric names do not distinguish these
        alike = next((other for other in existing if other.replace(".", "_") == name.replace(".", "_")), None)
        if alike is not None:
            raise ApiError(ErrorCode.invalid_topic_exception, f"Topic '{name}' collides with existing topic: {alike}")


def invalid_name(name: str) -> str | None:
    """Return Kafka's message for an invalid topic name; None for a valid name."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > _LONGEST_NAME:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {_LONGEST_NAME}"
    if not _NAME.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', "
            "'_' and '-'"
        )
    return None
