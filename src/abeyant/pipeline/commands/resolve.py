"""`abeyant resolve`: resolve operations by events, from two tables. Imports Spark only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

from abeyant.ending import add_output_options
from abeyant.errors import AbeyantError
from abeyant.lazy import missing, needs
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
from abeyant.pipeline.commands.rules import add_rules, rules_of
from abeyant.pipeline.commands.running import end_with, result_held, spark_for
from abeyant.pipeline.results.directory import title_entry
from abeyant.pipeline.spark.extra import check_extra

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from abeyant.pipeline.commands.all_rejected import AllRejectedError
    from abeyant.pipeline.commands.quick.tables import QuickTables
    from abeyant.pipeline.results.outcome_counts import OutcomeCounts
    from abeyant.pipeline.results.sink import ResultWriter
    from abeyant.pipeline.spark.progress import Steps

__all__ = ["ResolveTables", "add_arguments", "run"]

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

Two local files of CSV or Parquet, 64 MB together, are resolved in this process,
within seconds. All else starts Spark; the command says why.

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
    parser.add_argument("events", metavar="EVENTS", help="file or directory, as for OPERATIONS")
    add_result(parser)
    add_tables(parser)
    add_deadline(parser)
    add_rules(parser)
    parser.add_argument(
        "--unique-ids", action="store_true", help="skip the check for duplicate op_ids: you guarantee there are none"
    )
    parser.add_argument(
        "--engine",
        choices=["auto", "tables", "spark"],
        default="auto",
        help="tables: in this process, for small local files; spark; auto (default): tables where these give the same",
    )
    add_master(parser)
    add_output_options(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Resolve the operations, print a summary and the result's path; return the exit status.

    Raises `AbeyantError` with a one-line message for errors that the user can fix: `AllRejectedError`, with the result
    complete and printed, if every row of a table was rejected.
    """
    check_place(args)
    rules = rules_of(args)
    quick, reason = _quick_tables(args, rules)
    if quick is not None:
        with result_held(args):
            result, unusable = _write(args, quick)
    else:
        check_extra(f"resolve with Spark ({reason})" if reason else "resolve")
        sources = table_source(args, "operations", args.operations), table_source(args, "events", args.events)
        _print_note(args, f"resolving with Spark: {reason}" if reason else "resolving with Spark")
        with spark_for(args, "abeyant resolve", brief=are_small(*sources)) as spark:
            from abeyant.pipeline.commands.spark_tables import SparkTables

            result, unusable = _write(args, SparkTables(spark, args, rules, *sources))
    from abeyant.pipeline.commands.summary_text import outcomes_json, print_outcomes
    from abeyant.pipeline.report.outcomes import read_outcomes

    status = end_with(
        args,
        result,
        lambda folder: print_outcomes(read_outcomes(folder), out=args.out),
        lambda folder: outcomes_json(read_outcomes(folder)),
    )
    if unusable is not None:
        raise unusable
    return status


class ResolveTables(Protocol):
    """The tables of operations and events, with the engine that resolves them: this process or Spark."""

    engine: str

    def result(self) -> AbstractContextManager[ResultWriter]:
        """Return a context manager that yields the writer of the result."""

    def tables(self) -> Mapping[str, Any]:
        """Return the tables to write, by name: the outcomes and the rejected rows, as tables of the engine."""

    def write(self, result: ResultWriter, name: str, table: Any, steps: Steps) -> None:
        """Write one of the tables that `tables` returns."""

    def expired_keys(self, ended: OutcomeCounts) -> pa.Table:
        """Return the keys on which most operations expired."""

    def unmatched(self, ended: OutcomeCounts) -> str | None:
        """Return a warning if all operations expired, and none of their keys occurs among the events."""

    def newest_event(self) -> int | None:
        """Return the greatest `at` of all events, in microseconds since 1970; None if there is none."""

    def has_valid_events(self) -> bool:
        """Return whether at least one event is valid."""


def _quick_tables(args: argparse.Namespace, rules: Mapping[str, Any]) -> tuple[QuickTables | None, str]:
    """Return the tables, if they can be resolved in this process; else None, and the reason why Spark is needed.

    Raises `AbeyantError` for errors in the tables, for --engine tables if they need Spark, and for missing packages.
    """
    if args.engine == "spark":
        return None, ""
    from abeyant.pipeline.commands.quick.eligible import NeedsSparkError, check_eligible

    try:
        check_eligible(args)
        if lacking := missing({"tables": ("pyarrow", "numpy"), "report": ("pandas", "rich")}):
            raise needs("resolve", lacking)  # Spark would need them too
        from abeyant.pipeline.commands.quick.tables import QuickTables

        tables = QuickTables(args, rules)
    except NeedsSparkError as reason:
        if args.engine == "tables":
            raise AbeyantError(f"--engine tables cannot do this: {reason}. Use --engine spark") from None
        return None, str(reason)
    _print_note(args, "resolving in this process, without Spark")
    return tables, ""


def _print_note(args: argparse.Namespace, sentence: str) -> None:
    if not args.quiet:
        print(f"abeyant: {sentence}", file=sys.stderr)


def _write(args: argparse.Namespace, resolver: ResolveTables) -> tuple[ResultWriter, AllRejectedError | None]:
    """Write the result; return it, and an error if every row of a table was rejected, else None."""
    from abeyant.pipeline.commands.outcome_result import write_summary
    from abeyant.pipeline.results.outcome_counts import count_outcomes, still_open
    from abeyant.pipeline.spark.progress import Steps

    tables, steps = resolver.tables(), Steps(quiet=args.quiet)
    with resolver.result() as result:
        for name, table in tables.items():
            resolver.write(result, name, table, steps)
        with steps.step("summing up"):
            ended = count_outcomes(result.files("outcomes"), resolver.newest_event)
            unmatched, may_be_open = resolver.unmatched(ended), still_open(ended)
            write_summary(
                result.folder,
                ended,
                resolver.expired_keys(ended) if ended.expired else None,
                kicker="what completed in time, and what expired",
                rejected=_rejected_rows(result),
                about={"operations": args.operations, "events": args.events, "deadline": args.deadline}
                | {"engine": resolver.engine}
                | title_entry(args.title)
                | ({"no_common_key": unmatched} if unmatched else {})
                | ({"may_be_open": may_be_open} if may_be_open else {}),
                tables=tables,
            )
            unusable = _all_rejected_error(result, ended, resolver, args.out)
    return result, unusable


def _all_rejected_error(
    result: ResultWriter, ended: OutcomeCounts, resolver: ResolveTables, out: Path | str
) -> AllRejectedError | None:
    """Return the error if every row of a table was rejected, else None.

    Looks for a valid event only if no operation was completed or cancelled.
    """
    from abeyant.pipeline.commands.all_rejected import all_rejected

    if not ended.waits.num_rows and not ended.pending and result.rows("invalid_operations"):
        return all_rejected("operations", result.files("invalid_operations"), out)
    without_effect = not ended.count("completed") and not ended.count("cancelled")
    if without_effect and result.rows("invalid_events") and not resolver.has_valid_events():
        return all_rejected("events", result.files("invalid_events"), out)
    return None


def _rejected_rows(result: ResultWriter) -> dict[str, int]:
    """Return the number of rows rejected for each reason."""
    from abeyant.pages.formatting import without_value
    from abeyant.pipeline.results.outcome_counts import counted_reasons

    counts: dict[str, int] = {}
    for name in ("invalid_operations", "invalid_events"):
        for reason, number in sorted(counted_reasons(result.files(name)).items()):
            label = f"{name.replace('_', ' ')}: {without_value(reason)}"
            counts[label] = counts.get(label, 0) + number
    return counts
