"""Find a resource and change its settings, for DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from abeyant.broker.definitions import ConfigError, Scope, definition
from abeyant.broker.errors import ApiError
from abeyant.broker.features import ELIGIBLE_REPLICAS
from abeyant.broker.placement import check_name
from abeyant.broker.reconfiguration import check_listener
from abeyant.broker.requests.common.broker_loggers import BROKER_LOGGER
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import results
from abeyant.broker.settings import MIN_ISR, ConfigEntry
from abeyant.broker.wire.schema import ErrorCode, Message
from abeyant.errors import AbeyantError
from abeyant.reporting import logger

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
_NAMELESS = {
    GROUP: "Default group resources are not allowed.",
    CLIENT_METRICS: "Subscription name can't be empty",
}
"""Kafka's messages about resources without a name."""

Change = Callable[[dict[str, str], Any], dict[str, str]]
"""A function that returns the new settings, given the current settings and a resource of the request."""


def broker_of(call: Call, name: str, what: str = "Node", expected: str = ",") -> int | None:
    """Return this broker's id if it is `name`; None for "", all brokers. Raises ApiError for another name."""
    if not name:
        return None
    broker_id = call.broker.id
    if name != str(broker_id):
        if not name.lstrip("-").isdecimal():
            raise ApiError(ErrorCode.invalid_request, f"{what} id must be an integer, but it is: {name}")
        raise ApiError(
            ErrorCode.invalid_request, f"Unexpected broker id, expected {broker_id}{expected} but received {name}"
        )
    return broker_id


def alter(call: Call, change: Change, alter_loggers: Callable[[Call, Any], None] | None = None) -> None:
    """Change the settings of each valid resource. Respond with a result for each resource.

    `change(settings, resource)` returns the new settings, given the current settings and a resource of the request.
    `alter_loggers` changes a broker's loggers; if None, loggers cannot be changed. Both may raise ApiError.
    """
    resources = call.request.resources
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def alter_one(resource: Any) -> Message:
        if counts[resource.resource_type, resource.resource_name] > 1:
            raise ApiError(ErrorCode.invalid_request, "Each resource must appear at most once.")
        _check_names(resource)
        if resource.resource_type == BROKER_LOGGER and alter_loggers is not None:
            alter_loggers(call, resource)
        else:
            _alter(call, resource, change)
        return failed(resource, ErrorCode.none)

    call.answer(Message(responses=results(resources, alter_one, failed)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(responses=results(request.resources, error, failed))


def failed(resource: Any, error: ErrorCode, message: str | None = None) -> Message:
    """Return the result of a resource with this error, which may be NONE."""
    return Message(
        error_code=error, error_message=message, resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )  # fmt: skip


def describe(entry: ConfigEntry) -> Message:
    """Return a setting's fields that the responses of CreateTopics and DescribeConfigs share."""
    return Message(
        name=entry.name, value=entry.value, read_only=entry.read_only, config_source=entry.source,
        is_sensitive=entry.sensitive,
    )  # fmt: skip


def _check_names(resource: Any) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.invalid_request, "Error due to duplicate config keys")
    missing = [
        config.name
        for config in resource.configs
        if config.value is None and getattr(config, "config_operation", 0) != 1
    ]
    if missing:
        raise ApiError(ErrorCode.invalid_request, f"Null value not supported for : {', '.join(missing)}")


def _check_listener(call: Call, broker: int | None, changes: Mapping[str, str]) -> None:
    """Raise ConfigError if this broker's listener cannot have the changed settings."""
    settings, broker_id = call.broker.cluster.settings, call.broker.id
    defaults, broker_settings = settings.dynamic(None), settings.dynamic(broker_id)
    after = {**changes, **broker_settings} if broker is None else {**defaults, **changes}
    check_listener(call.broker.cluster.security.protocol, {**defaults, **broker_settings}, after, settings.static)


def _alter(call: Call, resource: Any, change: Callable[[dict[str, str], Any], dict[str, str]]) -> None:
    controller = call.broker.cluster.controller
    if resource.resource_type == TOPIC:
        if not resource.resource_name:
            raise ApiError(ErrorCode.invalid_request, "Default topic resources are not allowed.")
        check_name(resource.resource_name, ())
        topic = controller.topics.get(resource.resource_name)
        if topic is None:
            raise ApiError(
                ErrorCode.unknown_topic_or_partition, f"The topic '{resource.resource_name}' does not exist."
            )
        changed = change(topic.settings.own, resource)
        controller.topic_settings(changed)
        if not call.request.validate_only:
            _warn("topic", resource, changed)
            controller.configure(topic, changed)
    elif resource.resource_type == BROKER:
        broker = broker_of(call, resource.resource_name)
        settings = call.broker.cluster.settings
        try:
            changed = change(settings.dynamic(broker), resource)
            after = settings.check_change(broker, changed)
            _check_listener(call, broker, changed)
            call.broker.cluster.security.tls_context(after, broker)
        except ConfigError as error:
            raise ApiError(ErrorCode.invalid_request, error.kafka_message) from None
        except AbeyantError as error:
            raise ApiError(ErrorCode.invalid_request, str(error)) from None
        if controller.features.level(ELIGIBLE_REPLICAS):
            _check_min_isr(broker, resource, changed)
        if not call.request.validate_only:
            _warn("broker", resource, changed)
            controller.configure_brokers(broker, changed)
    elif resource.resource_type in _NAMELESS:
        if not resource.resource_name:
            raise ApiError(ErrorCode.invalid_request, _NAMELESS[resource.resource_type])
        configs = controller.groups if resource.resource_type == GROUP else controller.client_metrics
        changed = change(configs.own(resource.resource_name), resource)
        configs.check(changed)
        if not call.request.validate_only:
            configs.change(resource.resource_name, changed)
    else:
        raise ApiError(ErrorCode.invalid_request, f"Unknown resource type {resource.resource_type}")


def _warn(scope: Scope, resource: Any, changed: Mapping[str, str]) -> None:
    """Log the names of settings that the request sets although they have no effect in this broker."""
    names = {config.name for config in resource.configs} & changed.keys()
    if ineffective := sorted(name for name in names if not definition(scope, name).has_effect):
        logger("broker").warning("settings without effect in this broker: %s", ", ".join(ineffective))


def _check_min_isr(broker: int | None, resource: Any, changes: Mapping[str, str]) -> None:
    """Raise ApiError unless all brokers keep the same min.insync.replicas, as eligible leader replicas require."""
    if broker is not None and any(config.name == MIN_ISR for config in resource.configs):
        text = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        raise ApiError(ErrorCode.invalid_config, text)
    if broker is None and MIN_ISR not in changes:
        text = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        raise ApiError(ErrorCode.invalid_config, text)
