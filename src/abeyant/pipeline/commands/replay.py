"""`abeyant replay`: simulate other ticks, wheels, time-outs and purge intervals."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from abeyant.ending import add_output_options
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.former import check_former
from abeyant.pages.formatting import shortened
from abeyant.pipeline.commands.arguments import (
    add_command,
    add_deadline,
    add_instance,
    add_logs,
    add_master,
    add_result,
    add_tables,
    check_place,
    named,
    note_left_out,
    table_source,
)
from abeyant.pipeline.commands.command_line import redacted_command_line
from abeyant.pipeline.commands.durations import duration_or, milliseconds
from abeyant.pipeline.commands.nothing_there import check_log, check_outcome, check_tables, is_operation
from abeyant.pipeline.commands.running import end_with, spark_for
from abeyant.pipeline.request_log.files import find_logs, need_session
from abeyant.pipeline.request_log.time_zone import time_zone
from abeyant.pipeline.results.directory import MARKER, is_result, title_entry
from abeyant.pipeline.spark.extra import check_extra

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from abeyant.pipeline import Configuration
    from abeyant.pipeline.results.sink import ResultWriter
    from abeyant.pipeline.sources.source import Source

__all__ = ["add_arguments", "run"]

OWN: Final = "own"
"""The value of --timeout that keeps each operation's own time-out."""

_TABLES: Final = re.compile(r"\.(parquet|orc|json|[ct]sv(\.(gz|bz2|zst))?)\Z")  # a .json.gz is a request log
_MOST_KINDS: Final = 20
"""Maximum kinds listed in an error message."""
_MOST_CLIENTS: Final = 20
"""Maximum clients of a kind in `--json`."""

# More time-outs for what-if, whose curve needs them, at no cost; up to a consumer's default for a rebalance.
_LADDER_MS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)

_HELP: Final = "simulate other ticks, wheels and time-outs"

_DESCRIPTION: Final = """\
Simulate another tick, wheel size, time-out or purge interval: run the recorded
operations through the real timing wheel again, once per setting. Writes Parquet
tables and an HTML page that opens offline.

LOGS are one of these:
  - request logs of Kafka, as for `abeyant analyze`
  - the result of an analysis
  - with --events, a table of operations, as for `abeyant resolve`

DIR gets the tables
  replay    per instance and setting: expiries, most pending, lateness,
            cascades, wake-ups, memory
  pending   how many were pending, over time, under each time-out
  what_if   per instance and kind: how many would have expired under each
            time-out, and the waits' percentiles
  own_timeouts  per instance and kind: the time-outs that operations have
  client_timeouts  the same per kind and client, if the table has client_id

The terminal says first which time-out to set. It lists the ticks and wheels
only if --tick or --wheel-size is given; the page always has them.

A log does not say how long an expired operation would have taken. Under a
longer time-out such an operation is `unknown`. With --events none is unknown.
"""

_EXAMPLES: Final = """\
examples:
  abeyant replay examples/data/kafka-request-log --out result
      which time-out to set; then open result/report.html
  abeyant replay logs/ --out result --timeout own,500ms,2s,30s --tick 1ms,5ms
  abeyant replay logs/ --out result --kind PRODUCE --purge-interval 10,100,1000
      how many operations Kafka's purgatory would have kept on its watch lists
  abeyant replay orders.parquet --events payments.parquet --out result \\
      --timeout 5m,15m,1h --tick 1s
"""


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `replay`."""
    parser = add_command(subparsers, "replay", run, _HELP, _DESCRIPTION, _EXAMPLES)
    add_logs(parser, "; or one table")
    add_result(parser)
    settings = {
        "tick": ("DURATIONS", _ms, "1ms,10ms,100ms", "ticks of the wheel"),
        "wheel-size": ("NUMBERS", _number, "20,64,512", "buckets of a wheel"),
        "timeout": ("DURATIONS", _ms_or_own, OWN, f"time-outs, `{OWN}` for each operation's own"),
        "purge-interval": ("NUMBERS", _number, "", "purge intervals to try in Kafka's own design"),
    }
    for name, (metavar, read, default, help_text) in settings.items():
        parser.add_argument(
            f"--{name}", action=_Named, type=_several(read), default=default, metavar=metavar,
            help=f"{help_text}, separated by commas (default: {default or 'none'})",
        )  # fmt: skip
    parser.add_argument(
        "--kind",
        type=_several(str),
        default=[],
        metavar="KINDS",
        help="only these kinds of operation, separated by commas",
    )
    parser.add_argument("--events", metavar="PATH", help="table of events: file or directory")
    add_tables(parser)
    add_deadline(parser)
    add_instance(parser)
    add_master(parser)
    add_output_options(parser)
    return parser


class _Named(argparse.Action):
    """Action that stores an option's values, and adds its name to `args.named`, the options that the user gave.

    The terminal lists wheels only if the user gave --tick or --wheel-size.
    """

    def __call__(self, parser: object, args: argparse.Namespace, values: object, option: object = None) -> None:
        setattr(args, self.dest, values)
        args.named = {*getattr(args, "named", ()), self.dest}


Value = TypeVar("Value")


def _several(read: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    def several(text: str) -> list[Value]:
        return [read(part.strip()) for part in text.split(",") if part.strip()]

    return several


def _ms(text: str) -> float:
    return float(milliseconds(text))


def _ms_or_own(text: str) -> int | None:
    ms = duration_or(OWN).exactly(text)
    if ms is None:
        return None
    if ms.denominator != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of milliseconds")
    return int(ms)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def run(args: argparse.Namespace) -> int:
    """Replay the operations, print a summary and the report's path; return the exit status.

    Raises `AbeyantError` with a one-line message for errors that the user can fix.
    """
    check_place(args)
    time_zone(args.timezone)
    path = _table(args)
    if path is None and not need_session(args.logs):
        files = find_logs(args.logs, instance=args.instance, left_out=note_left_out(args))
        check_log(args, files, is_operation, _nothing_message(args))
    check_extra("replay")
    table = None if path is None else table_source(args, "operations", path)
    events = None if path is None or args.events is None else table_source(args, "events", args.events)
    if table is not None:
        check_tables(table.given, None if events is None else events.given, _nothing_message(args))
    settings = _settings(args)
    with spark_for(args, "abeyant replay", brief=table is None) as spark:
        result = _replay(spark, args, table, events, settings)
    wheels = not {"tick", "wheel_size"}.isdisjoint(getattr(args, "named", ()))
    return end_with(args, result, lambda folder: print(_summary(folder, wheels=wheels)), _found)


def _nothing_message(args: argparse.Namespace) -> str:
    return f"nothing to replay: no operation is in {named(args.logs)}"


def _settings(args: argparse.Namespace) -> list[Configuration]:
    """Return the settings to replay: each time-out with each wheel and with each purge interval.

    The wheels are the given ones and Kafka's; purge intervals are tried on Kafka's wheel only.
    """
    from abeyant.pipeline import grid

    try:
        wheels = grid(tick_ms=args.tick, wheel_size=args.wheel_size, timeout_ms=args.timeout)
        kafkas = grid(timeout_ms=args.timeout)  # the baseline of comparisons
        purges = grid(timeout_ms=args.timeout, purge_interval=args.purge_interval)
    except ValueError as error:
        raise AbeyantError(str(error)) from error
    if not wheels:
        raise AbeyantError("nothing to replay: --tick, --wheel-size and --timeout each need a value")
    return [*dict.fromkeys(wheels + kafkas), *purges]


def _table(args: argparse.Namespace) -> str | None:
    """Return the path of the table of operations; None if request logs are given."""
    first, *others = list[str](args.logs)
    if Path(first).is_dir():
        check_former(first, os.listdir(first), MARKER, "analyze its log anew")
    if is_result(Path(first)) and (Path(first) / "operations").is_dir():
        first = str(Path(first) / "operations")
    elif args.events is None and not first.startswith("table:") and not _TABLES.search(first):
        return None
    if others:
        raise AbeyantError(f"LOGS: give one table of operations, not {len(args.logs)}")
    return first


def _replay(
    spark: SparkSession,
    args: argparse.Namespace,
    table: Source | None,
    events: Source | None,
    settings: list[Configuration],
) -> ResultWriter:
    from pyspark.sql import functions as F  # noqa: N812

    from abeyant.pipeline import replay, replay_pending, what_if
    from abeyant.pipeline.replayer.what_if import client_timeouts, own_timeouts
    from abeyant.pipeline.report.replay_page import write_replay_report
    from abeyant.pipeline.results.tables import write_result
    from abeyant.pipeline.spark.progress import Steps

    timeouts = {setting.timeout_ms for setting in settings if setting.timeout_ms is not None}.union(_LADDER_MS)
    operations = _operations(spark, args, table, events, max(timeouts))
    everything = operations
    if args.kind:
        operations = operations.where(F.col("kind").isin(*args.kind))
    operations = operations.persist()
    under_own = F.expr("if(waited_ms > timeout_ms, 'expired', outcome)")  # with events, `outcome` is under the longest
    tables = {
        "replay": replay(operations, None, settings, deadline=args.deadline),
        "pending": replay_pending(operations, None, settings, deadline=args.deadline),
        "what_if": what_if(operations, None, timeouts, deadline=args.deadline),
        "own_timeouts": own_timeouts(operations if events is None else operations.withColumn("outcome", under_own)),
    }
    if "client_id" in operations.columns:
        tables["client_timeouts"] = client_timeouts(operations)
    about = {
        "command": redacted_command_line(),
        "logs": args.logs,
        "events": args.events,
        "kinds": args.kind or "all",
        "deadline": args.deadline,
        "settings": [asdict(setting) for setting in settings],
        **title_entry(args.title),
    }
    try:
        with Steps(quiet=args.quiet).step("reading the operations"):
            _check_kinds(args.kind, operations, everything)
            if operations.isEmpty():
                raise AbeyantError(_nothing_message(args))
        return write_result(
            spark,
            args.out,
            {name: table.repartition(1) for name, table in tables.items()},
            write_replay_report,
            overwrite=args.overwrite,
            quiet=args.quiet,
            about=about,
            drawn=tables,
        )
    finally:
        operations.unpersist()


def _check_kinds(kinds: list[str], operations: DataFrame, everything: DataFrame) -> None:
    """Raise `AbeyantError` for a kind that no operation has."""
    if not kinds:
        return
    matching = {row.kind for row in operations.select("kind").distinct().collect()}
    missing = [kind for kind in kinds if kind not in matching]
    if missing:
        all_kinds = sorted(str(row.kind) for row in everything.select("kind").distinct().collect() if row.kind)
        rest = f" and {len(all_kinds) - _MOST_KINDS:,} more" if len(all_kinds) > _MOST_KINDS else ""
        listing = ", ".join(map(shortened, all_kinds[:_MOST_KINDS]))
        hint = f"there are {listing}{rest}" if all_kinds else "no operation has a kind"
        raise AbeyantError(f"--kind: no operation has kind {missing[0]!r}; {hint}{did_you_mean(missing[0], all_kinds)}")


def _operations(
    spark: SparkSession, args: argparse.Namespace, table: Source | None, events: Source | None, longest_ms: int
) -> DataFrame:
    """Return operations with their outcomes. If `events` are given, compute these for time-outs up to `longest_ms`."""
    from abeyant.pipeline.request_log.groups import with_sync_limits
    from abeyant.pipeline.schemas import OPERATIONS

    if table is None:
        from abeyant.pipeline import read_kafka_request_log

        return with_sync_limits(
            read_kafka_request_log(spark, args.logs, timezone=args.timezone, instance=args.instance)
        )
    from abeyant.pipeline.replayer.foresight import watched_for
    from abeyant.pipeline.sources.tables import events_from, observed_from, operations_from

    operations = table.queried(spark)
    if events is None:
        check_outcome(table.given.name, operations.columns)
        operations = observed_from(operations, table.given.columns)
        return with_sync_limits(operations) if set(OPERATIONS.fieldNames()) <= set(operations.columns) else operations
    operations = operations_from(operations, table.given.columns)
    # Computed once for all tables.
    progress = events_from(events.queried(spark), events.given.columns)
    return watched_for(operations, progress, longest_ms, keys=bool(args.purge_interval))


def _found(out: Path) -> dict[str, Any]:
    """Return what `--json` prints: the contents of the page, except the pending operations over time."""
    from abeyant.pipeline.commands.summary_text import json_tables, json_tiles, plain
    from abeyant.pipeline.report.offers import clients_to_change, offers, read_clients
    from abeyant.pipeline.report.parts import read_table
    from abeyant.pipeline.report.replay_page import replay_tiles
    from abeyant.pipeline.report.replay_sentences import conclusions

    replayed, what_if, own_timeouts = (read_table(out, name) for name in ("replay", "what_if", "own_timeouts"))
    clients = read_clients(out)
    sentences = [plain(sentence) for sentence in conclusions(replayed, what_if, own_timeouts, clients)]
    changes = [
        {"kind": offer.kind, "timeout_ms": int(offer.row["timeout_ms"]), **client}
        for offer in offers(what_if, own_timeouts)
        for client in clients_to_change(offer, clients).head(_MOST_CLIENTS).to_dict("records")
    ]
    rows = json_tables(out, ("replay", "what_if", "own_timeouts"))
    tiles = json_tiles(replay_tiles(replayed, what_if, own_timeouts))
    return {"tiles": tiles, "conclusions": sentences, "clients_to_change": changes, **rows}


def _summary(out: Path, *, wheels: bool) -> str:
    """Return the text for the terminal: which time-out to set, what expires; with `wheels` a line for each setting."""
    from abeyant.pipeline.report.offers import read_clients
    from abeyant.pipeline.report.parts import read_table
    from abeyant.pipeline.report.replay_sentences import expiring_sentences, time_out_sentences, wheel_sentences

    replayed, what_if, own_timeouts = (read_table(out, name) for name in ("replay", "what_if", "own_timeouts"))
    lines = time_out_sentences(what_if, own_timeouts, read_clients(out)) + expiring_sentences(replayed) or [
        "Nothing was replayed."
    ]
    if wheels:
        lines += ["", *_setting_lines(replayed), "", *wheel_sentences(replayed)]
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _setting_lines(replayed: pd.DataFrame) -> list[str]:
    from abeyant.pipeline.report.replay_sentences import band, together

    names = sorted(map(str, replayed["instance"].unique()))
    head = f"{'tick ms':>8}{'buckets':>9}{'time-out ms':>13}{'expired':>18}"
    lines = [f"{head}{'most pending':>14}{'cascades':>10}{'wake-ups':>10}"]
    if len(names) > 1:
        lines = [f"{len(names):,} instances together; each alone is in the table `replay` and on the page", "", *lines]
    order = ["timeout_ms", "tick_ms", "wheel_size"]
    wheels = together(replayed[replayed["purge_interval"].isna()]).sort_values(order, na_position="first")
    rows = wheels.to_dict("records")
    for row in rows[:_MOST_LINES]:
        timeout = OWN if row["timeout_ms"] != row["timeout_ms"] else f"{row['timeout_ms']:,.0f}"
        expired = band(row["expired"] - row["unknown"], row["expired"])
        lines.append(
            f"{row['tick_ms']:>8g}{row['wheel_size']:>9}{timeout:>13}{expired:>18}"
            f"{row['pending_most']:>14,}{row['cascades']:>10,}{row['wakeups']:>10,}"
        )
    if len(rows) > _MOST_LINES:
        lines.append(f"and {len(rows) - _MOST_LINES:,} more in the table `replay`")
    return lines


_MOST_LINES: Final = 30
