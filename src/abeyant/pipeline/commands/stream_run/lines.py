"""Print a running stream's progress: a line for each batch that did something, and a line a minute while idle."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from abeyant.pipeline.commands.stream_run.changed import ChangedFiles

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from abeyant.pipeline.resolver.streams import BatchCounts

__all__ = ["Lateness", "Lines"]

_COUNTED: Final = ("completed", "expired", "cancelled", "late", "duplicates", "invalid")
_IDLE_SECONDS: Final = 60.0


class Lines:
    """Printer of a stream's progress: each `look` counts the new batches and, unless `quiet`, prints to stderr."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        lateness: Lateness | None = None,
        clock: Callable[[], float] = time.monotonic,
        changed: ChangedFiles | None = None,
    ) -> None:
        self.totals: Counter[str] = Counter()
        """Totals of all batches seen: outcomes and rejected rows of each kind."""
        self.pending: int | None = None
        """Number of watches that are pending after the last batch seen; None before the first batch."""
        self.quiet = quiet
        self.rows = 0
        """Rows read in all batches seen."""
        self._late_by: float | None = None
        self._many_late = False
        self._lateness = lateness or Lateness(0.0)
        self._clock = clock
        self.changed = changed
        self.first: int | None = None
        """The number of the first batch seen; None until a batch was seen."""
        self._last = -1
        self._shown = clock()

    def look(self, query: StreamingQuery) -> None:
        """Count the new batches in the query's progress, and print lines about them."""
        from abeyant.pipeline.resolver.streams import batch_counts

        if self.changed is not None:
            self.changed.look_now_and_then()
        latest = query.lastProgress
        if latest is None or latest.batchId <= self._last:
            return
        # Spark keeps the last hundred batches; fewer end between two calls.
        for progress in query.recentProgress:
            counts = batch_counts(progress)
            if counts is not None and counts.batch > self._last:
                self._last = counts.batch
                self.add(counts)

    def add(self, counts: BatchCounts) -> None:
        """Count one batch, and print a line if the batch did something, or if no line was printed for a minute."""
        if self.first is None:
            self.first = counts.batch
        did = {name: getattr(counts, name) for name in _COUNTED}
        self.totals.update(did)
        changed = self.pending != counts.pending
        self.pending = counts.pending
        self.rows += counts.rows
        if counts.late_by is not None:
            self._late_by = max(counts.late_by, self._late_by or 0.0)
        late = self._lateness.late_line(f"batch {counts.batch}", counts.late, counts.rows, counts.late_by)
        self._many_late |= late is not None
        if self.quiet or not (any(did.values()) or changed or self._clock() - self._shown >= _IDLE_SECONDS):
            return
        self._shown = self._clock()
        print(_line(counts, did), file=sys.stderr, flush=True)
        if late is not None:
            print(late, file=sys.stderr, flush=True)

    def late_summary(self) -> str | None:
        """Return a line about the late rows of the whole run; None if every batch had few of them."""
        return self._lateness.late_line(
            "this run", self.totals["late"], self.rows, self._late_by, any_share=self._many_late
        )


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


_SHARE: Final = 0.01
"""Late rows are reported if they are a larger share of the rows of a batch or a run."""

_UNITS: Final = (("d", 86_400, 2), ("h", 3600, 2), ("m", 60, 2), ("s", 1, 0))
"""Units of a printed duration: name, seconds, and the minimum number of units for which it is used."""


@dataclass(frozen=True)
class Lateness:
    """Allowed lateness of a stream's rows, in seconds, and whether the rows come from Kafka."""

    seconds: float
    topics: bool = False
    """Whether all rows come from Kafka, none from files."""

    def late_line(
        self, what: str, late: int, rows: int, late_by: float | None, *, any_share: bool = False
    ) -> str | None:
        """Return a line about the rows of `what`, a batch or a run, that came too late; None if they were few.

        With `any_share`, report even a small share. `late_by` is the largest number of seconds by which a row was
        behind the watermark; None after the end of input.
        """
        if not late or (late <= _SHARE * rows and not any_share):
            return None
        share = 100 * min(late / max(rows, 1), 1.0)
        said = f"{what}: {late:,} of {rows:,} rows read ({share:.1f} %) came too late and were rejected"
        if late_by is None:
            return f"{said}: the input had ended"
        needed = _rounded_up(self.seconds + late_by)
        return (
            f"{said}. They are up to {_rounded_up(late_by)} behind the watermark. {self._cause()} "
            f"Rejected rows stay rejected: start again with another --out and --lateness {needed}"
            f"{'' if self.topics else ', or read files that belong together in one batch (--files-per-batch)'}"
        )

    def _cause(self) -> str:
        allowed = f"--lateness {_rounded_up(self.seconds)}"
        if self.topics:
            return (
                f"Probably records are out of order by more than {allowed}, or one partition is read ahead of others."
            )
        return (
            f"Probably files were read in another order than that of the times in them (files are read by the time of "
            f"their last change, then by name), or rows are out of order by more than {allowed}."
        )


def _rounded_up(seconds: float) -> str:
    """Return a duration, rounded up, in a form that --lateness accepts: 90s, 3m, 26h."""
    unit, length, _ = next(each for each in _UNITS if seconds >= each[1] * each[2])
    return f"{math.ceil(seconds / length)}{unit}"
