"""DescribeCluster (key 60, versions 0-2): describe the brokers and the controller.

Kafka: `KafkaApis.handleDescribeCluster`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import CLUSTER_OPERATIONS, NO_OPERATIONS, address_for
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "DescribeClusterRequest": {"endpoint_type": 1, "include_fenced_brokers": False},
}
_BROKERS, _CONTROLLERS = 1, 2
_NOT_A_CONTROLLER = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"


def handle(call: Call) -> None:
    """Describe the cluster. Raise ApiError unless the request is for endpoints of brokers."""
    request, cluster = call.request, call.broker.cluster
    if request.endpoint_type == _CONTROLLERS:
        raise ApiError(ErrorCode.mismatched_endpoint_type, _NOT_A_CONTROLLER)
    if request.endpoint_type != _BROKERS:
        raise ApiError(ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {request.endpoint_type}")
    operations = CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
    call.answer(
        Message(
            cluster_id=cluster.controller.cluster_id,
            controller_id=cluster.controller.controller_id,
            brokers=_brokers(call),
            cluster_authorized_operations=operations,
        )
    )


def _brokers(call: Call) -> list[Message]:
    cluster = call.broker.cluster
    members = cluster.controller.members
    return [
        Message(
            broker_id=number, host=host, port=port, rack=cluster.settings.rack(number), is_fenced=number not in members
        )
        for number, broker in cluster.brokers.items()
        if call.request.include_fenced_brokers or number in members
        for host, port in [address_for(call, broker)]
    ]
