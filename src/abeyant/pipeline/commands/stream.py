"""`abeyant stream`: resolve operations while data arrives, from files or Kafka. Imports Spark only when it runs."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.ending import add_output_options, end
from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.arguments import (
    add_command,
    add_deadline,
    add_master,
    add_out,
    add_tables,
    are_small,
    source_for,
    whole_number,
)
from abeyant.pipeline.commands.durations import duration, duration_or
from abeyant.pipeline.commands.rules import add_rules, rules_of
from abeyant.pipeline.commands.running import spark_for, terminate_as_interrupt
from abeyant.pipeline.spark.extra import check_extra
from abeyant.pipeline.spark.location import is_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from abeyant.pipeline.commands.stream_run.plan import Plan
    from abeyant.pipeline.results.sink import Sink
    from abeyant.pipeline.sources.source import Kafka

__all__ = ["add_arguments", "run"]

_NAME: Final = "abeyant stream"

_HELP: Final = "resolve operations while data arrives, from files or Kafka"

_DESCRIPTION: Final = """\
Find which operations completed in time, and which expired, while operations and
events arrive. Each operation ends once, completed or expired: even if no more
rows arrive, even after a kill -9.

OPERATIONS and EVENTS are directories to which files are added, or single files:
Parquet, ORC, JSON lines, or CSV with a header; or table:NAME, of the session's
catalogs. With --kafka they are topics whose records are JSON objects. Columns
are those of `abeyant resolve`; --operation and --event say where one comes
from. A record of Kafka's also has record.topic, record.partition,
record.offset, record.key and record.timestamp.

DIR gets the outcomes, and in `aside` the rejected rows (too late, or invalid)
with the reason. Both are Parquet, one directory per batch. After a stop or a
kill, the same command continues. When it ends, summary/report.html summarizes
the outcomes of this run. Where --drain in one run rejected every row of
OPERATIONS or of EVENTS, the exit status is 2.
"""

_EXAMPLES: Final = """\
examples:
  abeyant stream orders/ payments/ --out result --lateness 10m
      until stopped (Ctrl-C or SIGTERM end it after the current batch); rows may
      be ten minutes late
  abeyant stream orders.csv payments.csv --out result --drain
      read what is there now, and resolve all pending operations
  abeyant stream orders payments --kafka localhost:9092 --out result \\
      --to-topic outcomes --operation op_id=order_id --operation key=order_id \\
      --operation start=ordered_at --operation "timeout='15 min'" \\
      --event key=order_id --event at=record.timestamp
      from two topics to a third; rejected records are in result/aside
  abeyant stream logins/ clicks/ --out result --time processing
      data without times: rows happen when they arrive
  abeyant pending result
      list the pending operations
"""


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `stream`."""
    parser = add_command(subparsers, "stream", run, _HELP, _DESCRIPTION, _EXAMPLES)
    parser.add_argument("operations", metavar="OPERATIONS", help="directory, file, or topic (with --kafka; no slash)")
    parser.add_argument("events", metavar="EVENTS", help="directory, file, or topic, as for OPERATIONS")
    add_out(parser)
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="directory for the state; on a cluster, shared (default: DIR/checkpoint)"
    )
    _add_tables(parser)
    _add_time(parser)
    add_rules(parser)
    _add_kafka(parser)
    add_master(parser)
    add_output_options(parser)
    return parser


def _add_tables(parser: argparse.ArgumentParser) -> None:
    add_tables(parser)
    for table in ("operation", "event"):
        parser.add_argument(
            f"--{table}-schema",
            metavar="DDL",
            help=f"fields of the {table}s, such as 'order_id STRING, paid STRUCT<at: STRING>' (default: those of the "
            "existing files; for JSON, those that expressions name, as text)",
        )
    parser.add_argument(
        "--files-per-batch",
        type=_positive,
        default=100,
        metavar="N",
        help="maximum files per table per batch (default: %(default)s)",
    )


def _add_time(parser: argparse.ArgumentParser) -> None:
    add_deadline(parser)
    parser.add_argument(
        "--time",
        choices=["event", "processing"],
        default="event",
        help="times of rows: from their columns, or their arrival (default: %(default)s)",
    )
    parser.add_argument(
        "--lateness",
        type=duration,
        default=60.0,
        metavar="DURATION",
        help="maximum lateness of rows, such as 30s or 10m (default: 1m); later rows are rejected; no effect with "
        "--time processing",
    )
    parser.add_argument(
        "--tick",
        type=duration_or("off"),
        default=1.0,
        metavar="DURATION",
        help="how often to expire operations while no rows arrive (default and maximum: 1s); off: only rows advance "
        "the clock",
    )
    parser.add_argument(
        "--forget-after",
        type=duration,
        metavar="DURATION",
        help="forget a key without events for this long and without pending operations (default: never)",
    )
    parser.add_argument(
        "--trigger",
        type=duration_or("now"),
        default=2.0,
        metavar="DURATION",
        help="how often a batch begins (default: 2s); now: read what is there and stop, keeping pending operations",
    )
    parser.add_argument(
        "--drain", action="store_true", help="read what is there, resolve all pending operations, and end the stream"
    )


def _add_kafka(parser: argparse.ArgumentParser) -> None:
    kafka = parser.add_argument_group("Kafka")
    kafka.add_argument("--kafka", metavar="HOST:PORT,...", help="Kafka brokers; OPERATIONS and EVENTS are then topics")
    kafka.add_argument("--to-topic", metavar="TOPIC", help="topic for outcomes (default: DIR/outcomes)")
    kafka.add_argument("--aside-topic", metavar="TOPIC", help="topic for rejected rows (default: DIR/aside)")
    kafka.add_argument(
        "--from",
        dest="start",
        choices=["earliest", "latest"],
        default="earliest",
        help="offsets at which a new stream starts (default: %(default)s)",
    )
    kafka.add_argument(
        "--records-per-batch",
        type=_positive,
        default=200_000,
        metavar="N",
        help="maximum records per topic per batch (default: %(default)s)",
    )
    kafka.add_argument(
        "--kafka-config",
        metavar="FILE",
        help="Java properties file of further client settings, such as security.protocol=SASL_SSL",
    )
    kafka.add_argument(
        "--connector",
        metavar="JARS",
        help="Spark's Kafka connector: jars, a folder of jars, or a Maven coordinate (default: fetched with Maven)",
    )


_positive: Final = partial(whole_number, least=1)


def run(args: argparse.Namespace) -> int:
    """Run the stream; return the exit status: 0 if it was drained, or stopped between two batches.

    The status is 130 if the stream was stopped before the end of its input, with --drain or --trigger now. Raises
    `AbeyantError` with a one-line message for errors that the user can fix: `AllRejectedError`, with the result
    complete and printed, if a drained stream rejected every row of a table. Raises KeyboardInterrupt if a signal
    interrupts the stream at once (a second Ctrl-C, or a Ctrl-C while Spark starts).
    """
    _check(args)
    check_extra("stream")
    from abeyant.pipeline.commands.stream_run.changed import ChangedFiles
    from abeyant.pipeline.commands.stream_run.lines import Lateness, Lines
    from abeyant.pipeline.commands.stream_run.watch import stop_on_signal
    from abeyant.pipeline.spark.progress import Steps

    plan = _plan(args)
    topics = {plan.operations.given.name, plan.events.given.name} <= set(plan.topics)
    changed = ChangedFiles(plan.checkpoint, quiet=args.quiet)
    lines = Lines(quiet=args.quiet, lateness=Lateness(args.lateness, topics=topics), changed=changed)
    plan.check()
    try:
        with (
            terminate_as_interrupt(),
            _spark(args, plan) as spark,
            stop_on_signal() as stop_event,
        ):
            from abeyant.pipeline.commands.stream_run.run import run as run_stream
            from abeyant.pipeline.commands.stream_run.summary import sum_up, unusable

            sent = run_stream(spark, plan, lines, stop_event)
            stopped = stop_event.is_set()
            changed.look()
            with Steps(quiet=lines.quiet).step("summing up"):
                summary = sum_up(spark, plan, lines, sent)
                rejected = None if stopped else unusable(spark, plan, lines)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt("run the same command again to continue") from interrupt
    if stopped and not args.quiet:
        print("stopped between two batches: run the same command again to continue", file=sys.stderr)
    from abeyant.pipeline.commands.summary_text import outcomes_json
    from abeyant.pipeline.report.outcomes import read_outcomes

    counts = dict(lines.totals) | ({} if lines.pending is None else {"pending": lines.pending})
    end(
        args,
        lambda: _print_summary(lines.pending or 0, summary.folder, None if args.to_topic else args.out),
        out=args.out,
        report=summary.report,
        found=counts
        | {"stopped": stopped, "changed_files": sorted(changed.found)}
        | (outcomes_json(read_outcomes(summary.folder)) if args.json else {}),
    )
    if (late := lines.late_summary()) is not None:
        print(f"abeyant: {late}", file=sys.stderr)
    if rejected is not None:
        raise rejected
    return 130 if stopped and (plan.drain or plan.trigger is None) else 0


def _check(args: argparse.Namespace) -> None:
    """Raise `AbeyantError` for invalid options and combinations, before Spark starts, which takes seconds."""
    if args.tick is not None and not 0 < args.tick <= 1:
        raise AbeyantError(f"--tick must be more than 0s and at most 1s, or off, not {args.tick:g}s")
    if args.time == "processing":
        for table, name in (("operation", "start"), ("event", "at")):
            if name in dict(getattr(args, table)):
                raise AbeyantError(f"--{table} {name}=... and --time processing exclude each other: leave one out")
    if args.kafka is None:
        for option in ("to_topic", "aside_topic", "kafka_config", "connector"):
            if getattr(args, option) is not None:
                raise AbeyantError(f"--{option.replace('_', '-')} needs --kafka HOST:PORT")
    elif args.aside_topic is not None and args.to_topic is None:
        raise AbeyantError("--aside-topic needs --to-topic")


# Whole records go to Python, and may be megabytes each; an Arrow batch of more than 2 GB would fail the stream.
_MEASURED: Final = ("spark.sql.execution.arrow.maxBytesPerBatch", "64m")


def _spark(args: argparse.Namespace, plan: Plan) -> AbstractContextManager[SparkSession]:
    args.conf = [_MEASURED, *args.conf]
    if args.kafka is None:
        # Only a stream that ends may start a brief JVM: others may begin small and run for months.
        return spark_for(args, _NAME, brief=args.drain and are_small(plan.operations, plan.events))
    from abeyant.pipeline.sources.connector import start_with_connector
    from abeyant.pipeline.sources.kafka import check_brokers

    check_brokers(args.kafka)
    return spark_for(args, _NAME, start=partial(start_with_connector, jars=args.connector))


def _plan(args: argparse.Namespace) -> Plan:
    from abeyant.pipeline.commands.stream_run.plan import Plan
    from abeyant.pipeline.results.registry import sink_of

    kafka, sink = _kafka(args), sink_of(args.out)
    if args.time == "processing":
        args.operation = [*args.operation, ("start", "current_timestamp()")]
        args.event = [*args.event, ("at", "current_timestamp()")]
    options = {"files_a_batch": args.files_per_batch, "kafka": kafka}
    operations = source_for(args, "operations", args.operations, schema=args.operation_schema, **options)
    events = source_for(args, "events", args.events, schema=args.event_schema, **options)
    facts = operations.describe(), events.describe()
    return Plan(
        operations=operations,
        events=events,
        topics=facts[0].topics + facts[1].topics,
        one_batch=all(fact.one_batch for fact in facts),
        out=sink,
        checkpoint=_checkpoint(args, sink),
        deadline=args.deadline,
        rules=rules_of(args),
        time=args.time,
        lateness=args.lateness,
        tick=args.tick,
        forget_after=args.forget_after,
        trigger=args.trigger,
        drain=args.drain,
        kafka=kafka,
        to_topic=args.to_topic,
        aside_topic=args.aside_topic,
        title=args.title,
    )


def _checkpoint(args: argparse.Namespace, sink: Sink) -> str:
    path = args.checkpoint or str(sink.below("checkpoint").place)
    return path if is_uri(path) else str(Path(path).absolute())


def _kafka(args: argparse.Namespace) -> Kafka | None:
    if args.kafka is None:
        return None
    from abeyant.pipeline.sources.kafka import read_properties
    from abeyant.pipeline.sources.source import Kafka

    properties = read_properties(args.kafka_config) if args.kafka_config else {}
    return Kafka(args.kafka, properties, args.start, args.records_per_batch)


def _print_summary(pending: int, summary: Path, out: Path | str | None) -> None:
    from abeyant.pipeline.commands.summary_text import print_outcomes
    from abeyant.pipeline.report.outcomes import read_outcomes

    print_outcomes(read_outcomes(summary), out=out)
    print(f"\n{pending:,} pending")
