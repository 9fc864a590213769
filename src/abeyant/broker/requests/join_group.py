"""JoinGroup (key 11, versions 0-9): join or rejoin a group of the classic protocol.

The response comes when all members have joined, or at the rebalance time-out (K5).
Kafka: `GroupMetadataManager.classicGroupJoin`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.member import JoinRequest, JoinResponse
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import group_shard, host_of, milliseconds
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"JoinGroupRequest": {"rebalance_timeout": None, "group_instance_id": None}}
_ID_FIRST_SINCE = 4  # the version
_NULL_PROTOCOL_SINCE = 7
_MAY_SKIP_SINCE = 9


def handle(call: Call) -> None:
    """Let the member join or rejoin."""
    request = call.request
    shard = group_shard(call, request.group_id)
    session = milliseconds(request.session_timeout)
    settings = call.broker.cluster.settings
    if not settings["group.min.session.timeout.ms"] <= session <= settings["group.max.session.timeout.ms"]:
        raise ApiError(ErrorCode.invalid_session_timeout)
    consumers = shard.consumers.get(request.group_id)
    if consumers is not None and not consumers.members:
        consumers = None  # an empty group changes to the classic protocol
    if consumers is None:
        # A member id is unknown if there is no group, or an empty consumer group.
        if request.member_id and shard.find(request.group_id) is shard.consumers.get(request.group_id):
            raise ApiError(ErrorCode.unknown_member_id)
        group = shard.group_or_new(request.group_id)
    joining = JoinRequest(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id,
        client_host=host_of(call),
        session_timeout=session,
        rebalance_timeout=session if call.version == 0 else max(milliseconds(request.rebalance_timeout), 0),
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        needs_id=call.version >= _ID_FIRST_SINCE,
        may_skip=call.version >= _MAY_SKIP_SINCE,
    )

    def answer(joined: JoinResponse) -> None:
        call.answer(_response(request, joined))

    if consumers is not None:
        shard.classic_members.join(consumers, joining, answer)
    else:
        shard.classic_protocol.join(group, joining, answer)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _response(request, JoinResponse(error, request.member_id))


def _response(request: Any, joined: JoinResponse) -> Message:
    no_protocol = None if request.__version__ >= _NULL_PROTOCOL_SINCE else ""
    return Message(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=no_protocol if joined.protocol is None else joined.protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            Message(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in joined.members
        ],
    )
