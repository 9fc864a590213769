"""Count outcomes by kind, outcome and length of wait, for the summary, tables and figures. No Spark."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

__all__ = ["BINS_PER_E", "COUNTED_BY", "MOST_KEYS", "Waits", "bins"]

BINS_PER_E: Final = 200
"""Number of bins per factor of e: a bin's longest wait is at most 0.5 % longer than its shortest."""
MOST_KEYS: Final = 50
"""Maximum number of keys that are reported: the keys on which most operations expired."""
COUNTED_BY: Final = ["kind", "outcome", "bin"]

_ADD_UP: Final = 32  # batches whose counts are kept before they are added up
_WAITS: Final = pa.schema(
    {"kind": pa.string(), "outcome": pa.string(), "bin": pa.int64(), "most_ms": pa.float64(), "operations": pa.int64()}
)


class Waits:
    """Running counts of outcomes: (kind, outcome, bin, most_ms, operations)."""

    def __init__(self) -> None:
        self._parts: list[pd.DataFrame] = []
        self.pending = 0
        """Number of operations that never end, as their countdown is paused for ever; `table` does not count them."""

    def add(self, some: pd.DataFrame) -> None:
        """Add the counts of one batch. Rows without a `bin` count operations that never end."""
        is_pending = some["bin"].isna()
        if is_pending.any():
            self.pending += int(some.loc[is_pending, "operations"].sum())
            some = some[~is_pending].astype({"bin": "int64"})
        if len(some):  # pandas guesses the types of a table without rows
            self._parts.append(some)
        if len(self._parts) == _ADD_UP:
            self._parts = [self._sum()]

    def table(self) -> pa.Table:
        """Return the counts of all batches, one row per kind, outcome and bin."""
        counts = self._sum() if self._parts else pd.DataFrame()
        return _WAITS.empty_table() if counts.empty else pa.Table.from_pandas(counts, _WAITS, preserve_index=False)

    def _sum(self) -> pd.DataFrame:
        grouped = pd.concat(self._parts).groupby(COUNTED_BY, as_index=False, observed=True)
        return pd.DataFrame(grouped.agg(most_ms=("most_ms", "max"), operations=("operations", "sum")))


def bins(batch: pa.RecordBatch) -> pd.DataFrame:
    """Count one batch by kind, outcome and bin. O(n log n): sorts one integer per row, which combines all three."""
    kind, kinds = _numbered(batch.column("kind"))
    outcome, outcomes = _numbered(batch.column("outcome"))
    waited = batch.column("waited_ms").to_numpy()
    length = np.floor(np.log1p(waited * 1000) * BINS_PER_E).astype(np.int64)
    width = int(length.max(initial=0)) + 1
    cell = (kind * len(outcomes) + outcome) * width + length
    order = np.argsort(cell)
    cell = cell[order]
    firsts = np.flatnonzero(np.diff(cell, prepend=-1))
    group, length = np.divmod(cell[firsts], width)
    return pd.DataFrame(
        {
            "kind": kinds[group // max(len(outcomes), 1)],
            "outcome": outcomes[group % max(len(outcomes), 1)],
            "bin": length,
            "most_ms": np.maximum.reduceat(waited[order], firsts) if len(firsts) else waited,
            "operations": np.diff(firsts, append=len(cell)),
        }
    )


def _numbered(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """Return a number for each text, and the distinct texts in the order of their numbers; a null counts as ''."""
    encoded = texts.fill_null("").dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_numpy(zero_copy_only=False)
