"""The features of the cluster and their finalized levels (KIP-584), which UpdateFeatures changes.

Kafka: `FeatureControlManager`, `QuorumFeatures`, `Feature`; the messages are theirs.
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
    """The levels that brokers support, and the one of a new cluster. Level 0 means that it is off."""

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
_BY_NAME: Final = {one.name: one for one in FEATURES}


class Update(NamedTuple):
    """A change of one feature."""

    name: str
    level: int
    kind: int
    """UPGRADE, SAFE_DOWNGRADE or UNSAFE_DOWNGRADE."""


class Features:
    """The finalized levels. Use from the loop's thread only."""

    def __init__(self, store: MetadataStore) -> None:
        """Read the levels from `store`."""
        self._store = store
        self.epoch, stored = store.features()
        self._levels = {one.name: one.level for one in FEATURES} | stored

    def level(self, name: str) -> int:
        """Return a feature's level, 0 if it is off. O(1)."""
        return self._levels[name]

    def finalized(self) -> Iterator[tuple[str, int]]:
        """Yield the features that are on, with their levels."""
        return ((name, level) for name, level in self._levels.items() if level)

    def update(self, updates: Iterable[Update], controller: int, *, validate_only: bool) -> frozenset[str]:
        """Change levels, all or none. Return the names of the features that changed. Raises ApiError.

        `controller` is the broker that messages name as the controller.
        """
        wanted = {one.name: one for one in updates}
        for one in wanted.values():
            if reason := self._refusal(one, controller):
                raise _failed(f"Invalid update version {one.level} for feature {one.name}. {reason}")
            if one.name == _METADATA and one.level < self._levels[_METADATA]:
                raise _failed(_metadata_downgrade(self._levels[_METADATA], one))
        changed = {name: one.level for name, one in wanted.items() if one.level != self._levels[name]}
        if validate_only or not changed:
            return frozenset()
        levels = self._levels | changed
        self._store.put_features(self.epoch + 1, levels)
        self.epoch, self._levels = self.epoch + 1, levels
        return frozenset(changed)

    def _refusal(self, one: Update, controller: int) -> str | None:
        """Return why a change is invalid; None if it is valid."""
        known = _BY_NAME.get(one.name)
        if one.kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "The controller does not support the given upgrade type."
        if one.level < 0:
            return "A feature version cannot be less than 0."
        if known is None:
            if one.level:
                return f"Local controller {controller} does not support this feature."
            return f"Feature {one.name} not found."
        if not known.least <= one.level <= known.greatest:
            return f"Local controller {controller} only supports versions {known.least}-{known.greatest}"
        before = self._levels[one.name]
        if one.level < before and one.kind == UPGRADE:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
                "downgrade."
            )
        if one.level > before and one.kind != UPGRADE:
            return "Can't downgrade to a newer version."
        return None


def _failed(reason: str) -> ApiError:
    text = f"The update failed for all features since the following feature had an error: {reason}"
    return ApiError(ErrorCode.invalid_update_version, text)


def _metadata_downgrade(before: int, one: Update) -> str:
    """Return the message that refuses an older metadata version: that of 4.3 changes the metadata itself."""
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if one.kind == UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    return f"Unsupported metadata.version downgrade from {before} to {one.level}. {reason}"
