"""ListConfigResources (key 74, versions 0-1): list topics, brokers, and groups with settings of their own.

Version 0 lists CLIENT_METRICS resources, of which there are none.
Kafka: `KafkaApis.handleListConfigResources`.
Not implemented: CLIENT_METRICS resources.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.config_resources import BROKER, GROUP, TOPIC
from abeyant.broker.wire.schema import ErrorCode, Message

_CLIENT_METRICS, _BROKER_LOGGER = 16, 8  # not implemented, so always empty
_KINDS = (TOPIC, BROKER, GROUP, _CLIENT_METRICS, _BROKER_LOGGER)
FILL: dict[str, dict[str, object]] = {"ListConfigResourcesRequest": {"resource_types": (_CLIENT_METRICS,)}}


def handle(call: Call) -> None:
    """List the resources of the requested kinds, by default of all kinds."""
    wanted = call.request.resource_types or _KINDS
    if not set(_KINDS).issuperset(wanted):
        raise ApiError(ErrorCode.unsupported_version)
    cluster = call.broker.cluster
    named = {
        TOPIC: cluster.controller.topics,
        BROKER: map(str, cluster.controller.members),
        GROUP: cluster.controller.groups.names(),
    }
    found = [
        Message(resource_name=name, resource_type=kind) for kind in named if kind in wanted for name in named[kind]
    ]
    call.answer(Message(config_resources=found))
