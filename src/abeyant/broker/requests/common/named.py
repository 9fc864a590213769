"""Find the topics, partitions, groups and members that a request names. Used by faults and `Cluster.waiting`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abeyant.broker.partition_state import Topic
    from abeyant.broker.requests.common.call import Call

REPLICA_FETCH = "ReplicaFetch"
"""The API name of a follower's fetch in faults; "Fetch" is the name of a client's fetch."""

NAME_PARTITIONS = frozenset(
    {
        "AddPartitionsToTxn", "AlterPartitionReassignments", "AlterReplicaLogDirs", "DeleteRecords", "DescribeLogDirs",
        "DescribeProducers", "DescribeQuorum", "ElectLeaders", "Fetch", "ListOffsets", "ListPartitionReassignments",
        "AlterShareGroupOffsets", "DeleteShareGroupState", "DescribeShareGroupOffsets", "InitializeShareGroupState",
        "OffsetCommit", "OffsetDelete", "OffsetFetch",
        "OffsetForLeaderEpoch", "Produce", "ReadShareGroupState", "ReadShareGroupStateSummary", "ShareAcknowledge",
        "ShareFetch", "TxnOffsetCommit", "WriteShareGroupState", "WriteTxnMarkers",
    }
)  # fmt: skip
"""The APIs whose requests name partitions."""

NAME_TOPICS = NAME_PARTITIONS | {
    "CreatePartitions", "CreateTopics", "DeleteShareGroupOffsets",
    "DeleteTopics", "DescribeTopicPartitions", "Metadata",
}  # fmt: skip
"""The APIs whose requests name topics."""

NAME_NEW_TOPICS = frozenset({"CreateTopics", "Metadata"})
"""The APIs whose requests may name topics that do not exist yet."""

NAME_GROUPS = frozenset(
    {
        "AddOffsetsToTxn", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "DeleteGroups", "DescribeGroups",
        "FindCoordinator", "Heartbeat", "JoinGroup", "LeaveGroup", "OffsetCommit", "OffsetDelete", "OffsetFetch",
        "DeleteShareGroupState", "InitializeShareGroupState", "ReadShareGroupState", "ReadShareGroupStateSummary",
        "ShareAcknowledge", "ShareFetch", "ShareGroupDescribe", "ShareGroupHeartbeat", "SyncGroup", "TxnOffsetCommit",
        "AlterShareGroupOffsets", "DeleteShareGroupOffsets", "DescribeShareGroupOffsets",
        "StreamsGroupDescribe", "StreamsGroupHeartbeat", "WriteShareGroupState",
    }
)  # fmt: skip
"""The APIs whose requests name groups."""

NAME_TRANSACTIONS = frozenset(
    {
        "AddOffsetsToTxn", "AddPartitionsToTxn", "DescribeTransactions", "EndTxn", "FindCoordinator", "InitProducerId",
        "Produce", "TxnOffsetCommit",
    }
)  # fmt: skip
"""The APIs whose requests name transactional ids."""

ALL = "*"  # the request names all topics; no topic can have this name

_SEVERAL = ("markers", "transactions", "groups", "dirs")  # arrays whose elements name topics
_TOPICS = ("topic_data", "topics", "v3_and_below_topics", "topic_partitions")
_PARTITIONS = ("partition_data", "partitions", "partition_indexes")
_INDEX = ("index", "partition", "partition_index")
_NO_ID = uuid.UUID(int=0)


def name_of(call: Any) -> str:
    """Return the API name of a `Call` or `ReplicaFetchCall`, as used in faults."""
    return REPLICA_FETCH if hasattr(call, "fetch") else call.api.name


def is_about(call: Call, topic: str, partition: int | None) -> bool:
    """Return whether a request names this topic, and this partition unless it is None."""
    return any(
        name in (topic, ALL) and (partition is None or name == ALL or partition == index)
        for name, index in _partitions(call)
    )


def keys_of(call: Any) -> tuple[tuple[str, int | str], ...]:
    """Return the partitions that a request names, or else its group and member, if any."""
    if hasattr(call, "fetch"):
        return tuple((position.topic, position.partition) for position in call.fetch.positions)
    keys = {(name, index): None for name, index in _partitions(call) if name is not None and index is not None}
    if keys:
        return tuple(keys)
    group = getattr(call.request, "group_id", None)
    return () if group is None else ((group, getattr(call.request, "member_id", None) or ""),)


def groups_of(call: Any) -> set[str]:
    """Return the groups that a request names."""
    if call.api.name not in NAME_GROUPS or call.request is None:
        return set()
    return _ids_of(call.request, ("group_id",), ("groups", "group_ids", "groups_names"), key_type=0)


def transactional_ids_of(call: Any) -> set[str]:
    """Return the transactional ids that a request names."""
    if call.api.name not in NAME_TRANSACTIONS or call.request is None:
        return set()
    fields = ("transactional_id", "v3_and_below_transactional_id")
    return _ids_of(call.request, fields, ("transactions", "transactional_ids"), key_type=1)


def _ids_of(request: Any, id_fields: Iterable[str], list_fields: Iterable[str], *, key_type: int) -> set[str]:
    """Return the ids in a request's `id_fields`, and in `list_fields`: lists of ids, or of messages with `id_fields`.

    A FindCoordinator request with this `key_type` has the ids in `key` and `coordinator_keys`.
    """
    ids = {getattr(request, field, None) for field in id_fields}
    for field in list_fields:
        for part in getattr(request, field, None) or ():
            ids |= {part} if isinstance(part, str) else {getattr(part, name, None) for name in id_fields}
    if getattr(request, "key_type", None) == key_type:  # FindCoordinator
        ids |= {getattr(request, "key", None), *(getattr(request, "coordinator_keys", None) or ())}
    return {id_ for id_ in ids if id_}


def _partitions(call: Any) -> Iterator[tuple[str | None, int | None]]:
    by_id = call.broker.cluster.controller.by_id
    if call.api.name == "Fetch" and call.request is not None:
        for session_topic, session_id, index in call.broker.fetch_sessions.session_keys(call.request):
            yield session_topic or _name_by_id(session_id, by_id), index
    if call.api.name in NAME_TOPICS:
        yield from _named(call.request, by_id)


def _named(request: Any, by_id: Mapping[uuid.UUID, Topic]) -> Iterator[tuple[str | None, int | None]]:
    """Yield the topics and partitions in a message's fields; `ALL` for a null array of topics."""
    for field in _SEVERAL:
        for element in getattr(request, field, None) or ():
            yield from _named(element, by_id)
    topics = _first_of(request, _TOPICS)
    if topics is None and any(hasattr(request, field) for field in _TOPICS):
        yield ALL, None
    for topic in topics or ():
        name = topic if isinstance(topic, str) else _topic_name(topic, by_id)
        yield name, None
        for partition in _first_of(topic, _PARTITIONS) or ():
            yield name, _index(partition)
    for name in getattr(request, "topic_names", None) or ():
        yield name, None


def _first_of(message: Any, fields: Iterable[str]) -> Iterable[Any] | None:
    return next((value for field in fields if (value := getattr(message, field, None)) is not None), None)


def _topic_name(topic: Any, by_id: Mapping[uuid.UUID, Topic]) -> str | None:
    name = next((value for field in ("name", "topic", "topic_name") if (value := getattr(topic, field, None))), None)
    return name or _name_by_id(getattr(topic, "topic_id", None), by_id)


def _name_by_id(topic_id: uuid.UUID | None, by_id: Mapping[uuid.UUID, Topic]) -> str | None:
    topic = by_id.get(topic_id or _NO_ID)
    return None if topic is None else topic.name


def _index(partition: Any) -> int | None:
    if isinstance(partition, int):
        return partition
    return next((int(getattr(partition, field)) for field in _INDEX if hasattr(partition, field)), None)
