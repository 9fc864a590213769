"""Combine the reports of a batch on operations with several watches into outcomes.

Condition `all` holds when the last watch is reached, `any` when the first is. Shards repeat their reports until the
operation's deadline has passed, so the reports of a batch are complete. A report is *fresh* in the batch in which it
became final. An outcome is returned only in the batch in which it becomes final: for `all`, all watches are reached and
one of them is fresh; for `any`, some are reached and all of these are fresh; for expiry, the deadline has passed.

Of two conflicting rows of one id, each shard chooses one without knowledge of the other shards, so some of an
operation's watches may be missing at its end: it is then rejected as a duplicate.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from abeyant.kernels.resolve import NEVER
from abeyant.pipeline.resolver.streams.columns import Flags, Longs, codes, column, filter_rows
from abeyant.pipeline.resolver.streams.layout import OUTCOMES, REJECTED, joined
from abeyant.pipeline.resolver.streams.outcomes import outcomes_at
from abeyant.pipeline.resolver.streams.rejected import reject_torn

__all__ = ["combined"]


def combined(reports: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the outcomes (`layout.OUTCOMES`) and rejected rows (`layout.REJECTED`) of a batch's reports.

    Takes `layout.REPORTS`, with all the reports of each operation that it names. O(n log n).
    """
    keys = [codes(reports, name) for name in ("instance", "op_id")]
    keys += [column(reports, name) for name in ("start", "deadline", "version")]
    order = np.lexsort([column(reports, "watch"), *keys])
    begins = _begins([values[order] for values in keys])
    if not len(begins):
        return joined([], OUTCOMES), joined([], REJECTED)
    reports = reports.take(pa.array(order))
    operations = reports.take(pa.array(begins))
    required = column(operations, "combine")
    complete = np.diff(np.append(begins, len(order))) == np.abs(required)
    last = _flags(operations, "last")

    reached = reports.column("reached").fill_null(NEVER).to_numpy()
    in_time = reached != NEVER
    fresh = _flags(reports, "fresh")
    any_reached = np.logical_or.reduceat(in_time, begins)
    all_reached = complete & np.logical_and.reduceat(in_time, begins)
    of_all = all_reached & np.logical_or.reduceat(fresh, begins)
    of_any = any_reached & np.logical_and.reduceat(fresh | ~in_time, begins)
    holds_ever = np.where(required > 0, all_reached, any_reached)
    ends = np.where(required > 0, of_all, of_any) | (last & complete & ~holds_ever)

    at = np.where(required > 0, np.maximum.reduceat(reached, begins), np.minimum.reduceat(reached, begins))
    at[~holds_ever] = NEVER
    torn = last & ~complete & ~holds_ever & (column(operations, "watch") == 0)
    return outcomes_at(filter_rows(operations, ends), at[ends]), reject_torn(filter_rows(operations, torn))


def _begins(keys: list[Longs]) -> NDArray[np.intp]:
    """Return the index at which each combination of keys begins, in rows sorted by these keys."""
    if not len(keys[0]):
        return np.empty(0, np.intp)
    differs = np.any([values[1:] != values[:-1] for values in keys], axis=0)
    return np.append(0, np.flatnonzero(differs) + 1)


def _flags(rows: pa.RecordBatch, name: str) -> Flags:
    values: Flags = rows.column(name).to_numpy(zero_copy_only=False)
    return values
