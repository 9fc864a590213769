"""Measures of quotas: a rate over time windows, and a token bucket. Time is an argument, in seconds."""

from __future__ import annotations

import math
from collections import deque

__all__ = ["Rate", "TokenBucket"]


class Rate:
    """An amount per second, averaged over time windows, so that bursts are allowed. Kafka: `Rate`, `SampledStat`."""

    __slots__ = ("_count", "_window", "_windows")

    def __init__(self, windows: int, window: float) -> None:
        """Measure over `windows` windows of `window` seconds each, the current one included."""
        self._count = windows
        self._window = window
        self._windows: deque[list[float]] = deque()  # [start time, time of the last record, amount] of each

    def record(self, now: float, amount: float) -> None:
        """Add `amount` at `now`. O(1), amortized."""
        windows = self._windows
        if windows and now - windows[-1][0] < self._window:
            windows[-1][1] = now
            windows[-1][2] += amount
        else:
            windows.append([now, now, amount])
            if len(windows) > self._count + 1:
                windows.popleft()

    def excess(self, now: float, limit: float) -> float:
        """Return the seconds to wait until the rate has fallen to `limit` per second; 0.0 if it is not above `limit`.

        O(windows).
        """
        windows = self._windows
        while windows and now - windows[0][1] >= self._count * self._window:
            windows.popleft()
        if not windows:
            return 0.0
        # The rate covers at least all windows but the current one, even if the first record has just come.
        elapsed = now - windows[0][0]
        missing = max(0, self._count - 1 - int(elapsed / self._window))
        allowed = limit * (elapsed + missing * self._window)
        above = sum(amount for _, _, amount in windows) - allowed
        return above / limit if above > 0 else 0.0


class TokenBucket:
    """A bucket that refills with tokens at a rate, up to a burst. Taking more tokens than there are leaves a debt.

    Kafka: `TokenBucket`.
    """

    __slots__ = ("_filled_at", "_tokens")

    def __init__(self) -> None:
        """Begin with a full bucket."""
        self._tokens = math.inf
        self._filled_at = 0.0

    def take(self, now: float, rate: float, burst: float, tokens: float) -> None:
        """Refill at `rate` tokens per second up to `burst`, then take `tokens`, at `now`. O(1)."""
        self._fill(now, rate, burst)
        self._tokens -= tokens

    def debt(self, now: float, rate: float, burst: float) -> float:
        """Return the seconds until the debt is refilled at `rate` tokens per second; 0.0 without a debt. O(1)."""
        self._fill(now, rate, burst)
        return max(-self._tokens, 0.0) / rate

    def _fill(self, now: float, rate: float, burst: float) -> None:
        self._tokens = min(burst, self._tokens + (now - self._filled_at) * rate)
        self._filled_at = now
