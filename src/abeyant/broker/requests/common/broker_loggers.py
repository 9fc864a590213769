"""Describe and change the levels of a broker's loggers: BROKER_LOGGER resources. Kafka: `RuntimeLoggerManager`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from abeyant.broker.errors import ApiError
from abeyant.broker.settings import ConfigEntry
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.requests.common.call import Call

BROKER_LOGGER = 8

_SOURCE = 6  # DescribeConfigs' number for a logger as the source of a value
_UNKNOWN_TYPE = 0
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_REFUSED = {_APPEND: "APPEND", _SUBTRACT: "SUBTRACT"}


def describe(call: Call, names: Collection[str] | None) -> list[ConfigEntry]:
    """Return the levels of the loggers `names`, by default of all loggers. Ignores unknown names."""
    return [
        ConfigEntry(name, level, _SOURCE, False, False, _UNKNOWN_TYPE, "", ())
        for name, level in call.broker.cluster.controller.loggers.levels().items()
        if names is None or name in names
    ]


def alter(call: Call, resource: Any) -> None:
    """Change the levels of loggers. Raises ApiError, before any change, if one of the changes is invalid."""
    _check_broker(call, resource.resource_name)
    loggers = call.broker.cluster.controller.loggers
    for config in resource.configs:
        operation = config.config_operation
        if operation not in (_SET, _DELETE):
            word = _REFUSED.get(operation, f"Unknown operation type {operation}")
            what = f"{word} operation" if operation in _REFUSED else word
            raise ApiError(ErrorCode.invalid_request, f"{what} is not allowed for the BROKER_LOGGER resource")
        loggers.check(config.name, config.value if operation == _SET else None)
    if not call.request.validate_only:
        for config in resource.configs:
            loggers.change(config.name, config.value if config.config_operation == _SET else None)


def _check_broker(call: Call, name: str) -> None:
    own = call.broker.id
    if name != str(own):
        if not name.lstrip("-").isdecimal():
            raise ApiError(ErrorCode.invalid_request, f"Node id must be an integer, but it is: {name}")
        raise ApiError(ErrorCode.invalid_request, f"Unexpected node id. Expected {own}, but received {name}")
