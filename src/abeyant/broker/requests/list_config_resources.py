"""ListConfigResources (key 74, versions 0-1): list the resources that have settings.

Version 0 lists only subscriptions to clients' metrics.
Kafka: `KafkaApis.handleListConfigResources`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.broker_loggers import BROKER_LOGGER
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.config_resources import BROKER, CLIENT_METRICS, GROUP, TOPIC
from abeyant.broker.wire.schema import ErrorCode, Message

_KINDS = (TOPIC, BROKER, GROUP, CLIENT_METRICS, BROKER_LOGGER)
FILL: dict[str, dict[str, object]] = {"ListConfigResourcesRequest": {"resource_types": (CLIENT_METRICS,)}}


def handle(call: Call) -> None:
    """List the resources of the requested kinds, by default of all kinds."""
    kinds = call.request.resource_types or _KINDS
    if not set(_KINDS).issuperset(kinds):
        raise ApiError(ErrorCode.unsupported_version)
    cluster = call.broker.cluster
    brokers = [str(member) for member in cluster.controller.members]
    names = {
        TOPIC: list(cluster.controller.topics),
        BROKER: brokers,
        BROKER_LOGGER: brokers,
        CLIENT_METRICS: cluster.controller.client_metrics.names(),
        GROUP: cluster.controller.groups.names(),
    }
    resources = [
        Message(resource_name=name, resource_type=kind) for kind in names if kind in kinds for name in names[kind]
    ]
    call.answer(Message(config_resources=resources))
