"""Measure the cost of delayed purging: replay a trace in Kafka's own purgatory, which purges by an estimate.

A completed operation stays on the watch lists of its other keys until a check of one of these keys, or a purge, finds
it. `KafkaPurgatory` replays the trace operation by operation, on a virtual clock with Kafka's wheel; this takes about a
hundred times as long as the wheel alone. An operation is completed by a check of one of its keys. Neither a log nor an
outcome shows which key, so the key is chosen by the time of completion, the same in every run.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from abeyant.errors import AbeyantError
from abeyant.kernels.replay import NEVER
from abeyant.pipeline.purging.kafka import KafkaPurgatory
from abeyant.pipeline.purging.virtual import VirtualClock, VirtualReaper
from abeyant.pipeline.replayer.trace_columns import Integers
from abeyant.purgatory import DelayedOperation

__all__ = ["NO_PURGES", "Purges", "purges"]


class Purges(NamedTuple):
    """Counts of watch-list entries and of purges; all are None without a purge interval."""

    watched_most: int | None
    """Maximum number of entries on all watch lists, including entries of ended operations."""
    purges: int | None
    purged_past: int | None
    """Number of watch-list entries that purges looked at."""


NO_PURGES = Purges(None, None, None)

_LONGEST_US: Final = 50 * 365 * 86_400_000_000
"""The longest time-out replayed, 50 years. Longer time-outs are cut to it, as `DelayedOperation` has a limit."""

_YEAR_US: Final = 365 * 86_400_000_000
_MOST_YEARS: Final = 90
"""Maximum years from the first start to the last. With the longest time-out they fit the wheel's nanoseconds."""


class _Replayed(DelayedOperation):
    """An operation of the trace. It completes once `came` is set: its condition has come true."""

    def __init__(self, timeout_us: int, came: bool) -> None:
        super().__init__(timeout_us / 1e6)
        self.came = came

    def try_complete(self) -> bool:
        """Complete if the condition has come true."""
        return self.came and self.force_complete()


def purges(
    starts: Integers, timeouts: Integers, ends: Integers, first: Integers, last: Integers, keys: Integers, interval: int
) -> Purges:
    """Run a trace (times in microseconds) through Kafka's purgatory; row n has the keys `keys[first[n]:last[n]]`.

    Raises `AbeyantError` if the starts of the operations span 90 years or more.
    """
    years = (starts.max(initial=0) - starts.min(initial=NEVER)) // _YEAR_US
    if years >= _MOST_YEARS:
        raise AbeyantError(
            f"a purge interval can be tried over at most {_MOST_YEARS} years, and the operations span {years:,}: "
            "leave the purge interval out, or drop the operations whose start is wrong"
        )
    clock = VirtualClock()
    purgatory = KafkaPurgatory(clock, interval)
    reaper = VirtualReaper(purgatory, clock, each_poll=False)
    # At one instant progress comes before starts, and starts before expiries (O3).
    origin = starts.min(initial=NEVER)
    completes = (ends > starts) & (ends <= starts + timeouts)
    waits = np.flatnonzero(completes)
    at = np.concatenate([starts, ends[waits]]) - origin
    row = np.concatenate([np.arange(len(starts)), waits])
    ending = np.arange(len(at)) >= len(starts)
    order = np.lexsort((~ending, at))
    pending: dict[int, _Replayed] = {}
    watched = 0
    for now, number, ends_now in zip(at[order].tolist(), row[order].tolist(), ending[order].tolist(), strict=True):
        reaper.advance_to(now * 1000 - 1)
        own_keys = keys[first[number] : last[number]].tolist()
        if ends_now:
            operation = pending.pop(number)
            operation.came = True
            if own_keys:
                purgatory.check_and_complete(own_keys[now % len(own_keys)])
            else:
                operation.force_complete()
            continue
        is_met = bool(ends[number] <= starts[number])
        operation = _Replayed(min(int(timeouts[number]), _LONGEST_US), is_met)
        purgatory.try_complete_else_watch(operation, own_keys)
        if completes[number]:
            pending[number] = operation
        watched = max(watched, purgatory.watched)
    return Purges(watched, *purgatory.counts[2:])
