"""Remove from responses the rows that the client did not request by name and may not describe."""

from __future__ import annotations

from typing import Any, Final

from abeyant.broker.acls import (
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
)
from abeyant.broker.requests.common.allowed import allows, topic_name
from abeyant.broker.requests.common.rights import FAILED
from abeyant.broker.wire.schema import ErrorCode

__all__ = ["hide"]

_NO_OPERATIONS: Final = -(1 << 31)
_SHOWING_OPERATIONS: Final = (
    "Metadata", "DescribeTopicPartitions", "DescribeCluster", "DescribeGroups", "ConsumerGroupDescribe",
    "ShareGroupDescribe", "StreamsGroupDescribe",
)  # fmt: skip


def hide(call: Any) -> None:
    """Add functions to `call.amendments` that remove from the response what the client may not describe."""
    api = call.api.name
    if api in ("Metadata", "DescribeTopicPartitions") and not call.request.topics and not call.amendments:
        call.amendments.append(lambda response: _keep(call, response, "topics", "name", DESCRIBE, TOPIC))
    if api == "ListGroups" and not allows(call, DESCRIBE, CLUSTER, CLUSTER_NAME):
        call.amendments.append(lambda response: _keep(call, response, "groups", "group_id", DESCRIBE, GROUP))
    if api == "ListTransactions":
        what = "transaction_states", "transactional_id", DESCRIBE, TRANSACTIONAL_ID
        call.amendments.append(lambda response: _keep(call, response, *what))
    if api == "OffsetFetch":
        call.amendments.append(lambda response: _hide_offsets(call, response))
    if api == "CreateTopics":
        call.amendments.append(lambda response: _hide_configs(call, response))
    if api == "DescribeShareGroupOffsets":
        call.amendments.append(lambda response: _hide_topics(call, response))
    if api in _SHOWING_OPERATIONS:
        call.amendments.append(lambda response: _limit_operations(call, response))


def _keep(call: Any, response: Any, field: str, name: str, operation: int, kind: int) -> None:
    rows = getattr(response, field, None) or ()
    setattr(response, field, [row for row in rows if allows(call, operation, kind, getattr(row, name))])


def _hide_offsets(call: Any, response: Any) -> None:
    """Hide the offsets of topics that the client may not describe."""
    asked = {one.group_id: one.topics for one in call.request.groups or ()}
    for group in response.groups if call.request.groups is not None else (response,):
        topics = []
        all_of_them = (asked.get(group.group_id) if asked else getattr(call.request, "topics", None)) is None
        for topic in getattr(group, "topics", None) or ():
            name = getattr(topic, "name", None) or topic_name(call, getattr(topic, "topic_id", None))
            if name is None or allows(call, DESCRIBE, TOPIC, name):
                topics.append(topic)
            elif not all_of_them:
                for one in topic.partitions:
                    one.error_code, one.committed_offset = FAILED[TOPIC], -1
                    one.committed_leader_epoch, one.metadata = -1, ""
                topics.append(topic)
        group.topics = topics


def _hide_configs(call: Any, response: Any) -> None:
    """Hide new topics' settings, partition count and replication factor unless the client may describe settings."""
    for topic in response.topics:
        if topic.error_code is ErrorCode.none and not allows(call, DESCRIBE_CONFIGS, TOPIC, topic.name):
            topic.configs, topic.num_partitions, topic.replication_factor = [], -1, -1
            topic.topic_config_error_code = FAILED[TOPIC].value


def _hide_topics(call: Any, response: Any) -> None:
    """If the request is for all topics of a group, remove the topics that the client may not describe."""
    every = {group.group_id for group in call.request.groups if group.topics is None}
    for group in response.groups:
        if group.group_id in every:
            group.topics = [one for one in group.topics if allows(call, DESCRIBE, TOPIC, one.topic_name)]


def _limit_operations(call: Any, response: Any) -> None:
    """Remove the operations that the client may not perform from the response's authorized operations."""
    rows = [(response, "cluster_authorized_operations", CLUSTER, CLUSTER_NAME)]
    rows += [(row, "topic_authorized_operations", TOPIC, row.name) for row in getattr(response, "topics", None) or ()]
    rows += [(row, "authorized_operations", GROUP, row.group_id) for row in getattr(response, "groups", None) or ()]
    for row, field, kind, name in rows:
        every = getattr(row, field, _NO_OPERATIONS)
        if every != _NO_OPERATIONS and name is not None:
            bits = (bit for bit in range(READ, IDEMPOTENT_WRITE + 1) if every >> bit & 1)
            setattr(row, field, sum(1 << bit for bit in bits if allows(call, bit, kind, name)))
