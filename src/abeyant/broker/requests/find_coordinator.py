"""FindCoordinator (key 10, versions 0-6): find the coordinator of a group, a transactional id or a share partition.

The coordinator is the leader of the id's partition in an internal topic, for instance `__consumer_offsets`.
Kafka: `KafkaApis.handleFindCoordinatorRequest`.
"""

from __future__ import annotations

import re
from typing import Any

from abeyant.broker.coordinator import topics
from abeyant.broker.errors import INVALID_REQUEST, ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import address_for
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"FindCoordinatorRequest": {"key": None, "key_type": 0, "coordinator_keys": ()}}
_TOPICS = {0: topics.OFFSETS, 1: topics.TRANSACTIONS, 2: topics.SHARES}
_SHARE_PARTITIONS = 2  # a type of key: of "group:topic id:partition"
_SHARES_SINCE = 6  # the version
_SHARE_KEY = re.compile(r".+:[\w-]{22}:\d+", re.DOTALL)
_BATCHED_SINCE = 4  # the version
_NOT_AVAILABLE = "The coordinator is not available."


def handle(call: Call) -> None:
    """Respond with the coordinators. Create their internal topic if it does not exist."""
    request = call.request
    shares = request.key_type == _SHARE_PARTITIONS
    if request.key_type not in _TOPICS or (shares and call.version < _SHARES_SINCE):
        call.answer(error_response(request, ErrorCode.invalid_request, INVALID_REQUEST))
    elif call.version >= _BATCHED_SINCE:
        found = [_coordinator(call, key) for key in request.coordinator_keys]
        call.answer(Message(coordinators=found))
    else:
        found_one = _coordinator(call, request.key)
        found_one.error_message = "NONE" if found_one.node_id >= 0 else _NOT_AVAILABLE
        call.answer(found_one)


def error_response(request: Any, error: ErrorCode, message: str | None = None) -> Message:
    """Return the response with this error for everything in the request."""
    response = _none(None, error, message)
    response.coordinators = [_none(key, error, message) for key in request.coordinator_keys]
    return response


def _coordinator(call: Call, key: str) -> Message:
    cluster = call.broker.cluster
    controller = cluster.controller
    if call.request.key_type == _SHARE_PARTITIONS and not _SHARE_KEY.fullmatch(key):
        return _none(key, ErrorCode.invalid_request, "")
    try:
        topic = topics.ensure_topic(controller, cluster.settings, _TOPICS[call.request.key_type])
    except ApiError:
        return _none(key, ErrorCode.coordinator_not_available, "")
    leader = topic.partitions[topics.partition_for(key, len(topic.partitions))].leader
    if leader not in controller.members:
        return _none(key, ErrorCode.coordinator_not_available, "")
    host, port = address_for(call, cluster.brokers[leader])
    return Message(key=key, node_id=leader, host=host, port=port, error_message="")


def _none(key: str | None, error: ErrorCode, message: str | None) -> Message:
    return Message(key=key, node_id=-1, port=-1, error_code=error, error_message=message)
