"""The settings of a topic's logs, with types. `broker/settings.py` builds them from Kafka's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

FOREVER = (1 << 63) - 1  # milliseconds: Kafka's Long.MAX_VALUE


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A log's settings. Times are milliseconds, sizes are bytes; -1 means no limit where Kafka allows -1."""

    max_message_bytes: int = 1_048_588
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    producer_expiration_ms: int = 86_400_000
    roll_ms: int = field(init=False, repr=False, compare=False)
    """Milliseconds until a new segment begins: `segment.ms` or, with "compact", a shorter `max.compaction.lag.ms`."""

    def __post_init__(self) -> None:
        longest = self.segment_ms
        if self.compact:
            longest = min(longest, self.max_compaction_lag_ms)
        object.__setattr__(self, "roll_ms", longest)

    @property
    def compact(self) -> bool:
        """Return whether `cleanup.policy` includes "compact": remove all but the last record of each key."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Return whether `cleanup.policy` includes "delete": remove old segments by time and size."""
        return "delete" in self.cleanup_policy
