"""Refuse requests that need a feature (KIP-584) or a group protocol that is off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.features import GROUPS, SHARES, STREAMS
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.requests.common.call import Call

UNSUPPORTED = "The version of API is not supported."  # Kafka's message, of some APIs


def require_consumer_groups(call: Call) -> None:
    """Raise ApiError (UNSUPPORTED_VERSION) unless groups of the consumer protocol are enabled."""
    _require(call, GROUPS, "consumer")


def require_shares(call: Call, message: str | None = None) -> None:
    """Raise ApiError (UNSUPPORTED_VERSION), with this message, unless share groups are enabled."""
    _require(call, SHARES, None, message)


def require_streams(call: Call) -> None:
    """Raise ApiError (UNSUPPORTED_VERSION) unless streams groups are enabled."""
    _require(call, STREAMS, "streams")


def _require(call: Call, feature: str, protocol: str | None, message: str | None = None) -> None:
    cluster = call.broker.cluster
    protocols = cluster.settings["group.coordinator.rebalance.protocols"]
    if not cluster.controller.features.level(feature) or (protocol is not None and protocol not in protocols):
        raise ApiError(ErrorCode.unsupported_version, message)
