"""The features of the cluster (KIP-584), as ApiVersions lists them, and what needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.requests.common.call import Call


def require_streams(call: Call) -> None:
    """Raise ApiError unless streams groups are enabled: UNSUPPORTED_VERSION."""
    if "streams" not in call.broker.cluster.settings["group.coordinator.rebalance.protocols"]:
        raise ApiError(ErrorCode.unsupported_version)
