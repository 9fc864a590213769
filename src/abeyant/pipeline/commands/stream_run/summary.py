"""Write the summary of a stream's run when it ends, from the batches that this run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.analysis.outcomes import expired_keys
from abeyant.pipeline.commands.all_rejected import AllRejectedError, all_rejected_by_stream
from abeyant.pipeline.commands.outcome_result import write_summary
from abeyant.pipeline.resolver.tables.validity import valid_events
from abeyant.pipeline.results.directory import title_entry
from abeyant.pipeline.results.outcome_counts import Counted, OutcomeCounts, count_outcomes
from abeyant.pipeline.results.sink import ResultWriter

if TYPE_CHECKING:
    from abeyant.pipeline.commands.stream_run.lines import Lines
    from abeyant.pipeline.commands.stream_run.plan import Plan

__all__ = ["SUMMARY", "sum_up", "unusable"]

SUMMARY: Final = "summary"
"""The directory in the stream's --out with the summary of the last run."""

_FEW: Final = 1_000_000  # outcomes: their operations are read within some ten seconds
_TOPIC: Final = f"More than {_FEW:,} operations ended before the stop: their topic is not read again to find keys."
_GONE: Final = "The operations could not be read again to find their keys."
_CONTINUED: Final = "This run continued an earlier run: the operations are not read again to find their keys."


def sum_up(spark: SparkSession, plan: Plan, lines: Lines, sent: Counted) -> ResultWriter:
    """Write the tables and the page of this run's outcomes; return the result.

    Reads the files that this run wrote, once; outcomes `sent` to a topic are counted already. If operations expired,
    reads all operations once more to find their keys. Skips this if an earlier run has read some operations, or if
    the operations are in a topic, the stream has no end, and more than `_FEW` operations have ended.
    """
    files = iter(()) if lines.first is None else plan.out.outcomes(spark, lines.first)
    ended = sent.ended() if plan.to_topic is not None else count_outcomes(files)
    if lines.first:
        return _write(spark, plan, lines, ended, None, _CONTINUED)
    stopped = plan.trigger is not None and not plan.drain
    if (
        stopped
        and plan.operations.given.name in plan.topics
        and (pc.sum(ended.waits["operations"]).as_py() or 0) > _FEW
    ):
        return _write(spark, plan, lines, ended, None, _TOPIC)
    try:
        keys = expired_keys(ended, plan.operations.again(spark)) if ended.expired else None
    except (AbeyantError, PySparkException):
        # The stream has read them: that they were removed since is no failure of the stream.
        return _write(spark, plan, lines, ended, None, _GONE)
    return _write(spark, plan, lines, ended, keys)


def unusable(spark: SparkSession, plan: Plan, lines: Lines) -> AllRejectedError | None:
    """Return the error if a stream was drained in one run and every row of a table was rejected, into a directory.

    Returns None if an earlier run began the stream, since that run may have read valid rows. Reads the events again if
    no event had an effect.
    """
    place = plan.out.place
    if not plan.drain or lines.first != 0 or plan.aside_topic is not None or not isinstance(place, Path):
        return None
    counts = {name: lines.totals[name] for name in ("completed", "cancelled", "expired")}
    if not any(counts.values()) and not lines.pending:
        return all_rejected_by_stream("operations", place / "aside")
    if counts["completed"] or counts["cancelled"] or not lines.totals["invalid"]:
        return None
    try:
        if not valid_events(plan.events.again(spark)).isEmpty():
            return None
    except (AbeyantError, PySparkException):
        return None  # removed since
    return all_rejected_by_stream("events", place / "aside")


def _write(
    spark: SparkSession, plan: Plan, lines: Lines, ended: OutcomeCounts, keys: pa.Table | None, no_keys: str = ""
) -> ResultWriter:
    with plan.out.below(SUMMARY).table(spark, overwrite=True) as result:
        write_summary(
            result.folder,
            ended,
            keys,
            kicker="a stream: what completed in time, and what expired",
            rejected=_rejected(lines),
            about={
                "operations": plan.operations.given.name,
                "events": plan.events.given.name,
                "deadline": plan.deadline,
                "first_batch": lines.first,
                "pending": lines.pending,
            }
            | title_entry(plan.title),
            no_keys=no_keys,
        )
    return result


def _rejected(lines: Lines) -> dict[str, int]:
    rejected = {name: lines.totals[name] for name in ("late", "duplicates", "invalid") if lines.totals[name]}
    if lines.changed is not None and lines.changed.found:
        rejected["files that changed after they were read"] = len(lines.changed.found)
    return rejected
