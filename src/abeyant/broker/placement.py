"""Which brokers hold a new partition's replicas, and what a topic may be called."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

_LONGEST_NAME = 249
_MOST_PARTITIONS = 10_000  # that are made at once, as in Kafka: four bytes could ask for two billion
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def placed(first: int, partitions: int, replication: int, brokers: Sequence[int]) -> list[tuple[int, ...]]:
    """Replicas for `partitions` partitions, the first of them with index `first`: round robin.

    Partition 0 is led by the lowest broker, so that a test knows who leads what. (Kafka begins with a random one.)
    Raises ApiError where there are not enough brokers, more than 10,000 partitions are asked for, or none.
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
    return [
        tuple(brokers[(index + replica) % count] for replica in range(replication))
        for index in range(first, first + partitions)
    ]


def assigned(
    partitions: int, replication: int, assignments: Mapping[int, Sequence[int]], registered: Collection[int]
) -> list[tuple[int, ...]]:
    """Replicas as a client gives them; then both numbers must be -1. Raises ApiError for what cannot be."""
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
    """Refuse what cannot be a partition's replicas; `size` is how many the others have. Raises ApiError."""
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


def check_name(name: str, present: Collection[str]) -> None:
    """Refuse what no new topic may be called. Raises ApiError."""
    complaint = complaint_about(name)
    if complaint is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, complaint)
    if name in present:
        raise ApiError(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    if "." in name or "_" in name:  # in metrics' names the two are the same
        alike = next((other for other in present if other.replace(".", "_") == name.replace(".", "_")), None)
        if alike is not None:
            raise ApiError(ErrorCode.invalid_topic_exception, f"Topic '{name}' collides with existing topic: {alike}")


def complaint_about(name: str) -> str | None:
    """Why no topic can be called `name`, in Kafka's words; None where one can."""
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
