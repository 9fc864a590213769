"""The leader epochs of a log, each with the offset at which it begins (KIP-101, KIP-320).

A follower whose log may differ from a new leader's asks the leader where the follower's last epoch ends, and truncates
its log there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

UNKNOWN = -1


class LeaderEpochs:
    """A table of leader epochs and the first offset of each, both ascending. Lookups are O(log epochs)."""

    def __init__(self) -> None:
        """Start without epochs."""
        self._epochs: list[int] = []
        self._starts: list[int] = []

    @property
    def latest(self) -> int | None:
        """Return the latest epoch; None if there is none."""
        return self._epochs[-1] if self._epochs else None

    def entries(self) -> list[tuple[int, int]]:
        """Return all epochs with their first offsets, oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, offset: int) -> None:
        """Begin `epoch` at `offset`, unless it is the latest. Remove later epochs, and epochs from `offset` on."""
        if epoch < 0 or (self._epochs and epoch == self._epochs[-1]):
            return
        while self._epochs and (self._epochs[-1] > epoch or self._starts[-1] >= offset):
            del self._epochs[-1], self._starts[-1]
        if not self._epochs or self._epochs[-1] != epoch:
            self._epochs.append(epoch)
            self._starts.append(offset)

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the greatest known epoch that is at most `epoch`, and its end offset: `log_end` for the latest epoch.

        Return (-1, -1) if `epoch` is -1 or newer than all known epochs, or if no epoch is known. If `epoch` is older
        than all known epochs, return `epoch` and the offset at which the first known epoch begins.
        """
        if epoch == UNKNOWN or not self._epochs:
            return UNKNOWN, UNKNOWN
        if epoch == self._epochs[-1]:
            return epoch, log_end
        after = bisect_right(self._epochs, epoch)
        if after == len(self._epochs):
            return UNKNOWN, UNKNOWN  # newer than every leader that this log knows
        if after == 0:
            return epoch, self._starts[0]  # older than every known epoch: the two logs agree at most up to this offset
        return self._epochs[after - 1], self._starts[after]

    def at(self, offset: int) -> int | None:
        """Return the epoch in which `offset` was written; None if `offset` is before the first known epoch."""
        after = bisect_right(self._starts, offset)
        return self._epochs[after - 1] if after else None

    def truncate_from(self, end: int) -> None:
        """Remove the epochs that begin at `end` or later."""
        keep = bisect_left(self._starts, end)
        del self._epochs[keep:], self._starts[keep:]

    def truncate_before(self, start: int) -> None:
        """Remove the epochs that end at or before `start`, and make the epoch that holds `start` begin at `start`."""
        after = bisect_right(self._starts, start)
        if after:
            del self._epochs[: after - 1], self._starts[: after - 1]
            self._starts[0] = start
