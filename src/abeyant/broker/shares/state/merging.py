"""Merge runs of offsets with their states. Kafka: `PersisterStateBatchCombiner`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from abeyant.broker.shares.spans import StateBatch


def merge(batches: Iterable[StateBatch], start: int) -> tuple[StateBatch, ...]:
    """Return the batches from offset `start` on (-1 for all), in order, without overlaps, equal neighbours joined.

    Where batches overlap, the batch with the higher delivery count wins, and with equal counts the batch with the
    higher state: a record's count never falls, and while the count stays the same, the state goes from available to
    acknowledged or archived. O(n log n) for n batches that overlap little.
    """
    ordered = sorted(batch for batch in batches if batch.last >= start)
    borders = sorted({border for batch in ordered for border in (max(batch.first, start), batch.last + 1)})
    merged: list[StateBatch] = []
    active: list[StateBatch] = []
    upcoming = 0
    for first, after in pairwise(borders):
        active = [batch for batch in active if batch.last >= first]
        while upcoming < len(ordered) and ordered[upcoming].first <= first:
            active.append(ordered[upcoming])
            upcoming += 1
        if not active:
            continue
        best = max(active, key=lambda batch: (batch.deliveries, batch.state))
        if merged and merged[-1].last == first - 1 and merged[-1][2:] == best[2:]:
            merged[-1] = merged[-1]._replace(last=after - 1)
        else:
            merged.append(StateBatch(first, after - 1, best.state, best.deliveries))
    return tuple(merged)
