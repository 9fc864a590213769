"""StreamsGroupHeartbeat (key 88, versions 0-0): join, stay in or leave a streams group (KIP-1071).

The response has the member's tasks. If internal topics are missing, the broker creates them. In that case, and while
the first assignment is delayed, the response sets a heartbeat interval of at most 20 ms; in Kafka members wait for a
whole interval.
Kafka: `KafkaApis.handleStreamsGroupHeartbeat`, `GroupMetadataManager.streamsGroupHeartbeat`.
Not implemented, as in Kafka 4.3: static members, source topics by pattern, warm-up tasks, changes of the topology.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from abeyant.broker.coordinator.topics import INTERNAL
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.streams.group import Endpoint, StreamsGroup, StreamsMember
from abeyant.broker.groups.streams.internal_topics import Status
from abeyant.broker.groups.streams.protocol import (
    DELAYED_AT_FIRST,
    JOINS,
    LEAVES,
    StreamsHeartbeat,
    StreamsHeartbeatResponse,
)
from abeyant.broker.groups.streams.tasks import Tasks, TaskSet, read_tasks, task_rows
from abeyant.broker.groups.streams.topology import KeyValue, TopicInfo, read_topology
from abeyant.broker.placement import invalid_name
from abeyant.broker.requests.common.allowed import may_create, may_describe
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard, host_of, milliseconds
from abeyant.broker.requests.common.features import require_streams
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

_SOON = timedelta(milliseconds=20)
_LEAVES_FOR_A_WHILE = -2
_SHOWN_ERRORS = 3


def handle(call: Call) -> None:
    """Let the member join, stay or leave, depending on the epoch in its request."""
    require_streams(call)
    request = call.request

    def answer(response: StreamsHeartbeatResponse) -> None:
        call.answer(_response(call, response))

    try:
        _check_topics(call)
        _check_supported(request)
        _check(request)
        shard = group_shard(call, request.group_id)
        heartbeat = _heartbeat(call)
        if heartbeat.epoch == LEAVES:
            shard.streams_protocol.leave(shard.streams_group(request.group_id), heartbeat, answer)
        else:
            shard.streams_heartbeat(request.group_id, heartbeat, answer)
    except ApiError as error:
        answer(StreamsHeartbeatResponse(error.code, error.message))


def error_response(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    nothing = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "partitions_by_user_endpoint"))
    return Message(error_code=error, **nothing)


def _check_topics(call: Call) -> None:
    """Raise ApiError if a topic of the topology is invalid, internal to Kafka, or hidden from the client by ACLs."""
    if call.request.topology is None:
        return
    names = read_topology(call.request.topology).all_topics
    prohibited = [name for name in names if name in INTERNAL]
    invalid = [name for name in names if invalid_name(name) is not None]
    if prohibited:
        raise ApiError(
            ErrorCode.streams_invalid_topology,
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited.",
        )
    if invalid:
        raise ApiError(
            ErrorCode.streams_invalid_topology, f"Topic names {','.join(invalid)} are not valid topic names."
        )
    if not all(may_describe(call, name) for name in names):
        raise ApiError(ErrorCode.topic_authorization_failed)


def _check_supported(request: Any) -> None:
    """Raise ApiError, with Kafka's message, if the request needs what Kafka does not support yet either."""
    parts = () if request.topology is None else request.topology.subtopologies
    _refuse(
        (request.instance_id is not None, "Static membership is not yet supported."),
        (request.task_offsets is not None, "TaskOffsets are not supported yet."),
        (request.task_end_offsets is not None, "TaskEndOffsets are not supported yet."),
        (bool(request.warmup_tasks), "WarmupTasks are not supported yet."),
        (
            any(one.source_topic_regex for one in parts),
            "Regular expressions for source topics are not supported yet.",
        ),
    )


def _check(request: Any) -> None:
    """Raise ApiError, with Kafka's message, for a request that is invalid whatever the state of its group."""
    joins, epoch, topology = request.member_epoch == JOINS, request.member_epoch, request.topology
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    _refuse(
        (not request.member_id, "MemberId can't be empty."),
        (not request.group_id, "GroupId can't be empty."),
        (request.rack_id == "", "RackId can't be empty."),
        (
            joins and milliseconds(request.rebalance_timeout) < 0,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        *(
            (joins and tasks != (), f"{kind}Tasks must be empty when (re-)joining.")
            for kind, tasks in zip(("Active", "Standby", "Warmup"), kinds, strict=True)
        ),
        (joins and topology is None, "Topology must be non-null when (re-)joining."),
    )
    if topology is not None and joins:
        for topic in (topic for one in topology.subtopologies for topic in one.state_changelog_topics):
            if topic.partitions:
                raise ApiError(
                    ErrorCode.streams_invalid_topology,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to"
                    f" {topic.partitions}.",
                )
    _refuse(
        (epoch == _LEAVES_FOR_A_WHILE, "InstanceId can't be null."),
        (epoch < _LEAVES_FOR_A_WHILE, f"MemberEpoch is {epoch}, but must be greater than or equal to -2."),
        (
            any(tasks is None for tasks in kinds) and any(tasks is not None for tasks in kinds),
            "If one task-type is non-null, all must be non-null.",
        ),
        (not joins and topology is not None, "Topology can only be provided when (re-)joining."),
    )


def _refuse(*rules: tuple[bool, str]) -> None:
    wrong = next((message for broken, message in rules if broken), None)
    if wrong is not None:
        raise ApiError(ErrorCode.invalid_request, wrong)


def _heartbeat(call: Call) -> StreamsHeartbeat:
    request = call.request
    owned = None
    if request.active_tasks is not None:
        owned = Tasks(read_tasks(request.active_tasks), read_tasks(request.standby_tasks))
    endpoint = request.user_endpoint
    tags = request.client_tags
    return StreamsHeartbeat(
        member_id=request.member_id,
        epoch=request.member_epoch,
        endpoint_epoch=request.endpoint_information_epoch,
        rack_id=request.rack_id,
        rebalance_timeout=milliseconds(request.rebalance_timeout),
        topology=None if request.topology is None else read_topology(request.topology),
        owned=owned,
        process_id=request.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else tuple(sorted(KeyValue(one.key, one.value) for one in tags)),
        shutdown=request.shutdown_application,
        client_id=call.client_id,
        client_host=host_of(call),
    )


def _response(call: Call, response: StreamsHeartbeatResponse) -> Message:
    group_id = call.request.group_id
    milliseconds = call.broker.cluster.controller.groups.value(group_id, "streams.heartbeat.interval.ms")
    interval = timedelta(milliseconds=milliseconds)
    statuses = response.statuses
    if response.missing:
        statuses = tuple(
            (code, detail + _create_topics(call, response.missing))
            if code is Status.MISSING_INTERNAL_TOPICS
            else (code, detail)
            for code, detail in statuses
        )
    waits = any(code is Status.MISSING_INTERNAL_TOPICS or detail is DELAYED_AT_FIRST for code, detail in statuses)
    stays = response.error is ErrorCode.none and response.epoch >= 0
    tasks = response.tasks
    return Message(
        error_code=response.error,
        error_message=response.message,
        member_id=response.member_id or "",
        member_epoch=response.epoch,
        heartbeat_interval=NO_TIME if not stays else min(interval, _SOON) if waits else interval,
        acceptable_recovery_lag=0,
        task_offset_interval=NO_TIME,
        status=[Message(status_code=code, status_detail=text) for code, text in statuses],
        active_tasks=None if tasks is None else task_rows(tasks.active),
        standby_tasks=None if tasks is None else task_rows(tasks.standby),
        warmup_tasks=None if tasks is None else [],
        endpoint_information_epoch=response.endpoint_epoch,
        partitions_by_user_endpoint=None if response.members is None else _endpoints(call, response.members),
    )


def _create_topics(call: Call, missing: Iterable[TopicInfo]) -> str:
    """Create missing internal topics. Return the text to add to the status: why that failed, or ""."""
    refused = [topic.name for topic in missing if not may_create(call, topic.name)]
    if refused:
        return f"; Unauthorized to CREATE on topics {', '.join(refused)}."
    controller = call.broker.cluster.controller
    errors = []
    for topic in missing:
        settings = {one.key: one.value for one in topic.topic_configs}
        try:
            controller.create_topic(topic.name, topic.partitions, topic.replication_factor or -1, {}, settings)
        except ApiError as error:
            if error.code is not ErrorCode.topic_already_exists:
                errors.append(f"{topic.name} ({error.message or error.code.name.upper()})")
    if not errors:
        return ""
    more = len(errors) - _SHOWN_ERRORS
    return f"; Creation failed: {', '.join(errors[:_SHOWN_ERRORS])}{f' and {more} more' if more > 0 else ''}."


def _endpoints(call: Call, members: Iterable[StreamsMember]) -> list[Message]:
    """Return each member's endpoint, with the partitions that the member's tasks read."""
    group = group_shard(call, call.request.group_id).streams_group(call.request.group_id)
    return [
        Message(
            user_endpoint=Message(host=member.user_endpoint.host, port=member.user_endpoint.port),
            active_partitions=_partitions(call, group, member.assigned.active),
            standby_partitions=_partitions(call, group, member.assigned.standby),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _partitions(call: Call, group: StreamsGroup, tasks: TaskSet) -> list[Message]:
    topics = call.broker.cluster.controller.topics
    parts = {} if group.topology is None else {one.subtopology_id: one for one in group.topology.subtopologies}
    return [
        Message(topic=name, partitions=[index for index in row.partitions if index < len(topics[name].partitions)])
        for row in task_rows(tasks)
        for name in parts[row.subtopology_id].inputs
        if name in topics
    ]
