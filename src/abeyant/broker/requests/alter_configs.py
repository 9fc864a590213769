"""AlterConfigs (key 33, versions 0-2): replace all settings of a resource.

Resources are topics, brokers, groups, and subscriptions to clients' metrics.

Settings that the request omits return to their defaults.
Kafka: `ConfigAdminManager.preprocess`, `ConfigurationControlManager.legacyAlterConfigs`.
Not implemented: alter.config.policy.class.name.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common import config_resources
from abeyant.broker.requests.common.call import Call

error_response = config_resources.error_response


def handle(call: Call) -> None:
    """Replace the settings. Respond with a result for each resource."""
    config_resources.alter(call, _replace)


def _replace(_: dict[str, str], resource: Any) -> dict[str, str]:
    return {config.name: config.value for config in resource.configs}
