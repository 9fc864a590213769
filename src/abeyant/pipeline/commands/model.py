"""`abeyant model`: reconstruct Kafka's replication from its request logs, and compare with what Kafka logged."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.ending import add_output_options
from abeyant.errors import AbeyantError
from abeyant.pages.formatting import counted
from abeyant.pipeline.commands.arguments import (
    add_command,
    add_logs,
    add_master,
    add_result,
    check_place,
    named,
    note_left_out,
    whole_number,
)
from abeyant.pipeline.commands.command_line import redacted_command_line
from abeyant.pipeline.commands.nothing_there import check_log, is_acks_all
from abeyant.pipeline.commands.running import end_with, spark_for
from abeyant.pipeline.request_log.files import find_logs, need_session
from abeyant.pipeline.request_log.time_zone import time_zone
from abeyant.pipeline.results.directory import title_entry
from abeyant.pipeline.spark.extra import check_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from abeyant.pipeline.results.sink import ResultWriter

__all__ = ["add_arguments", "run"]

_HELP: Final = "predict Kafka's acks=all produces from its logs, and compare"

_DESCRIPTION: Final = """\
Predict when each produce with acks=all completed or expired, and compare with
the wait that Kafka itself logged. For this, every partition's high watermark is
reconstructed from followers' fetch offsets, leaders' appends and changes of the
in-sync replicas. Needs the request logs of all brokers of a cluster.

LOGS are files, globs or directories, as for `abeyant analyze`. DIR gets
report.html and these tables:
  high_watermarks   when each partition's high watermark advanced, and why
  predictions       per produce: logged, predicted, the error and its cause
  explanations, errors, agreement, outliers   summaries of these
"""

_EXAMPLES: Final = """\
examples:
  abeyant model examples/data/kafka-request-log --out result
      three brokers of Kafka 4.3.1 with frozen followers; then open
      result/report.html
  abeyant model 'logs/*/kafka-request.log*' --out result \\
      --min-insync-replicas 2
"""


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `model`."""
    parser = add_command(subparsers, "model", run, _HELP, _DESCRIPTION, _EXAMPLES)
    add_logs(parser)
    add_result(parser)
    parser.add_argument(
        "--min-insync-replicas",
        type=partial(whole_number, least=1),
        metavar="N",
        help="min.insync.replicas of every topic (default: inferred from refused produces)",
    )
    add_master(parser)
    add_output_options(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Compare the model with the logs, print a summary and the report's path; return the exit status.

    Raises `AbeyantError` with a one-line message for errors that the user can fix.
    """
    check_place(args)
    time_zone(args.timezone)
    if not need_session(args.logs):
        files = find_logs(args.logs, left_out=note_left_out(args))
        check_log(args, files, is_acks_all, _nothing_message(args))
    check_extra("model")
    with spark_for(args, "abeyant model", brief=True) as spark:
        result = _model(spark, args)
    return end_with(args, result, lambda folder: print(_summary(folder)), _found)


def _nothing_message(args: argparse.Namespace) -> str:
    return f"nothing to predict: no produce with acks=all was appended in {named(args.logs)}"


def _model(spark: SparkSession, args: argparse.Namespace) -> ResultWriter:
    from abeyant.pipeline import compare_with_kafka, high_watermarks, read_kafka_replication
    from abeyant.pipeline.replication import summaries
    from abeyant.pipeline.replication.produces import any_acks_all
    from abeyant.pipeline.report.model_page import write_model_report
    from abeyant.pipeline.results.tables import write_result
    from abeyant.pipeline.spark.progress import Steps

    replication = read_kafka_replication(spark, args.logs, timezone=args.timezone).persist()
    watermarks = high_watermarks(replication, min_insync_replicas=args.min_insync_replicas).persist()
    predictions = compare_with_kafka(replication, watermarks).persist()
    small = {
        "explanations": summaries.explanations(predictions),
        "errors": summaries.errors(predictions),
        "agreement": summaries.agreement(predictions),
        "outliers": summaries.outliers(predictions),
    }
    tables = {"high_watermarks": watermarks, "predictions": predictions}
    about = {"command": redacted_command_line(), "logs": args.logs, **title_entry(args.title)}
    try:
        with Steps(quiet=args.quiet).step("reading the logs"):
            if not any_acks_all(replication):
                raise AbeyantError(_nothing_message(args))
        return write_result(
            spark,
            args.out,
            tables | {name: table.repartition(1) for name, table in small.items()},
            write_model_report,
            overwrite=args.overwrite,
            quiet=args.quiet,
            about=about,
            drawn=small,
        )
    finally:
        for table in (predictions, watermarks, replication):
            table.unpersist()


def _found(out: Path) -> dict[str, Any]:
    from abeyant.pipeline.commands.summary_text import json_tables, json_tiles
    from abeyant.pipeline.report.model_page import model_tiles
    from abeyant.pipeline.report.parts import read_table

    tiles = json_tiles(model_tiles(read_table(out, "explanations")))
    return {"tiles": tiles, **json_tables(out, ("explanations", "outliers"))}


def _summary(out: Path) -> str:
    import pyarrow.parquet as pq

    rows = sorted(pq.read_table(out / "explanations").to_pylist(), key=lambda row: -row["produces"])
    total = sum(row["produces"] for row in rows)
    lines = [f"{counted(total, 'produce')} with acks=all, predicted minus logged wait in ms:", ""]
    lines.append(f"{'':<34}{'produces':>10}{'%':>8}{'least':>10}{'median':>10}{'most':>10}")
    lines += [
        f"{row['explanation']:<34}{row['produces']:>10,}{100 * row['produces'] / total:>8.2f}"
        f"{row['least_ms']:>10.1f}{row['median_ms']:>10.1f}{row['most_ms']:>10.1f}"
        for row in rows
    ]
    return "\n".join(lines)
