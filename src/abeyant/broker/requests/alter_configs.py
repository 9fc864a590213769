"""AlterConfigs: all settings of a topic, broker or group at once; those that are not named are the default again."""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common import config_resources
from abeyant.broker.requests.common.call import Call

FILL: dict[str, dict[str, object]] = {}
refused = config_resources.refused


def handle(call: Call) -> None:
    """Replace, and tell of each."""
    config_resources.alter(call, _replaced, "AlterConfigs")


def _replaced(_: dict[str, str], resource: Any) -> dict[str, str]:
    return {config.name: config.value for config in resource.configs}
