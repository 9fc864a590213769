"""What a running stream tells: a line a batch that did something, a line now and then while it is idle, and totals."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from abeyant.pipeline.commands.stream_run.changed import ChangedFiles
from abeyant.pipeline.commands.stream_run.late import Lateness

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from abeyant.pipeline.resolver.streams import BatchCounts

__all__ = ["Lines"]

_COUNTED: Final = ("completed", "expired", "late", "duplicates", "invalid")
_IDLE_SECONDS: Final = 60.0


class Lines:
    """Looks at a query's progress when asked to, and prints what is new in it to the error stream unless `quiet`."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        lateness: Lateness | None = None,
        clock: Callable[[], float] = time.monotonic,
        changed: ChangedFiles | None = None,
    ) -> None:
        self.totals: Counter[str] = Counter()
        """What all batches seen did: how many outcomes and rejected rows of each kind."""
        self.pending: int | None = None
        """Watches that are pending after the last batch; None before the first."""
        self.quiet = quiet
        self.rows = 0
        """Rows read in all batches seen."""
        self._late_by: float | None = None
        self._many_late = False
        self._lateness = lateness or Lateness(0.0)
        self._clock = clock
        self.changed = changed
        self.first: int | None = None
        """The number of the first batch seen; None before it."""
        self._last = -1
        self._shown = clock()

    def look(self, query: StreamingQuery) -> None:
        """Read on in the query's progress."""
        from abeyant.pipeline.resolver.streams import batch_counts

        if self.changed is not None:
            self.changed.look_now_and_then()
        latest = query.lastProgress
        if latest is None or latest.batchId <= self._last:
            return
        # Spark keeps the last hundred; between two looks there were fewer.
        for progress in query.recentProgress:
            counts = batch_counts(progress)
            if counts is not None and counts.batch > self._last:
                self._last = counts.batch
                self.add(counts)

    def add(self, counts: BatchCounts) -> None:
        """Count one batch, and tell of it if it did something, or if nothing was told for a minute."""
        if self.first is None:
            self.first = counts.batch
        did = {name: getattr(counts, name) for name in _COUNTED}
        self.totals.update(did)
        changed = self.pending != counts.pending
        self.pending = counts.pending
        self.rows += counts.rows
        if counts.late_by is not None:
            self._late_by = max(counts.late_by, self._late_by or 0.0)
        late = self._lateness.told(f"batch {counts.batch}", counts.late, counts.rows, counts.late_by)
        self._many_late |= late is not None
        if self.quiet or not (any(did.values()) or changed or self._clock() - self._shown >= _IDLE_SECONDS):
            return
        self._shown = self._clock()
        print(_line(counts, did), file=sys.stderr, flush=True)
        if late is not None:
            print(late, file=sys.stderr, flush=True)

    def told_of_late(self) -> str | None:
        """Return what is to be said of the late rows of all batches; None where they were few in every one."""
        return self._lateness.told("this run", self.totals["late"], self.rows, self._late_by, any_share=self._many_late)


def _line(counts: BatchCounts, did: dict[str, int]) -> str:
    watermark = "-" if counts.watermark is None else counts.watermark.strftime("%Y-%m-%d %H:%M:%S")
    parts = [
        f"batch {counts.batch}: {counts.rows:,} rows ({counts.rows_per_second:,.0f}/s)",
        *(f"{did[name]:,} {name}" for name in ("completed", "expired")),
        *(f"{did[name]:,} {name}" for name in _COUNTED[2:] if did[name]),
        f"{counts.pending:,} pending",
        f"watermark {watermark}",
    ]
    return ", ".join(parts)
