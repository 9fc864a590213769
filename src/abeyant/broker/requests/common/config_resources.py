"""What DescribeConfigs and both AlterConfigs share: finding the resource, and changing its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from abeyant.broker.definitions import ConfigError
from abeyant.broker.errors import ApiError
from abeyant.broker.placement import check_name
from abeyant.broker.reconfiguration import check_listener
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import results
from abeyant.broker.settings import MIN_ISR, ConfigEntry
from abeyant.broker.wire.schema import ErrorCode, Message
from abeyant.errors import AbeyantError

TOPIC, BROKER, GROUP = 2, 4, 32


def broker_of(call: Call, name: str, what: str = "Node", expected: str = "") -> int | None:
    """Return the broker that a resource names: this one, or None for all. Raises ApiError for another."""
    if not name:
        return None
    own = call.broker.id
    if name != str(own):
        if not name.lstrip("-").isdecimal():
            raise ApiError(ErrorCode.invalid_request, f"{what} id must be an integer, but it is: {name}")
        raise ApiError(
            ErrorCode.invalid_request, f"Unexpected broker id, expected {own}{expected}, but received {name}"
        )
    return own


def alter(call: Call, change: Callable[[dict[str, str], Any], dict[str, str]]) -> None:
    """Change each valid resource, and answer with a result for each.

    `change` returns the settings that a resource gets, from those that it has and the request. It may raise ApiError.
    """
    resources = call.request.resources
    named = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def altered(resource: Any) -> Message:
        if named[resource.resource_type, resource.resource_name] > 1:
            raise ApiError(ErrorCode.invalid_request, "Each resource must appear at most once.")
        _check_names(resource)
        _alter(call, resource, change)
        return failed(resource, ErrorCode.none)

    call.answer(Message(responses=results(resources, altered, failed)))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(responses=results(request.resources, error, failed))


def failed(resource: Any, error: ErrorCode, message: str | None = None) -> Message:
    """Return the result of a resource with an error, or with none."""
    return Message(
        error_code=error, error_message=message, resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )  # fmt: skip


def described(entry: ConfigEntry) -> Message:
    """Return a setting as CreateTopics and DescribeConfigs describe it."""
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


def _check_listener(call: Call, broker: int | None, given: Mapping[str, str]) -> None:
    """Raise ConfigError where the broker that answers has a listener that refuses the change."""
    settings, here = call.broker.cluster.settings, call.broker.id
    of_all, own = settings.changed(None), settings.changed(here)
    after = {**given, **own} if broker is None else {**of_all, **given}
    check_listener(call.broker.cluster.security.protocol, {**of_all, **own}, after, settings.given)


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
        given = change(topic.settings.given, resource)
        controller.topic_settings(given)
        if not call.request.validate_only:
            controller.configure(topic, given)
    elif resource.resource_type == BROKER:
        broker = broker_of(call, resource.resource_name)
        settings = call.broker.cluster.settings
        try:
            given = change(settings.changed(broker), resource)
            after = settings.check_change(broker, given)
            _check_listener(call, broker, given)
            call.broker.cluster.security.tls_context(after, broker)
        except ConfigError as error:
            raise ApiError(ErrorCode.invalid_request, error.kafka_message) from None
        except AbeyantError as error:
            raise ApiError(ErrorCode.invalid_request, str(error)) from None
        _check_min_isr(broker, resource, given)
        if not call.request.validate_only:
            controller.configure_brokers(broker, given)
    elif resource.resource_type == GROUP:
        if not resource.resource_name:
            raise ApiError(ErrorCode.invalid_request, "Default group resources are not allowed.")
        groups = controller.groups
        given = change(groups.given(resource.resource_name), resource)
        groups.check(given)
        if not call.request.validate_only:
            groups.change(resource.resource_name, given)
    else:
        raise ApiError(ErrorCode.invalid_request, f"Unknown resource type {resource.resource_type}")


def _check_min_isr(broker: int | None, resource: Any, given: Mapping[str, str]) -> None:
    """Raise ApiError unless all brokers go on to have one min.insync.replicas, as eligible leader replicas need it."""
    if broker is not None and any(config.name == MIN_ISR for config in resource.configs):
        text = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        raise ApiError(ErrorCode.invalid_config, text)
    if broker is None and MIN_ISR not in given:
        text = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        raise ApiError(ErrorCode.invalid_config, text)
