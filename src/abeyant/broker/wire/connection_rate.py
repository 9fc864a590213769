"""The rate at which a broker accepts connections, against `max.connection.creation.rate`.

Kafka: `ConnectionQuotas`, with `Rate`, `SampledStat` and `QuotaUtils`.
"""

from __future__ import annotations

from collections import deque


class ConnectionRate:
    """Connections per second, counted in windows as Kafka does, so that a burst is accepted at once."""

    __slots__ = ("_count", "_window", "_windows")

    def __init__(self, windows: int, window: float) -> None:
        """`windows` windows of `window` seconds each, the current one included."""
        self._count = windows
        self._window = window
        self._windows: deque[tuple[float, int]] = deque()  # when each began, and its connections

    def record(self, now: float, limit: int) -> float:
        """Count a connection at `now`; return by how many seconds to delay it, at most a window's. O(windows)."""
        windows = self._windows
        if windows and now - windows[-1][0] < self._window:
            began, count = windows.pop()
            windows.append((began, count + 1))
        else:
            windows.append((now, 1))
        while now - windows[0][0] >= self._count * self._window:
            windows.popleft()
        # A rate is over all windows but the current one at least, however short the broker has counted.
        elapsed = now - windows[0][0]
        missing = max(0, self._count - 1 - int(elapsed / self._window))
        seconds = elapsed + missing * self._window
        allowed = limit * seconds
        excess = sum(count for _, count in windows) - allowed
        return min(excess / limit, self._window) if excess > 0 else 0.0
