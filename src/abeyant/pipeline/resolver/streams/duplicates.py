"""Find duplicate operations: of rows with the same (instance, op_id), the first by start and deadline counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from abeyant.pipeline.resolver.streams.columns import Flags, Longs, codes, column

__all__ = ["repeated"]


def repeated(watches: pa.RecordBatch) -> Flags:
    """Mark the watches that do not count, because a copy of the operation, or another row of its id, precedes them.

    The first row by (start, deadline) counts. Where conflicting rows have both in common, an arbitrary row counts, the
    same at each call. O(n log n) by a hash of the ids; the ids themselves are compared where hashes are equal.
    """
    mask = np.zeros(watches.num_rows, np.bool_)
    hashes = column(watches, "operation")
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if len(same):
        suspects = np.unique(order[np.concatenate([same, same + 1])])
        mask[suspects] = _repeated_among(watches.take(pa.array(suspects)))
    return mask


def _repeated_among(watches: pa.RecordBatch) -> Flags:
    """Mark repeated watches, after hashes were compared: sorted by id and version, an id's first version counts."""
    identity = [codes(watches, name) for name in ("instance", "op_id")]
    version = [column(watches, name) for name in ("start", "deadline", "version")]
    watch = column(watches, "watch")
    order = np.lexsort([watch, *reversed(version), *reversed(identity)])
    first = np.maximum.accumulate(np.where(_changes(identity, order), np.arange(len(order)), 0))
    other_version = np.any([values[order] != values[order][first] for values in version], axis=0)
    mask = np.empty(len(order), np.bool_)
    mask[order] = other_version | ~_changes([*identity, *version, watch], order)
    return mask


def _changes(columns: list[Longs], order: NDArray[np.intp]) -> Flags:
    """Mark each row that differs in a column from the row before it; rows are read in `order`."""
    differs = np.ones(len(order), np.bool_)
    differs[1:] = np.any([values[order][1:] != values[order][:-1] for values in columns], axis=0)
    return differs
