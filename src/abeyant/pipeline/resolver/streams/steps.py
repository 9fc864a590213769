"""Select which steps of a shard's keys stay in the state after a batch."""

from __future__ import annotations

import numpy as np

from abeyant.kernels.resolve import Staircases
from abeyant.pipeline.resolver.streams.clock import START, Clock
from abeyant.pipeline.resolver.streams.columns import Flags, Longs

__all__ = ["select_steps"]

_PLACE, _IDENTITY, _AT = 0, 1, 3


def select_steps(
    staircases: Staircases, rows: Longs, clock: Clock, waited_for: Longs, forget_after_us: int | None
) -> Longs:
    """Return the steps to keep as state: all steps above the watermark, and each key's greatest progress below it.

    `staircases` were built from `rows`. With `forget_after_us`, drop keys without an event for that long before the
    watermark, unless an operation waits on the key (`waited_for` has the places of such keys). An event above the
    watermark that adds no step counts as if it came at the watermark, so its key may be dropped that much earlier.
    """
    steps: Longs = np.asarray(staircases.steps).reshape(-1, 4)
    below = clock.are_final(steps[:, _AT])
    # A key's steps are in descending order of progress and time: the first below the watermark has the most progress.
    steps = steps[~(below & _continues(steps) & np.roll(below, 1))]
    if forget_after_us is None:
        return steps
    below = clock.are_final(steps[:, _AT])
    latest = np.minimum(_latest(rows), max(clock.watermark, START + 1) - 1)
    steps[below, _AT] = latest[_key_numbers(steps)[below]]
    old = steps[:, _AT] < clock.watermark - forget_after_us
    # A key with a step above the watermark is not old; its step below the watermark must stay as well.
    alive = np.isin(_key_numbers(steps), np.unique(_key_numbers(steps)[~old]))
    kept: Longs = steps[alive | np.isin(steps[:, _PLACE], waited_for)]
    return kept


def _continues(rows: Longs) -> Flags:
    """Mark the rows that have the same key as the row before."""
    same = np.zeros(len(rows), np.bool_)
    same[1:] = (rows[1:, : _IDENTITY + 1] == rows[:-1, : _IDENTITY + 1]).all(axis=1)
    return same


def _key_numbers(rows: Longs) -> Longs:
    """Number the keys of rows that are sorted by key, from 0."""
    return np.cumsum(~_continues(rows)) - 1


def _latest(rows: Longs) -> Longs:
    """Return the greatest time of each key's rows, in the order of keys."""
    rows = rows[np.lexsort([rows[:, _IDENTITY], rows[:, _PLACE]])]
    firsts = np.flatnonzero(~_continues(rows))
    return np.maximum.reduceat(rows[:, _AT], firsts) if len(firsts) else np.empty(0, np.int64)
