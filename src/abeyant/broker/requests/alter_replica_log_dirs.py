"""AlterReplicaLogDirs (key 34, versions 1-2): move replicas between log directories.

A broker here has one directory, so a replica is already in it or cannot move.
Kafka: `ReplicaManager.alterReplicaLogDirs`.
Not implemented: a second log directory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Respond with a result for each replica."""
    call.answer(_response(call.request, lambda path, topic, index: _result(call, path, topic, index)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return _response(request, lambda _path, _topic, _index: error)


def _result(call: Call, path: str, topic: str, index: int) -> ErrorCode:
    if path != call.broker.log_dir:
        return ErrorCode.log_dir_not_found
    try:
        call.partition(topic, None, index)
    except ApiError as error:
        elsewhere = error.code is ErrorCode.not_leader_or_follower
        return ErrorCode.replica_not_available if elsewhere else error.code
    return ErrorCode.none


def _response(request: Any, result: Callable[[str, str, int], ErrorCode]) -> Message:
    topics: dict[str, list[Message]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                error = result(directory.path, topic.name, index)
                topics.setdefault(topic.name, []).append(Message(partition_index=index, error_code=error))
    results = [Message(topic_name=name, partitions=partitions) for name, partitions in topics.items()]
    return Message(results=results)
