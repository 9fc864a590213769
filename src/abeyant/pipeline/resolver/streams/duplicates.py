"""One id, one operation: of rows with the same (instance, op_id) the first by start and deadline counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from abeyant.pipeline.resolver.streams.columns import Flags, Longs, codes, column

__all__ = ["repeated"]


def repeated(watches: pa.RecordBatch) -> Flags:
    """Mark the watches that do not count, since the same operation, or another row of its id, is before them.

    The first by (start, deadline) is the version that counts; between conflicting rows that tie in both, an arbitrary
    one, and always the same. O(n log n) in a hash of the ids; the ids themselves are compared where hashes are equal.
    """
    found = np.zeros(watches.num_rows, np.bool_)
    hashes = column(watches, "operation")
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if len(same):
        suspects = np.unique(order[np.concatenate([same, same + 1])])
        found[suspects] = _repeated_among(watches.take(pa.array(suspects)))
    return found


def _repeated_among(watches: pa.RecordBatch) -> Flags:
    """Compare closely, in the order of id, version and watch: the first row of an id says which version counts."""
    identity = [codes(watches, name) for name in ("instance", "op_id")]
    version = [column(watches, name) for name in ("start", "deadline", "version")]
    watch = column(watches, "watch")
    order = np.lexsort([watch, *reversed(version), *reversed(identity)])
    first = np.maximum.accumulate(np.where(_changes(identity, order), np.arange(len(order)), 0))
    other_version = np.any([values[order] != values[order][first] for values in version], axis=0)
    found = np.empty(len(order), np.bool_)
    found[order] = other_version | ~_changes([*identity, *version, watch], order)
    return found


def _changes(columns: list[Longs], order: NDArray[np.intp]) -> Flags:
    """Mark each row that, in this order, differs from the one before in any of the columns."""
    differs = np.ones(len(order), np.bool_)
    differs[1:] = np.any([values[order][1:] != values[order][:-1] for values in columns], axis=0)
    return differs
