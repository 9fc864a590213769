"""UpdateFeatures (key 57, versions 0-2): raise or lower the finalized levels of the cluster's features (KIP-584).

Kafka: `FeatureControlManager.updateFeatures`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.features import UPGRADE, Update
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "UpdateFeaturesRequest": {"validate_only": False},
    "FeatureUpdateKey": {"allow_downgrade": False, "upgrade_type": UPGRADE},  # as in Kafka, version 0 only upgrades
}


def handle(call: Call) -> None:
    """Change all levels, or none if there is an error. Up to version 1, the response has a result for each feature."""
    rows = call.request.feature_updates
    updates = [Update(row.feature, row.max_version_level, row.upgrade_type) for row in rows]
    call.broker.cluster.controller.update_features(updates, validate_only=call.request.validate_only)
    call.answer(Message(results=[Message(feature=row.feature, error_message="NONE") for row in rows]))


def error_response(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error for the whole request."""
    return Message(error_code=error, results=[])
