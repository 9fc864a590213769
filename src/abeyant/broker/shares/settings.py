"""The settings of a share group that its share partitions use. Each is read when needed, as it may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abeyant.broker.group_settings import GroupSettings


class ShareSettings:
    """One group's settings. A setting that the group does not have is the brokers' setting."""

    __slots__ = ("_group", "_settings")

    def __init__(self, settings: GroupSettings, group: str) -> None:
        self._settings = settings
        self._group = group

    def _value(self, name: str) -> Any:
        return self._settings.value(self._group, f"share.{name}")

    @property
    def lock_seconds(self) -> float:
        """Return the duration of a lock in seconds."""
        milliseconds: int = self._value("record.lock.duration.ms")
        return milliseconds / 1000

    @property
    def delivery_limit(self) -> int:
        """Return the maximum number of deliveries of a record."""
        limit: int = self._value("delivery.count.limit")
        return limit

    @property
    def max_locks(self) -> int:
        """Return the maximum number of records in flight per partition."""
        limit: int = self._value("partition.max.record.locks")
        return limit

    @property
    def renew(self) -> bool:
        """Return whether members may renew locks (KIP-1222)."""
        allowed: bool = self._value("renew.acknowledge.enable")
        return allowed

    @property
    def read_committed(self) -> bool:
        """Return whether records of open and aborted transactions are withheld from members."""
        level: str = self._value("isolation.level")
        return level == "read_committed"

    @property
    def reset(self) -> str:
        """Return the start of a group without stored state: earliest, latest or by_duration:DURATION (ISO 8601)."""
        where: str = self._value("auto.offset.reset")
        return where
