"""IncrementalAlterConfigs (key 44, versions 0-1): set, delete, append to or subtract from single settings.

Resources are topics, brokers and their loggers, groups, and subscriptions to clients' metrics.
Kafka: `ConfigAdminManager.preprocess`, `ConfigurationControlManager.incrementalAlterConfigs`.
Not implemented: alter.config.policy.class.name.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.definitions import ConfigError, Scope, definition
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common import broker_loggers, config_resources
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode

error_response = config_resources.error_response

_SCOPES: dict[int, Scope] = {
    config_resources.TOPIC: "topic", config_resources.GROUP: "group", config_resources.CLIENT_METRICS: "client-metrics",
}  # fmt: skip
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def handle(call: Call) -> None:
    """Change the settings. Respond with a result for each resource."""

    def change(current: dict[str, str], resource: Any) -> dict[str, str]:
        scope = _SCOPES.get(resource.resource_type, "broker")
        after = dict(current)
        for config in resource.configs:
            if config.config_operation == _SET:
                after[config.name] = config.value
            elif config.config_operation == _DELETE:
                after.pop(config.name, None)
            elif config.config_operation in (_APPEND, _SUBTRACT):
                after[config.name] = _change_list(scope, config, after.get(config.name))
            else:
                raise ApiError(ErrorCode.invalid_request, f"Unknown operations type {config.config_operation}")
        return after

    config_resources.alter(call, change, broker_loggers.alter)


def _change_list(scope: Scope, config: Any, before: str | None) -> str:
    """Append to or subtract from a list setting whose text is `before` (None: Kafka's default). Return the new text."""
    name, appends = config.name, config.config_operation == _APPEND
    no_list = f"Can't {'APPEND' if appends else 'SUBTRACT'} to key {name} because its type is not LIST."
    if scope == "client-metrics":  # Kafka knows no types of these
        raise ApiError(ErrorCode.invalid_config, no_list)
    try:
        found = definition(scope, name)
    except ConfigError as error:
        text = f"Unknown config name: {name}" if scope == "broker" else str(error)
        raise ApiError(ErrorCode.invalid_config, text) from None
    if found.type != "list":
        text = no_list
        if scope == "broker":
            text = f"Config value {'append' if appends else 'subtract'} is not allowed for config key: {name}"
        raise ApiError(ErrorCode.invalid_config, text)
    parts = [part for part in (found.default or "" if before is None else before).split(",") if part]
    for part in config.value.split(","):
        if appends and part not in parts:
            parts.append(part)
        elif not appends and part in parts:
            parts.remove(part)
    return ",".join(parts)
