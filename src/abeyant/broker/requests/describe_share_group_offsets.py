"""DescribeShareGroupOffsets (key 90, versions 0-1): describe the start offsets of share groups, and their lag.

The group's coordinator requests the states from the share coordinators, and for the lag (KIP-1226) the latest offsets
from the partitions' leaders.
Kafka: `GroupCoordinatorService.describeShareGroupOffsets`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.share.group import Partitions
from abeyant.broker.groups.share.states import Results
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.requests.common.features import require_shares
from abeyant.broker.wire.schema import ErrorCode, Message

_LATEST = -1  # a timestamp


def handle(call: Call) -> None:
    """Describe the groups. Respond once every group is described."""
    require_shares(call)
    responses: dict[int, Message] = {}
    groups = call.request.groups

    def done(number: int, group: Message) -> None:
        responses[number] = group
        if len(responses) == len(groups):
            call.answer(Message(groups=[responses[number] for number in range(len(groups))]))

    if not groups:
        call.answer(Message(groups=[]))
    for number, group in enumerate(groups):
        try:
            _describe(call, group, partial(done, number))
        except ApiError as error:
            response = _failed(group.group_id, error.code)
            response.error_message = error.message
            done(number, response)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(groups=[_failed(group.group_id, error) for group in request.groups])


def refused_topics(topics: list[Any], error: ErrorCode, message: str) -> list[Message]:
    """Return the rows, with this error, of a group's topics that the client may not describe."""
    responses = []
    for topic in topics:
        rows = [_row(index) for index in topic.partitions]
        for row in rows:
            row.error_code, row.error_message = error, message
        responses.append(Message(topic_name=topic.topic_name, topic_id=None, partitions=rows))
    return responses


def _failed(group_id: str, error: ErrorCode) -> Message:
    return Message(group_id=group_id, topics=[], error_code=error)


def _describe(call: Call, group: Any, done: Callable[[Message], object]) -> None:
    group_id = group.group_id
    if group.topics is not None and not group.topics:
        done(Message(group_id=group_id, topics=[]))
        return
    states = group_shard(call, group_id).share_states
    controller = call.broker.cluster.controller
    unknown: list[Message] = []
    partitions: Partitions
    if group.topics is None:
        partitions = {
            topic: entry for topic, entry in states.of(group_id).initialized.items() if topic in controller.by_id
        }
    else:
        known = [topic for topic in group.topics if topic.topic_name in controller.topics]
        partitions = {
            controller.topics[topic.topic_name].id: (topic.topic_name, frozenset(topic.partitions)) for topic in known
        }
        unknown = [
            Message(topic_name=topic.topic_name, topic_id=None, partitions=[_row(index) for index in topic.partitions])
            for topic in group.topics
            if topic not in known
        ]

    def read(results: Results) -> None:
        _add_lags(call, partitions, results, lambda topics: done(Message(group_id=group_id, topics=topics + unknown)))

    states.read(group_id, partitions, read)


def _row(index: int) -> Message:
    """Return a partition's row without a known start offset."""
    return Message(partition_index=index, start_offset=-1, leader_epoch=0, lag=-1)


def _add_lags(call: Call, partitions: Partitions, results: Results, done: Callable[[list[Message]], object]) -> None:
    """Request the latest offsets of partitions whose start is known, set their lag, and call `done` with the topics."""
    topics = {topic: Message(topic_name=name, topic_id=topic, partitions=[]) for topic, (name, _) in partitions.items()}
    pending: dict[tuple[uuid.UUID, int], Message] = {}
    for (topic, index), (error, state) in results.items():
        row = _row(index)
        topics[topic].partitions.append(row)
        if error is None:
            row.start_offset, row.leader_epoch = state.start_offset, state.leader_epoch
            if state.start_offset != -1 and state.delivery_complete_count != -1:
                row.lag = -state.start_offset - state.delivery_complete_count
                pending[topic, index] = row
    remaining = len(pending)
    if not remaining:
        done(list(topics.values()))

    def receive(row: Message, response: Any) -> None:
        partition = None if response is None else response.topics[0].partitions[0]
        error = ErrorCode.request_timed_out if partition is None else partition.error_code
        finish(row, error, 0 if partition is None else partition.offset)

    def finish(row: Message, error: ErrorCode, offset: int) -> None:
        nonlocal remaining
        if error is ErrorCode.none:
            row.lag += offset
        else:
            row.start_offset, row.leader_epoch, row.lag, row.error_code = 0, 0, -1, error
        remaining -= 1
        if not remaining:
            done(list(topics.values()))

    controller = call.broker.cluster.controller
    for (topic, index), row in pending.items():
        if topic not in controller.by_id:  # it was deleted while its states were read
            finish(row, ErrorCode.unknown_topic_or_partition, 0)
            continue
        state = controller.by_id[topic].partitions[index]
        query = Message(partition_index=index, timestamp=_LATEST, current_leader_epoch=-1)
        request = Message(replica_id=-1, isolation_level=0, topics=[Message(name=state.topic, partitions=[query])])
        client_id = f"group-coordinator-{call.broker.id}"
        call.broker.ask(state.leader, "ListOffsets", request, [(state.topic, index)], client_id, partial(receive, row))
