"""The summary of a run of a stream, made when it ends: of the batches that this run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from abeyance.pipeline.commands.outcome_result import write_summary
from abeyance.pipeline.commands.stream_run.inputs import read_again
from abeyance.pipeline.results.directory import new_result

if TYPE_CHECKING:
    from abeyance.pipeline.commands.stream_run.lines import Lines
    from abeyance.pipeline.commands.stream_run.run import Plan

__all__ = ["SUMMARY", "sum_up"]

SUMMARY: Final = "summary"
"""The directory in the stream's --out. Of several runs it tells of the last."""

_TOPIC: Final = "Operations of a topic are not read again for their keys."
_CONTINUED: Final = "This run went on with an earlier one: operations are not read again for their keys."


def sum_up(spark: SparkSession, plan: Plan, lines: Lines) -> bool:
    """Write the tables and the page of this run's outcomes; return whether there is a page.

    It reads what this run wrote, once; and the operations' files, once, where this run has read all of them.
    """
    topic, continued = plan.operations.is_topic(plan.kafka), bool(lines.first)
    with new_result(plan.out / SUMMARY, overwrite=True) as aside:
        return write_summary(
            aside,
            _written(plan.out / "outcomes", lines.first),
            None if topic or continued else read_again(spark, plan.operations),
            kicker="a stream: what completed in time, and what expired",
            set_aside={name: lines.totals[name] for name in ("late", "duplicates", "invalid") if lines.totals[name]},
            about={
                "operations": plan.operations.name,
                "events": plan.events.name,
                "deadline": plan.deadline,
                "first_batch": lines.first,
                "pending": lines.pending,
            },
            no_keys=_TOPIC if topic else _CONTINUED,
        )


def _written(outcomes: Path, first: int | None) -> list[Path]:
    """Return the files of the batches from `first` on."""
    if first is None:
        return []
    batches = ((int(directory.name.partition("=")[2]), directory) for directory in outcomes.glob("batch=*"))
    return [file for batch, directory in sorted(batches) for file in directory.glob("*.parquet") if batch >= first]
