"""DescribeConfigs (key 32, versions 1-4): describe settings, with the source of each value.

Resources are topics, brokers and their loggers, groups, and subscriptions to clients' metrics.
Kafka: `ConfigHelper.handleDescribeConfigsRequest`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.errors import INVALID_REQUEST, ApiError
from abeyant.broker.placement import check_name
from abeyant.broker.requests.common import broker_loggers
from abeyant.broker.requests.common.broker_loggers import BROKER_LOGGER
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.config_resources import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    broker_of,
    describe,
    failed,
)
from abeyant.broker.requests.common.results import results
from abeyant.broker.settings import ConfigEntry
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"DescribeConfigsRequest": {"include_documentation": False}}


def handle(call: Call) -> None:
    """Respond with the settings of each resource."""
    call.answer(Message(results=results(call.request.resources, partial(_describe, call), partial(failed, message=""))))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(results=results(request.resources, error, failed))


def _describe(call: Call, resource: Any) -> Message:
    result = failed(resource, ErrorCode.none, "")
    result.configs = [_entry(call.request, entry) for entry in _entries(call, resource)]
    return result


def _entries(call: Call, resource: Any) -> list[ConfigEntry]:
    names = resource.configuration_keys or None
    cluster = call.broker.cluster
    if resource.resource_type == TOPIC:
        topic = cluster.controller.topics.get(resource.resource_name)
        if topic is None:
            check_name(resource.resource_name, ())
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        return topic.settings.describe(names, call.broker.id)
    if resource.resource_type == BROKER:
        return cluster.settings.describe(broker_of(call, resource.resource_name, "Broker", " or empty string,"), names)
    if resource.resource_type == GROUP:
        if not resource.resource_name:
            raise ApiError(ErrorCode.invalid_request, "Group name must not be empty")
        return cluster.controller.groups.describe(resource.resource_name, names)
    if resource.resource_type == BROKER_LOGGER:
        if not resource.resource_name:
            raise ApiError(ErrorCode.invalid_request, "Broker id must not be empty")
        broker_of(call, resource.resource_name, "Broker", "")
        return broker_loggers.describe(call, names)
    if resource.resource_type == CLIENT_METRICS:
        if not resource.resource_name:
            raise ApiError(ErrorCode.invalid_request, "Client metrics subscription name must not be empty")
        return cluster.controller.client_metrics.describe(resource.resource_name, names)
    raise ApiError(ErrorCode.invalid_request, INVALID_REQUEST)


def _entry(request: Any, entry: ConfigEntry) -> Message:
    config = describe(entry)
    config.config_type = entry.type
    config.documentation = entry.documentation if request.include_documentation or not entry.documentation else None
    config.synonyms = [
        Message(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in (entry.synonyms if request.include_synonyms else ())
    ]
    return config
