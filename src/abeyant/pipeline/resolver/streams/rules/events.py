"""Select the events of a shard that can still decide an outcome, and combine older events into few.

An operation that has started needs no events from before its start, except for `count="always"` and pauses; an
operation that is still to come starts at the watermark or later. So of each key, all events are kept from the earliest
start of an operation that waits on the key (or from the watermark, if none waits). Of the *old* events, before that
time, these are kept for each key:

    pauses              the last event, which decides whether the key pauses
    count="always"      one event with the combined progress: greatest, sum, last
      with details      and events that show since when the progress has been so: see `_folded`
    serves              all events that may still serve an operation
    forget_after        the last event
    otherwise           none
"""

from __future__ import annotations

from typing import Final

import numpy as np

from abeyant.pipeline.resolver.streams.columns import Flags, Longs
from abeyant.pipeline.resolver.streams.rules.layout import AT, COUNTED, IDENTITY, PLACE, PROGRESS, USES, Use
from abeyant.tables.rules import Combine, Rules

__all__ = ["select_events"]

_MOST: Final = 2**63 - 1


def select_events(
    events: Longs, places: Longs, starts: Longs, watermark: int, rules: Rules, forget_after_us: int | None
) -> Longs:
    """Return the events to keep. `places` and `starts` have each waiting watch's key and start. O(n log n)."""
    keys, first = np.unique(places, return_inverse=True)
    earliest = np.full(len(keys) + 1, watermark)
    np.minimum.at(earliest, first, starts)
    place = np.minimum(np.searchsorted(keys, events[:, PLACE]), max(len(keys) - 1, 0))
    waited_for = keys[place] == events[:, PLACE] if len(keys) else np.zeros(len(events), np.bool_)
    old = events[:, AT] < np.where(waited_for, earliest[place], watermark)
    before, events = events[old], events[~old]
    parts = [events, _select_use(before, Use.SERVING)]
    if rules.count == "always":
        parts.append(_folded(_select_use(before, Use.LINES), rules.combine, details=rules.details))
    parts += [_last(_select_use(before, use)) for use in (Use.LEVELS, Use.SEEN)]
    selected: Longs = np.concatenate(parts)
    if forget_after_us is not None:
        alive = selected[selected[:, AT] >= watermark - forget_after_us, PLACE]
        selected = selected[np.isin(selected[:, PLACE], np.concatenate([alive, keys]))]
    return selected


def _select_use(events: Longs, use: int) -> Longs:
    """Return copies of the events that have the flag `use`, with all other flags of `Use` cleared."""
    subset: Longs = events[events[:, USES] & use != 0]
    subset[:, USES] = use
    return subset


def _last(events: Longs) -> Longs:
    """Return the last event of each key; of several at one instant, the event with the greatest progress."""
    events = events[np.lexsort((events[:, PROGRESS], events[:, AT], events[:, IDENTITY], events[:, PLACE]))]
    last: Longs = events[_ends(_new_keys(events))]
    return last


def _folded(events: Longs, combine: Combine, *, details: bool) -> Longs:
    """Return one event per key with the combined progress; with `details`, more, to know since when it was reached."""
    if not len(events):
        return events
    events = events[np.lexsort((events[:, PROGRESS], events[:, AT], events[:, IDENTITY], events[:, PLACE]))]
    new_key = _new_keys(events)
    key = np.cumsum(new_key) - 1
    counted = np.bincount(key, events[:, COUNTED]).astype(np.int64)
    values = events[:, PROGRESS]
    if combine == "sum":
        values = _running_sums(values, new_key)
    elif combine == "max":
        values = _running(values, key)
    new_instant = new_key.copy()
    new_instant[1:] |= events[1:, AT] != events[:-1, AT]
    last = _ends(new_instant)
    key, values = key[last], values[last]
    first = new_instant.nonzero()[0]
    new_key = new_key[first]
    keep = np.flatnonzero(_ends(new_key))
    if details:
        # The value has been at least r since it was last below r. So an instant counts with the least value from there
        # on, and of equal values the first is kept.
        values = ~_running(~values[::-1], key[-1] - key[::-1])[::-1]
        differs = new_key.copy()
        differs[1:] |= values[1:] != values[:-1]
        keep = np.flatnonzero(differs)
    rows, values, key = events[last][keep], values[keep], key[keep]
    new_key = new_key[keep] if details else np.ones(len(keep), np.bool_)
    if combine == "sum":
        values = np.where(new_key, values, values - np.roll(values, 1))
    rows[:, PROGRESS], rows[:, COUNTED] = values, 1
    rows[_ends(new_key), COUNTED] += counted - np.bincount(key, minlength=len(counted))
    return rows


def _running(values: Longs, key: Longs) -> Longs:
    """Return the running maximum within each key; rows are in the order of keys, which are numbered from 0."""
    distinct, rank = np.unique(values, return_inverse=True)
    maxima: Longs = distinct[np.maximum.accumulate(key * len(distinct) + rank) - key * len(distinct)]
    return maxima


def _running_sums(values: Longs, new_key: Flags) -> Longs:
    """Return the running sum within each key, limited to 64 bits."""
    if np.abs(values.astype(np.float64)).sum() < _MOST / 2:
        sums = np.cumsum(values)
        first = np.flatnonzero(new_key)
        before = sums[first] - values[first]
        key_sums: Longs = sums - before[np.cumsum(new_key) - 1]
        return key_sums
    sums, running = np.empty(len(values), np.int64), 0
    for row, (value, begins) in enumerate(zip(values.tolist(), new_key.tolist(), strict=True)):
        running = min(max((0 if begins else running) + value, -_MOST - 1), _MOST)
        sums[row] = running
    return sums


def _new_keys(events: Longs) -> Flags:
    """Mark the first row of each key; rows are in the order of keys."""
    first = np.ones(len(events), np.bool_)
    first[1:] = (events[1:, [PLACE, IDENTITY]] != events[:-1, [PLACE, IDENTITY]]).any(axis=1)
    return first


def _ends(begins: Flags) -> Flags:
    """Mark the last row of each group whose first rows are marked."""
    ends = np.ones(len(begins), np.bool_)
    ends[:-1] = begins[1:]
    return ends
