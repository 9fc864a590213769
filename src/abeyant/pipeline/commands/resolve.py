"""`abeyant resolve`: resolve operations by events, from two tables. Imports Spark only when it runs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from abeyant.ending import add_output_options
from abeyant.pipeline.commands.arguments import (
    add_command,
    add_deadline,
    add_master,
    add_result,
    add_tables,
    are_small,
    check_place,
    table_source,
)
from abeyant.pipeline.commands.running import end_with, spark_for
from abeyant.pipeline.commands.words import add_words, words_of
from abeyant.pipeline.results.directory import title_entry
from abeyant.pipeline.spark.extra import check_extra

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from abeyant.pipeline.commands.all_rejected import AllRejectedError
    from abeyant.pipeline.results.ended import Ended
    from abeyant.pipeline.results.sink import ResultWriter
    from abeyant.pipeline.sources.source import Source

__all__ = ["add_arguments", "run"]

_HELP: Final = "find which operations completed and which expired, from tables"

_DESCRIPTION: Final = """\
Find which operations completed in time, and which expired. An operation waits
until the progress of a key has reached what it requires. Each ends once:
completed or expired.

OPERATIONS and EVENTS are files, directories or globs of Parquet, ORC, JSON
lines, or CSV with a header; or table:NAME, of the session's catalogs. Their
columns:
  operations   op_id, start, timeout_ms; key and required, or
               watches: array<struct<key, required>>; instance, kind and
               condition (all, any) where there is more than one
  events       key, at, progress; instance as above

--operation and --event say where a column comes from, as a Spark SQL expression
over the table's own columns. Defaults: instance '', condition 'all',
required 1, progress 1 (an event that only has to happen). To filter, group or
unpivot rows first, give a SQL query over the table 'operations' or 'events'
with --operation-query or --event-query.

DIR gets report.html and the tables outcomes, invalid_operations and
invalid_events (Parquet). The last two hold rejected rows with the reason. The
tables waits and expired_keys are the summary. Where every row of OPERATIONS or
of EVENTS was rejected, the exit status is 2.
"""

_EXAMPLES: Final = """\
examples:
  abeyant resolve orders.parquet payments.parquet --out result
  abeyant resolve orders.csv payments.csv --out result \\
      --operation op_id=order_id --operation key=order_id \\
      --operation start=ordered_at --operation "timeout='15 min'" \\
      --event key=order_id --event at=paid_at
      orders that were paid within 15 minutes, from two CSV files
  abeyant resolve log.csv log.csv --out result --deadline exclusive \\
      --operation "op_id=if(activity = 'Send Fine', case, null)" ...
      one log as both tables: rows without op_id, key or at are rejected
  abeyant resolve log.csv log.csv --out result \\
      --operation-query "SELECT * FROM operations WHERE activity = 'Send'" ...
      the same, without rows of other activities
"""


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `resolve`."""
    parser = add_command(subparsers, "resolve", run, _HELP, _DESCRIPTION, _EXAMPLES)
    parser.add_argument("operations", metavar="OPERATIONS", help="file, directory, glob, or table:NAME")
    parser.add_argument("events", metavar="EVENTS", help="the same")
    add_result(parser)
    add_tables(parser)
    add_deadline(parser)
    add_words(parser)
    parser.add_argument(
        "--unique-ids", action="store_true", help="skip the check for duplicate op_ids: you guarantee there are none"
    )
    add_master(parser)
    add_output_options(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Resolve, print a summary and the result's path; return the exit status.

    Raises `AbeyantError` with a one-line message for errors that the user can fix: `AllRejectedError`, with the result
    complete and printed, where every row of a table was rejected.
    """
    check_place(args)
    check_extra("resolve")
    words = words_of(args)
    sources = table_source(args, "operations", args.operations), table_source(args, "events", args.events)
    with spark_for(args, "abeyant resolve", brief=are_small(*sources)) as spark:
        result, reported, unusable = _resolve(spark, args, words, *sources)
    from abeyant.pipeline.commands.summary_text import outcomes_found, print_outcomes
    from abeyant.pipeline.report.outcomes import read_outcomes

    status = end_with(
        args,
        result,
        lambda folder: print_outcomes(read_outcomes(folder), out=args.out),
        lambda folder: outcomes_found(read_outcomes(folder)),
        reported=reported,
    )
    if unusable is not None:
        raise unusable
    return status


def _resolve(
    spark: SparkSession,
    args: argparse.Namespace,
    words: Mapping[str, Any],
    given_operations: Source,
    given_events: Source,
) -> tuple[ResultWriter, bool, AllRejectedError | None]:
    """Write the result; return it, whether it has a report, and the error if a table has rejected rows only."""
    from abeyant.pipeline import rejected_events, rejected_operations, resolve
    from abeyant.pipeline.analysis.outcomes import expired_keys
    from abeyant.pipeline.analysis.unmatched import unmatched_of
    from abeyant.pipeline.commands.outcome_result import write_summary
    from abeyant.pipeline.results.ended import count_outcomes
    from abeyant.pipeline.results.registry import sink_of
    from abeyant.pipeline.sources.tables import events_from, operations_from
    from abeyant.pipeline.spark.jobs import name_jobs
    from abeyant.pipeline.spark.progress import Steps
    from abeyant.tables.defaults import check_instances

    operations, events = given_operations.queried(spark), given_events.queried(spark)
    columns = [*operations.columns, *dict(args.operation)]
    check_instances(columns, [*events.columns, *dict(args.event)])
    operations, events = operations_from(operations, dict(args.operation)), events_from(events, dict(args.event))
    tables = {
        "outcomes": resolve(operations, events, deadline=args.deadline, **words, unique_ids=args.unique_ids),
        "invalid_operations": rejected_operations(operations),
        "invalid_events": rejected_events(events),
    }
    steps = Steps(quiet=args.quiet)
    group = "abeyant-resolve"
    with sink_of(args.out).table(spark, overwrite=args.overwrite) as result:
        for name, table in tables.items():
            name_jobs(spark, group, name)
            with steps.step(f"writing {name}", spark, group):
                result.write(name, table)
        with steps.step("summing up", spark, group):
            ended = count_outcomes(result.files("outcomes"))
            unmatched = unmatched_of(ended, operations, events, columns)
            reported = write_summary(
                result.folder,
                ended,
                expired_keys(ended, operations) if ended.expired else None,
                kicker="what completed in time, and what expired",
                rejected=_rejected_rows(result),
                about={"operations": args.operations, "events": args.events, "deadline": args.deadline}
                | title_entry(args.title)
                | ({"no_common_key": unmatched} if unmatched else {}),
                tables=tables,
            )
            unusable = _unusable(result, ended, events, args.out)
    return result, reported, unusable


def _unusable(result: ResultWriter, ended: Ended, events: DataFrame, out: Path | str) -> AllRejectedError | None:
    """Return the error if every row of a table was rejected. Reads events again where none had an effect."""
    from abeyant.pipeline.commands.all_rejected import all_rejected
    from abeyant.pipeline.resolver.tables.validity import valid_events

    if not ended.waits.num_rows and not ended.pending and result.rows("invalid_operations"):
        return all_rejected("operations", result.files("invalid_operations"), out)
    without_effect = not ended.count("completed") and not ended.count("cancelled")
    if without_effect and result.rows("invalid_events") and valid_events(events).isEmpty():
        return all_rejected("events", result.files("invalid_events"), out)
    return None


def _rejected_rows(result: ResultWriter) -> dict[str, int]:
    """Return how many rows were rejected for each reason."""
    from abeyant.pages.words import without_value
    from abeyant.pipeline.results.ended import counted_reasons

    counts: dict[str, int] = {}
    for name in ("invalid_operations", "invalid_events"):
        for reason, number in sorted(counted_reasons(result.files(name)).items()):
            said = f"{name.replace('_', ' ')}: {without_value(reason)}"
            counts[said] = counts.get(said, 0) + number
    return counts
