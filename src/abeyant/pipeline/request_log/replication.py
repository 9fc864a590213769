"""Extract facts about replication from a request: followers' offsets, leaders' appends, and which replicas are in sync.

    fetched     a follower's fetch offset: the follower has all records before this offset. The leader may move the
                high watermark while it handles the fetch. An incremental fetch session lists only the partitions with
                a change: a partition that is not listed still has its last offset, so nothing is lost.
    appended    a produce's first offset in a partition, known from its response
    refused     a produce found fewer replicas in sync than `min.insync.replicas` asks for
    watermark   a high watermark in a fetch's response: the end of some batch
    isr         the leader changed the set of replicas in sync (ALTER_PARTITION, in a controller's log)
    asking      the leader requested such a change: from then on the high watermark waits for replicas that are to join
    metadata    leader and replicas in sync, as a METADATA response has them: true at some earlier time

Independent of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from abeyant.pipeline.request_log.body import integer, is_raft, items, replica_id, topic_name
from abeyant.pipeline.request_log.line import ApiRequest, BadLineError
from abeyant.pipeline.request_log.operation import operation

__all__ = ["Fact", "facts"]

_ALL: Final = -1
_REFUSED: Final = (19, 20)  # NOT_ENOUGH_REPLICAS, and the same after the append


class Fact(NamedTuple):
    """One fact about a partition from a request. Fields that the request does not have are None."""

    key: str
    """`topic-partition`."""
    what: str
    at_us: int
    offset: int | None = None
    replica: int | None = None
    """Id of the fetching replica; in `isr`, `asking` and `metadata`, the leader's id."""
    in_sync: list[int] | None = None
    handling_ms: float | None = None
    """How long the leader handled the request, in ms; the handling ended at `at_us`."""
    timeout_ms: int | None = None
    """Time-out of a produce that was appended with acks=all; else None. So are `outcome` and `waited_ms`."""
    outcome: str | None = None
    waited_ms: float | None = None


def facts(request: ApiRequest, topics: Mapping[str, str]) -> Iterator[Fact]:
    """Yield the facts in a request; most have none. Raises `BadLineError` for a body that Kafka does not write."""
    tell = _TELLING.get(request.api)
    if tell is None or request.response is None or request.request is None:
        return
    try:
        yield from tell(request, request.request, request.response, topics)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, BadLineError):
            raise
        raise BadLineError(f"unexpected body of {request.api}: {error}") from error


def _produce(
    request: ApiRequest, body: Mapping[str, Any], response: Mapping[str, Any], topics: Mapping[str, str]
) -> Iterator[Fact]:
    replicated = integer(body, "acks", _ALL) == _ALL
    found = operation(request, topics)
    ended = (found.timeout_ms, found.outcome, request.wait_us / 1000) if replicated else (None, None, None)
    for key, partition in _partitions(response, "responses", "partitionResponses", "index", topics):
        base = integer(partition, "baseOffset")
        if integer(partition, "errorCode") in _REFUSED:
            yield Fact(key, "refused", request.start_us)
        if base >= 0:
            yield Fact(key, "appended", request.start_us, base, None, None, request.local_ms, *ended)


def _fetch(
    request: ApiRequest, body: Mapping[str, Any], response: Mapping[str, Any], topics: Mapping[str, str]
) -> Iterator[Fact]:
    if is_raft(request):
        return
    replica = replica_id(body)
    if replica >= 0:
        for key, partition in _partitions(body, "topics", "partitions", "partition", topics):
            offset = integer(partition, "fetchOffset")
            yield Fact(key, "fetched", request.start_us, offset, replica, None, request.local_ms)
    answered_us = request.start_us + request.wait_us
    for key, partition in _partitions(response, "responses", "partitions", "partitionIndex", topics):
        offset = integer(partition, "highWatermark", -1)
        if offset >= 0:
            yield Fact(key, "watermark", answered_us, offset)


def _alter_partition(
    request: ApiRequest, body: Mapping[str, Any], response: Mapping[str, Any], topics: Mapping[str, str]
) -> Iterator[Fact]:
    asked_us = request.start_us - round(request.local_ms * 1000)
    for key, partition in _partitions(response, "topics", "partitions", "partitionIndex", topics):
        if integer(partition, "errorCode", 0) == 0:
            leader, in_sync = integer(partition, "leaderId"), list(partition["isr"])
            yield Fact(key, "asking", asked_us, None, leader, in_sync)
            yield Fact(key, "isr", request.sent_us, None, leader, in_sync)


def _metadata(
    request: ApiRequest, body: Mapping[str, Any], response: Mapping[str, Any], topics: Mapping[str, str]
) -> Iterator[Fact]:
    for key, partition in _partitions(response, "topics", "partitions", "partitionIndex", topics):
        if integer(partition, "errorCode", 0) == 0:
            leader, in_sync = integer(partition, "leaderId"), list(partition["isrNodes"])
            yield Fact(key, "metadata", request.sent_us, None, leader, in_sync)


_TELLING: Final = {
    "PRODUCE": _produce,
    "FETCH": _fetch,
    "ALTER_PARTITION": _alter_partition,
    "ALTER_ISR": _alter_partition,  # its name from Kafka 2.7 to 3.1
    "METADATA": _metadata,
}


def _partitions(
    body: Mapping[str, Any], outer: str, inner: str, index: str, topics: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (key, partition) for each partition in a body. `outer`, `inner` and `index` are the API's field names."""
    for topic in items(body, outer):
        name = topic_name(topic, topics)
        for partition in items(topic, inner):
            yield f"{name}-{integer(partition, index)}", partition
