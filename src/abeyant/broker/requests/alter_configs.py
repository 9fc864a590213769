"""AlterConfigs (key 33, versions 0-2): replace all settings of a topic, broker or group.

Those that are not named return to their default.
Kafka: `ConfigAdminManager.preprocess`, `ConfigurationControlManager.legacyAlterConfigs`.
Not implemented: BROKER_LOGGER and CLIENT_METRICS resources, alter.config.policy.class.name.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common import config_resources
from abeyant.broker.requests.common.call import Call

refused = config_resources.refused


def handle(call: Call) -> None:
    """Replace, and answer with a result for each."""
    config_resources.alter(call, _replaced)


def _replaced(_: dict[str, str], resource: Any) -> dict[str, str]:
    return {config.name: config.value for config in resource.configs}
