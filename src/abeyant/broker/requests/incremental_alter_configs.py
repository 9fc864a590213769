"""IncrementalAlterConfigs (key 44, versions 0-1): change single settings of a topic, broker or group.

Each is set, deleted, appended to or subtracted from.
Kafka: `ConfigAdminManager.preprocess`, `ConfigurationControlManager.incrementalAlterConfigs`.
Not implemented: BROKER_LOGGER and CLIENT_METRICS resources, alter.config.policy.class.name.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.definitions import ConfigError, Scope, definition
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common import config_resources
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode

FILL: dict[str, dict[str, object]] = {}
refused = config_resources.refused

_SCOPES: dict[int, Scope] = {config_resources.TOPIC: "topic", config_resources.GROUP: "group"}
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def handle(call: Call) -> None:
    """Change, and answer with a result for each."""

    def changed(given: dict[str, str], resource: Any) -> dict[str, str]:
        after = dict(given)
        for config in resource.configs:
            if config.config_operation == _SET:
                after[config.name] = config.value
            elif config.config_operation == _DELETE:
                after.pop(config.name, None)
            elif config.config_operation in (_APPEND, _SUBTRACT):
                before = after.get(config.name, _below(call, resource, config.name))
                after[config.name] = _list_changed(resource, config, before)
            else:
                raise ApiError(ErrorCode.invalid_request, f"Unknown operations type {config.config_operation}")
        return after

    config_resources.alter(call, changed, "IncrementalAlterConfigs")


def _below(call: Call, resource: Any, name: str) -> str:
    """What a setting is that has not been set there."""
    settings = call.broker.cluster.settings
    try:
        scope = _scope(resource)
        if scope == "group":
            return definition(scope, name).default or ""
        value = settings.for_topic({})[name] if scope == "topic" else settings[name]
    except ConfigError as error:
        raise ApiError(ErrorCode.invalid_config, str(error)) from None
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _scope(resource: Any) -> Scope:
    return _SCOPES.get(resource.resource_type, "broker")


def _list_changed(resource: Any, config: Any, before: str) -> str:
    appends = config.config_operation == _APPEND
    if definition(_scope(resource), config.name).type != "list":
        what = "APPEND" if appends else "SUBTRACT"
        raise ApiError(ErrorCode.invalid_config, f"Can't {what} to key {config.name} because its type is not LIST.")
    parts = [part for part in before.split(",") if part]
    for part in config.value.split(","):
        if appends and part not in parts:
            parts.append(part)
        elif not appends and part in parts:
            parts.remove(part)
    return ",".join(parts)
