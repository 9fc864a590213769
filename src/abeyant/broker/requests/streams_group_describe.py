"""StreamsGroupDescribe (key 89, versions 0-0): describe streams groups: their topology, members and tasks.

Kafka: `GroupMetadataManager.streamsGroupDescribe`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.streams.group import StreamsGroup, StreamsMember
from abeyant.broker.groups.streams.tasks import NO_TASKS, Tasks, task_rows
from abeyant.broker.groups.streams.topology import KeyValue, TopicInfo, Topology
from abeyant.broker.requests.common.allowed import may_describe
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.features import require_streams
from abeyant.broker.requests.common.results import results
from abeyant.broker.requests.common.topics import GROUP_OPERATIONS, NO_OPERATIONS
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Respond with a result for each group."""
    require_streams(call)
    call.answer(Message(groups=results(call.request.group_ids, partial(_group, call), _failed)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(groups=results(request.group_ids, error, _failed))


def _failed(group_id: str, error: ErrorCode) -> Message:
    return Message(group_id=group_id, error_code=error)


def _group(call: Call, group_id: str) -> Message:
    group = group_shard(call, group_id, expire_overdue=True).streams_group(group_id)
    if group.topology is not None and not all(may_describe(call, name) for name in _topic_names(group.topology)):
        text = "The described group uses topics that the client is not authorized to describe."
        raise ApiError(ErrorCode.topic_authorization_failed, text)
    return Message(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        topology=_topology(group),
        members=[_member(group, member) for member in group.members.values()],
        authorized_operations=GROUP_OPERATIONS if call.request.include_authorized_operations else NO_OPERATIONS,
    )


def _topic_names(topology: Topology) -> set[str]:
    """Return the names of a topology's topics, including its internal topics."""
    return {
        name
        for one in topology.subtopologies
        for name in (
            *one.source_topics,
            *one.repartition_sink_topics,
            *(topic.name for topic in (*one.state_changelog_topics, *one.repartition_source_topics)),
        )
    }


def _topology(group: StreamsGroup) -> Message | None:
    """Return the group's topology, with the partition counts of its internal topics once all topics exist."""
    if group.topology is None:
        return None
    configured = group.configured
    parts = group.topology.subtopologies
    if configured is not None and configured.status is None:
        parts = configured.subtopologies
    return Message(
        epoch=group.topology.epoch,
        subtopologies=[
            Message(
                subtopology_id=one.subtopology_id,
                source_topics=sorted(one.source_topics),
                repartition_sink_topics=sorted(one.repartition_sink_topics),
                state_changelog_topics=_topics(one.state_changelog_topics),
                repartition_source_topics=_topics(one.repartition_source_topics),
            )
            for one in parts
        ],
    )


def _topics(topics: Iterable[TopicInfo]) -> list[Message]:
    return [
        Message(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=_key_values(topic.topic_configs),
        )
        for topic in sorted(topics)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> Message:
    endpoint = member.user_endpoint
    return Message(
        member_id=member.id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Message(host=endpoint.host, port=endpoint.port),
        client_tags=_key_values(member.client_tags),
        task_offsets=[],
        task_end_offsets=[],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target.get(member.id, NO_TASKS)),
        is_classic=False,
    )


def _assignment(tasks: Tasks) -> Message:
    return Message(active_tasks=task_rows(tasks.active), standby_tasks=task_rows(tasks.standby), warmup_tasks=[])


def _key_values(pairs: Iterable[KeyValue]) -> list[Message]:
    return [Message(key=one.key, value=one.value) for one in pairs]
