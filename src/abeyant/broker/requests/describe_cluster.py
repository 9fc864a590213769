"""DescribeCluster (key 60, versions 0-2): describe the brokers, and name the controller.

Kafka: `KafkaApis.handleDescribeCluster`.
Not implemented: a rack per broker.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.nodes import host_for
from abeyant.broker.requests.common.topics import CLUSTER_OPERATIONS, NO_OPERATIONS
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "DescribeClusterRequest": {"endpoint_type": 1, "include_fenced_brokers": False},
}
_BROKERS, _CONTROLLERS = 1, 2


def handle(call: Call) -> None:
    """Answer at once."""
    request = call.request
    if request.endpoint_type == _CONTROLLERS:
        call.answer(
            _error(
                request,
                ErrorCode.mismatched_endpoint_type,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
            )
        )
        return
    if request.endpoint_type != _BROKERS:
        call.answer(
            _error(request, ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {request.endpoint_type}")
        )
        return
    cluster = call.broker.cluster
    call.answer(
        Message(
            error_code=ErrorCode.none,
            endpoint_type=request.endpoint_type,
            cluster_id=cluster.controller.cluster_id,
            controller_id=cluster.controller.controller_id,
            brokers=_brokers(call),
            cluster_authorized_operations=(
                CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
            ),
        )
    )


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _error(request, error, None)


def _error(request: Any, error: ErrorCode, message: str | None) -> Message:
    return Message(
        error_code=error, error_message=message, endpoint_type=_BROKERS,
        cluster_id="", controller_id=-1, brokers=(), cluster_authorized_operations=NO_OPERATIONS,
    )  # fmt: skip


def _brokers(call: Call) -> list[Message]:
    cluster = call.broker.cluster
    rack, members = cluster.settings["broker.rack"], cluster.controller.members
    return [
        Message(
            broker_id=number, host=host_for(call, broker), port=broker.port, rack=rack, is_fenced=number not in members
        )
        for number, broker in cluster.brokers.items()
        if call.request.include_fenced_brokers or number in members
    ]
