"""Count the outcomes in files, in one pass in this process. No Spark.

The columns are few, so Arrow and numpy need a fraction of a microsecond per row, while even the smallest of Spark's
jobs takes a second. Memory: a batch of rows, the bins, and the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from abeyant.pipeline.results.waits import MOST_KEYS, Waits, bins

__all__ = [
    "EXACT_UP_TO",
    "SAMPLED",
    "Counted",
    "OutcomeCounts",
    "Sample",
    "count_outcomes",
    "counted_reasons",
    "keys_of",
    "still_open",
]

EXACT_UP_TO: Final = 100_000
"""Maximum number of expired operations whose keys are looked up. Of more, a random sample is looked up."""

SAMPLED: Final = ["instance", "op_id"]
"""The columns of the sample."""

_BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True)
class OutcomeCounts:
    """The counts and the sample of one pass over outcomes."""

    waits: pa.Table
    """Counts (kind, outcome, bin, most_ms, operations) with the longest wait of each bin; a null `kind` is ''."""
    sample: pa.Table | None = None
    """Ids (instance, op_id) of all expired operations, or of at most `EXACT_UP_TO`; None if no sample was drawn."""
    pending: int = 0
    """Number of operations that never end, as their countdown is paused for ever; `waits` does not count them."""
    late: int = 0
    """Number of expired operations with a deadline after the newest event."""
    newest: int | None = None
    """The time of the newest event in microseconds since 1970; None if it was not requested, or nothing expired."""

    @property
    def expired(self) -> int:
        """The number of expired operations."""
        return self.count("expired")

    @property
    def all_expired(self) -> bool:
        """Return whether there are operations, and all of them expired."""
        return not self.pending and 0 < self.expired == pc.sum(self.waits["operations"]).as_py()

    def count(self, outcome: str) -> int:
        """Return the number of operations with this outcome."""
        mask = pc.equal(self.waits["outcome"], outcome)
        return pc.sum(self.waits["operations"].filter(mask)).as_py() or 0


class Sample:
    """A uniform random sample of the operations that were added; it has at most `EXACT_UP_TO` operations."""

    def __init__(self) -> None:
        self.one_in = 1
        """The sampling rate: one operation in `one_in` is kept."""
        self._random = np.random.default_rng(0)
        self._kept = pa.table({name: pa.array([], pa.string()) for name in SAMPLED})

    def add(self, some: pa.Table) -> None:
        """Draw one row in `one_in` of these rows (instance, op_id), and add the drawn rows."""
        self.add_drawn(some.filter(pa.array(self._random.random(some.num_rows) * self.one_in < 1)))

    def sample_at_most(self, rows: int) -> int:
        """Lower the sampling rate until a sample of `rows` rows fits `EXACT_UP_TO`. Return N: draw one row in N."""
        while rows > EXACT_UP_TO * self.one_in:
            self._halve()
        return self.one_in

    def add_drawn(self, drawn: pa.Table) -> None:
        """Add rows that the caller has drawn itself, with the rate of one in `one_in`."""
        self._kept = pa.concat_tables([self._kept, drawn.cast(self._kept.schema)])
        while self._kept.num_rows > EXACT_UP_TO:
            self._halve()

    def _halve(self) -> None:
        self.one_in *= 2
        self._kept = self._kept.filter(pa.array(self._random.random(self._kept.num_rows) < 0.5)).combine_chunks()

    def table(self) -> pa.Table:
        """Return the sample in one chunk: Spark 4.3 loses rows of a table with empty chunks."""
        return self._kept.combine_chunks()


@dataclass(frozen=True)
class Counted:
    """Running counts and the running sample, while outcomes are read."""

    waits: Waits = field(default_factory=Waits)
    sample: Sample = field(default_factory=Sample)

    def ended(self) -> OutcomeCounts:
        """Return the counts and the sample so far."""
        return OutcomeCounts(self.waits.table(), self.sample.table(), self.waits.pending)


def count_outcomes(files: Iterable[Path], newest_event: Callable[[], int | None] | None = None) -> OutcomeCounts:
    """Count outcomes by kind, outcome and length of wait, in bins of 0.5 %, and sample the expired operations.

    If an operation expired, calls `newest_event` once for the newest event's time, in microseconds since 1970.
    """
    counts, late = Counted(), 0
    newest: int | None = None
    at = [] if newest_event is None else ["at"]
    columns = [*SAMPLED, "kind", "outcome", "waited_ms", *at]
    for file in files:
        batches = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").iter_batches(_BATCH_ROWS, columns=columns)
        for batch in batches:
            if pending := batch.column("waited_ms").null_count:  # operations pending for ever have no wait
                counts.waits.pending += pending
                batch = batch.filter(pc.is_valid(batch.column("waited_ms")))
            counts.waits.add(bins(batch))
            expired = batch.select([*SAMPLED, *at]).filter(pc.equal(batch.column("outcome"), "expired"))
            counts.sample.add(pa.Table.from_batches([expired.select(SAMPLED)]))
            if newest_event is not None and expired.num_rows:
                newest, newest_event = newest_event(), None
            if newest is not None:
                late += pc.sum(pc.greater(expired.column("at").cast(pa.int64()), newest)).as_py() or 0
    return replace(counts.ended(), late=late, newest=newest)


def still_open(ended: OutcomeCounts) -> str:
    """Return a sentence on expired operations with a deadline after the newest event; '' if there are none.

    Such operations expired by definition, as the tables are assumed to be complete; later events may complete them.
    """
    if ended.newest is None or not ended.late:
        return ""
    time = str(np.datetime64(ended.newest // 1_000_000, "s")).replace("T", " ")  # of any year
    return (
        f"{ended.late:,} of the {ended.expired:,} expired have a deadline after the newest event ({time} UTC): "
        "they may still be open, if the table of events ends there"
    )


def keys_of(ended: OutcomeCounts, operations: pa.Table) -> pa.Table:
    """Return the keys on which most operations expired: (instance, key, expired, one_in), at most `MOST_KEYS`.

    `operations` (instance, op_id, the list `key`) has at least the sampled operations. O(rows of it), in Python.
    """
    sample = Sample().table() if ended.sample is None else ended.sample
    one_in = ended.expired / max(sample.num_rows, 1)
    sample_ids = set(zip(*sample.to_pydict().values(), strict=True))
    rows = {
        (row["instance"], row["op_id"], key)
        for row in operations.to_pylist()
        if (row["instance"], row["op_id"]) in sample_ids
        for key in row["key"] or ()
        if key is not None
    }
    counts = Counter((instance, key) for instance, _, key in rows)
    top_keys = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_KEYS]
    return pa.table(
        {
            "instance": pa.array([instance for (instance, _), _ in top_keys], pa.string()),
            "key": pa.array([key for (_, key), _ in top_keys], pa.string()),
            "expired": pa.array([round(count * one_in) for _, count in top_keys], pa.int64()),
            "one_in": pa.array([one_in] * len(top_keys), pa.float64()),
        }
    )


def counted_reasons(files: Iterable[Path]) -> Counter[str]:
    """Count the rows of files by their column `reason`."""
    counts = Counter[str]()
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=["reason"]):
            for entry in batch.column("reason").value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
    return counts
