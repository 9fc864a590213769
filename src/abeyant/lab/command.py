"""`abeyant lab`: list the experiments, run them, write the report."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.command_line import did_you_mean
from abeyant.ending import add_ending, add_json, end, print_json
from abeyant.errors import AbeyantError
from abeyant.lazy import missing, needs
from abeyant.pipeline.spark.extra import BRINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from abeyant.lab.report.claims import Claim, Finding
    from abeyant.lab.runner import Ran

__all__ = ["add_arguments"]

_DESCRIPTION: Final = """\
Compare designs of timers and purgatories, as the literature does. Other designs
stand behind the same port and are measured in one run, with a verdict on each
claim.
"""
_EXAMPLES: Final = """\
examples:
  abeyant lab list
  abeyant lab run enqueue --quick
      two minutes at most; with Maven, the genuine Kafka too
  abeyant lab run all
      everything, less than an hour; --resume continues it
  abeyant lab run geometry --log 'logs/*/kafka-request.log*'
  abeyant lab report
      lab-results/report.html, with the last run of each experiment
"""
_DIR: Final = Path("lab-results")
_TRACED: Final = "geometry"
"""The experiment that replays traces of logs."""


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the sub-command `lab` and its own; their parsed arguments have `run`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "lab",
        help="compare designs of timers and purgatories",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = commands.add_parser("list", help="the experiments, and how many cells each has")
    add_json(listing)
    listing.set_defaults(run=_list)

    run = commands.add_parser("run", help="run experiments; results are appended as they come")
    run.add_argument("names", nargs="+", metavar="NAME", help="experiments, or all")
    run.add_argument("--quick", action="store_true", help="fewer and smaller cells")
    run.add_argument("--resume", action="store_true", help="continue the last run: skip the cells that it has")
    run.add_argument("--log", nargs="+", default=[], metavar="LOGS", help="Kafka request logs, as traces for geometry")
    run.add_argument("--master", default="local[*]", help="the Spark master (default: %(default)s)")
    add_ending(run, report=False)
    run.set_defaults(run=_run)

    report = commands.add_parser("report", help="one HTML page of the last run of each experiment")
    report.add_argument("--to", type=Path, metavar="FILE", help="where to write it (default: report.html in DIR)")
    add_ending(report)
    report.set_defaults(run=_report)
    for command in (run, report):
        command.add_argument("--dir", type=Path, default=_DIR, metavar="DIR", help="the results (default: %(default)s)")
    return parser


def _list(args: argparse.Namespace) -> int:
    from abeyant.lab.experiments import EXPERIMENTS

    if args.json:
        found = {
            name: {"title": experiment.title, "cells": len(experiment.grid(False)), "clock": experiment.clock}
            for name, experiment in EXPERIMENTS.items()
        }
        print_json({"experiments": found})
        return 0
    for name, experiment in EXPERIMENTS.items():
        full, quick = (len(experiment.grid(quick)) for quick in (False, True))
        where = "Spark, virtual clock" if experiment.clock == "virtual" else "one at a time, real clock"
        print(f"{name:<10} {experiment.title:<42} {full:>4} cells ({quick} quick)  {where}")
    return 0


def _run(args: argparse.Namespace) -> int:
    from abeyant.lab import compiled

    compiled.ensure()  # before the first import of a rival
    from abeyant.lab.experiments import EXPERIMENTS

    unknown = [name for name in args.names if name not in {*EXPERIMENTS, "all"}]
    if unknown:
        meant = did_you_mean(unknown[0], EXPERIMENTS)
        raise AbeyantError(
            f"there is no experiment {unknown[0]!r}: it is one of {', '.join(EXPERIMENTS)}, or all{meant}"
        )
    names = list(EXPERIMENTS if "all" in args.names else dict.fromkeys(args.names))
    if args.log and _TRACED not in names:
        raise AbeyantError(f"--log gives traces to {_TRACED}, which is not run")
    if args.log:
        from abeyant.pipeline.request_log.files import find_logs

        find_logs(args.log)  # what is wrong with them is said before hours of work
    runner_module = _with_extra("abeyant.lab.runner")
    sessions: list[SparkSession] = []

    def spark() -> SparkSession:
        if not sessions:
            from abeyant.pipeline.spark.session import spark_session

            sessions.append(spark_session(args.master, "abeyant lab", brief=True))
        return sessions[0]

    runner = runner_module.Runner(args.dir, spark, quiet=args.quiet)
    done: list[Ran] = []
    try:
        for name in names:
            ran = runner.run(EXPERIMENTS[name], quick=args.quick, resume=args.resume, logs=args.log)
            for one, why in ran.failed.items():
                print(f"abeyant: failed: {one.design} {one.parameters}: {why}", file=sys.stderr)
            done.append(ran)
    finally:
        for session in sessions:
            with suppress(Exception):  # if it is gone already there is nothing to stop
                session.stop()
    counts = {
        ran.experiment: {"measured": ran.measured, "skipped": ran.skipped, "failed": len(ran.failed)} for ran in done
    }
    end(args, lambda: _tell(done), out=args.dir, found=counts)
    return 1 if any(ran.failed for ran in done) else 0


def _tell(done: Sequence[Ran]) -> None:
    for ran in done:
        again = f", {ran.skipped} were there" if ran.skipped else ""
        print(f"{ran.experiment}: {ran.measured} cells measured{again}, {len(ran.failed)} failed")


def _report(args: argparse.Namespace) -> int:
    report = _with_extra("abeyant.lab.report")
    rows = _with_extra("abeyant.lab.results").Results(args.dir).read()
    if rows.empty:
        there = "" if args.dir == _DIR else f" --dir {shlex.quote(str(args.dir))}"
        raise AbeyantError(f"there are no results in {args.dir}: abeyant lab run enqueue --quick{there}")
    path = args.to if args.to is not None else args.dir / "report.html"
    said = report.write_report(rows, path)
    found = [{"experiment": name, "claim": claim.text, **finding._asdict()} for name, claim, finding in said]
    end(args, lambda: _tell_verdicts(said), out=args.dir, report=path, found={"claims": found})
    return 0


def _tell_verdicts(said: Sequence[tuple[str, Claim, Finding]]) -> None:
    for name, claim, finding in said:
        print(f"{name}: {finding.verdict}: {claim.text}")


def _with_extra(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        absent = (error.name or "").partition(".")[0]
        if absent in BRINGS:
            raise needs("the lab", missing({"lab": (*BRINGS, "plotly")}) or {"lab": [absent]}) from error
        raise
