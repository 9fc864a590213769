"""The messages between a follower and its leader. In Kafka: a Fetch request in a session, and its response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from abeyant.broker.log import Batch
from abeyant.broker.wire.schema import ErrorCode

Key = tuple[str, int]  # topic and partition


class Position(NamedTuple):
    """The offset from which a follower fetches one partition. Fetches list only positions that have changed."""

    topic: str
    partition: int
    leader_epoch: int  # as the follower knows it
    offset: int
    last_epoch: int  # of its last record, -1 if there is none
    start: int


class ReplicaFetch(NamedTuple):
    """A follower's fetch of all partitions that it follows on one leader, in a session."""

    follower: int
    number: int  # of the session; the first fetch of a session has all positions
    positions: list[Position]
    forgotten: list[Key]


class PartitionResponse(NamedTuple):
    """The response for one partition: new records and offsets, an error, or where to truncate."""

    topic: str
    partition: int
    leader_epoch: int
    error: ErrorCode | None
    records: Sequence[Batch] | None = None
    high_watermark: int = -1
    start: int = -1
    end: int = -1  # the leader's log end offset; with `truncate_to`, the leader epoch that ends there
    truncate_to: int = -1  # where the follower's log diverges from the leader's; -1 if it does not


class ReplicaResponse(NamedTuple):
    """The response to a `ReplicaFetch`."""

    leader: int
    number: int
    partitions: list[PartitionResponse]
