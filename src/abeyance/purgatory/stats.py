"""What a purgatory has seen so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PurgatoryStats:
    """One consistent reading of a purgatory's counts, those of Kafka's purgatory metrics and more.

    `watched`, `watched_keys` and `delayed` are what is there now; the others are sums since it was made.
    """

    watched: int
    """Watches: an operation counts once for each of its keys. (Kafka: `PurgatorySize`.)"""
    watched_keys: int
    """Keys on which at least one operation waits."""
    delayed: int
    """Operations whose timer runs. (Kafka: `NumDelayedOperations`.)"""
    completed: int
    """Operations that ended before their time was over, those that never had to wait included."""
    expired: int
    """Operations that ended because their time was over, or because `close("expire")` ended them."""
    cancelled: int
    """Operations that were taken out and handed back without an end."""
    errors: int
    """Errors from operations' own code that were reported to `on_error`, or logged."""
