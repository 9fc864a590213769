"""`abeyant analyze`: report from Kafka's request logs which requests waited, for what and how long."""

from __future__ import annotations

import argparse
from typing import Any, Final

from abeyant.ending import add_output_options, end
from abeyant.pipeline.commands.arguments import (
    add_command,
    add_instance,
    add_logs,
    add_master,
    add_result,
    check_place,
    generate_java,
    note_left_out,
)
from abeyant.pipeline.commands.command_line import redacted_command_line
from abeyant.pipeline.commands.nothing_there import check_requests
from abeyant.pipeline.commands.running import spark_for
from abeyant.pipeline.request_log.files import chunks, find_logs, need_session
from abeyant.pipeline.request_log.time_zone import time_zone
from abeyant.pipeline.spark.extra import check_extra

__all__ = ["add_arguments", "run"]

# Python does most of the work: for logs up to this size the JVM starts with few optimizations.
_BRIEF_BYTES: Final = 64 << 30

_HELP: Final = "report which requests waited in Kafka brokers, from their logs"

_DESCRIPTION: Final = """\
Report which requests waited in Kafka brokers, for what, how long, and which
expired. Reads the brokers' request logs; writes Parquet tables and an HTML page
that opens offline.

LOGS are files (plain, gzip, bzip2 or zstd), globs, or directories, which are
searched for kafka-request*. The folder of a file names the broker that
wrote it. Lines may be wrapped, as Docker, journald and log shippers do. Kafka
writes this log when its logger kafka.request.logger is at DEBUG.

With --watch it follows logs that grow, are rotated, or appear, until Ctrl-C or
SIGTERM. It prints a line when an incident begins, and one when it ends, with
its suspect: the incidents that analyze finds in the log so far. DIR gets these
lines as JSON (incidents.jsonl), and the state to continue after a stop or kill.
"""

_EXAMPLES: Final = """\
examples:
  abeyant analyze examples/data/kafka-request-log --out result
      three brokers, one folder each; then open result/report.html
  abeyant analyze 'logs/*/kafka-request.log*' --out result --overwrite
      replace an earlier result
  abeyant analyze broker-1/ broker-2/ --out result --timezone Europe/Berlin
      log timestamps are in Berlin's time zone
  abeyant analyze /var/log/kafka --out watched --watch
      read the log so far, then follow it; --json prints incidents as JSON lines
"""


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `analyze`."""
    parser = add_command(subparsers, "analyze", run, _HELP, _DESCRIPTION, _EXAMPLES)
    add_logs(parser)
    add_result(parser)
    parser.add_argument(
        "--watch", action="store_true", help="follow growing logs; print when an incident begins and ends"
    )
    add_master(parser)
    add_instance(parser)
    add_output_options(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Analyze the logs, print a summary and the report's path; return the exit status.

    Raises `AbeyantError` with a one-line message for errors that the user can fix.
    """
    if args.watch:
        time_zone(args.timezone)
        check_extra("analyze")
        from abeyant.pipeline.commands.analyze_watch import run as watch

        return watch(args)
    # Check all arguments before Spark starts, which takes seconds.
    check_place(args)
    time_zone(args.timezone)
    brief = False
    if not need_session(args.logs):
        files = find_logs(args.logs, instance=args.instance, left_out=note_left_out(args))
        text = sum(piece.cost for piece in chunks(files))
        brief = text <= _BRIEF_BYTES
        generate_java(args, text)
        check_requests(files)
    check_extra("analyze")

    with spark_for(args, "abeyant analyze", brief=brief) as spark:
        from abeyant.pipeline import analyze

        result = analyze(
            spark,
            args.logs,
            args.out,
            overwrite=args.overwrite,
            timezone=args.timezone,
            instance=args.instance,
            quiet=args.quiet,
            command=redacted_command_line(),
            title=args.title,
        )
    from abeyant.pipeline.commands.summary_text import analysis_json, print_summary

    found = analysis_json(result.folder) if args.json else {}
    end(args, lambda: print_summary(result), out=args.out, report=result.report, found=found)
    return 0
