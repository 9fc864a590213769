"""The features of the cluster and their finalized levels (KIP-584), which UpdateFeatures changes.

Kafka: `FeatureControlManager`, `QuorumFeatures`, `Feature`; the messages are Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.metadata_store import MetadataStore

GROUPS: Final = "group.version"
SHARES: Final = "share.version"
STREAMS: Final = "streams.version"
ELIGIBLE_REPLICAS: Final = "eligible.leader.replicas.version"
_METADATA: Final = "metadata.version"
_KRAFT: Final = "kraft.version"

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Feature(NamedTuple):
    """A feature: the least and greatest level that brokers support, and a new cluster's level. Level 0 means off."""

    name: str
    least: int
    greatest: int
    level: int


FEATURES: Final = (
    Feature(ELIGIBLE_REPLICAS, 0, 1, 1),
    Feature(GROUPS, 0, 1, 1),
    Feature(_KRAFT, 0, 1, 0),
    Feature(_METADATA, 7, 30, 30),
    Feature(SHARES, 0, 1, 1),
    Feature(STREAMS, 0, 1, 1),
    Feature("transaction.version", 0, 2, 2),
)
_BY_NAME: Final = {feature.name: feature for feature in FEATURES}


class Update(NamedTuple):
    """A change of one feature's level."""

    name: str
    level: int
    kind: int
    """UPGRADE, SAFE_DOWNGRADE or UNSAFE_DOWNGRADE."""


class Features:
    """The finalized levels of a cluster's features. Use from the loop's thread only."""

    def __init__(self, store: MetadataStore) -> None:
        """Read the levels from `store`."""
        self._store = store
        self.epoch, stored = store.features()
        self._levels = {feature.name: feature.level for feature in FEATURES} | stored

    def level(self, name: str) -> int:
        """Return a feature's level, 0 if it is off. O(1)."""
        return self._levels[name]

    def finalized(self) -> Iterator[tuple[str, int]]:
        """Yield the features that are on, with their levels."""
        return ((name, level) for name, level in self._levels.items() if level)

    def update(self, updates: Iterable[Update], controller: int, *, validate_only: bool) -> frozenset[str]:
        """Change levels, all or none. Return the names of the features that changed. Raises ApiError.

        `controller` is the id of the broker that error messages name as the controller.
        """
        by_name = {change.name: change for change in updates}
        for change in by_name.values():
            if reason := self._refusal(change, controller):
                raise _failed(f"Invalid update version {change.level} for feature {change.name}. {reason}")
            if change.name == _METADATA and change.level < self._levels[_METADATA]:
                raise _failed(_metadata_downgrade(self._levels[_METADATA], change))
        changes = {name: change.level for name, change in by_name.items() if change.level != self._levels[name]}
        if validate_only or not changes:
            return frozenset()
        levels = self._levels | changes
        self._store.put_features(self.epoch + 1, levels)
        self.epoch, self._levels = self.epoch + 1, levels
        return frozenset(changes)

    def _refusal(self, change: Update, controller: int) -> str | None:
        """Return why a change is invalid; None if it is valid."""
        feature = _BY_NAME.get(change.name)
        if change.kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "The controller does not support the given upgrade type."
        if change.level < 0:
            return "A feature version cannot be less than 0."
        if feature is None:
            if change.level:
                return f"Local controller {controller} does not support this feature."
            return f"Feature {change.name} not found."
        if not feature.least <= change.level <= feature.greatest:
            return f"Local controller {controller} only supports versions {feature.least}-{feature.greatest}"
        current = self._levels[change.name]
        if change.level < current and change.kind == UPGRADE:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
                "downgrade."
            )
        if change.level > current and change.kind != UPGRADE:
            return "Can't downgrade to a newer version."
        return None


def _failed(reason: str) -> ApiError:
    text = f"The update failed for all features since the following feature had an error: {reason}"
    return ApiError(ErrorCode.invalid_update_version, text)


def _metadata_downgrade(current: int, change: Update) -> str:
    """Return Kafka's message for a downgrade of `metadata.version`, which is refused as it may delete metadata."""
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if change.kind == UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    return f"Unsupported metadata.version downgrade from {current} to {change.level}. {reason}"
