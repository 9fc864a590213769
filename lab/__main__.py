"""`make lab`: list the experiments, run them, write the report."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abeyant.command_line import CommandParser
from abeyant.ending import add_json, add_output_options, end, print_json
from abeyant.engine import is_compiled
from abeyant.errors import AbeyantError, did_you_mean
from lab.experiment import Cell, cell
from lab.experiments import EXPERIMENTS, geometry, traces
from lab.results import Results
from lab.rivals import heap
from lab.runner import Ran, Runner

if TYPE_CHECKING:
    from lab.claim import Claim, Finding

_DESCRIPTION: Final = """\
Compare designs of timers and purgatories, as the literature does. Other designs
stand behind the same port and are measured in one run, with a verdict on each
claim.
"""
_EXAMPLES: Final = """\
examples:
  python -m lab list
  python -m lab run enqueue --quick
      two minutes at most; with Maven, the genuine Kafka too
  python -m lab run all
      everything, less than an hour; --resume continues it
  python -m lab run geometry --log 'logs/*/kafka-request.log*'
  python -m lab report
      build/lab/report.html, with the last run of each experiment
"""
_DIR: Final = Path("build/lab")
_FILE: Final = "results.jsonl"
_TRACED: Final = "geometry"
"""The experiment that can replay operations from request logs (--log)."""


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="python -m lab",
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
    run.add_argument("--master", default="local[*]", help="the Spark master that reads --log (default: %(default)s)")
    add_output_options(run, report=False)
    run.set_defaults(run=_run)

    report = commands.add_parser("report", help="one HTML page of the last run of each experiment")
    report.add_argument("--to", type=Path, metavar="FILE", help="output file (default: report.html in DIR)")
    add_output_options(report)
    report.set_defaults(run=_report)
    for command in (run, report):
        command.add_argument("--dir", type=Path, default=_DIR, metavar="DIR", help="results (default: %(default)s)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit status: 2 after an error, printed as one line."""
    options = _parser().parse_args(argv)
    try:
        status: int = options.run(options)
    except AbeyantError as error:
        print(f"lab: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lab: interrupted; --resume continues the run", file=sys.stderr)
        return 130
    return status


def _list(args: argparse.Namespace) -> int:
    if args.json:
        found = {
            name: {"title": experiment.title, "cells": len(experiment.grid(False)), "clock": experiment.clock}
            for name, experiment in EXPERIMENTS.items()
        }
        print_json({"experiments": found})
        return 0
    for name, experiment in EXPERIMENTS.items():
        full, quick = (len(experiment.grid(quick)) for quick in (False, True))
        where = "all cores, virtual clock" if experiment.clock == "virtual" else "one at a time, real clock"
        print(f"{name:<10} {experiment.title:<42} {full:>4} cells ({quick} quick)  {where}")
    return 0


def _run(args: argparse.Namespace) -> int:
    if is_compiled() and not str(heap.__file__).endswith(tuple(EXTENSION_SUFFIXES)):
        raise AbeyantError(
            "the engine is compiled and the rivals are not: run make .venv/.lab, "
            "or set ABEYANT_PURE=1 to compare all designs interpreted"
        )
    unknown = [name for name in args.names if name not in {*EXPERIMENTS, "all"}]
    if unknown:
        suggestion = did_you_mean(unknown[0], EXPERIMENTS)
        raise AbeyantError(
            f"there is no experiment {unknown[0]!r}: choose one of {', '.join(EXPERIMENTS)}, or all{suggestion}"
        )
    names = list(EXPERIMENTS if "all" in args.names else dict.fromkeys(args.names))
    if args.log and _TRACED not in names:
        raise AbeyantError(f"--log is for {_TRACED}, which is not among the experiments to run: add it, or omit --log")
    if args.log:
        from abeyant.pipeline.request_log.files import find_logs

        find_logs(args.log)  # report bad paths before hours of work
    runner = Runner(Results(args.dir / _FILE), quick=args.quick, resume=args.resume, quiet=args.quiet)
    done: list[Ran] = []
    for name in names:
        cells = EXPERIMENTS[name].cells(args.quick)
        if args.log and name == _TRACED:
            cells += _cells_of_logs(args)
        ran = runner.run(EXPERIMENTS[name], cells)
        for one, why in ran.failed.items():
            print(f"lab: failed: {one.design} {one.parameters}: {why}", file=sys.stderr)
        done.append(ran)
    counts = {
        ran.experiment: {"measured": ran.measured, "skipped": ran.skipped, "failed": len(ran.failed)} for ran in done
    }
    end(args, lambda: _print_counts(done), out=args.dir, found=counts)
    return 1 if any(ran.failed for ran in done) else 0


def _cells_of_logs(args: argparse.Namespace) -> list[Cell]:
    from abeyant.pipeline.spark.session import spark_session

    session = spark_session(args.master, "lab", brief=True)
    try:
        names = traces.from_log(list(args.log), args.dir / "traces", session)
    finally:
        with suppress(Exception):  # it may have stopped already
            session.stop()
    return [cell(_TRACED, design, chosen) for design, chosen in geometry.on_traces(names, args.quick)]


def _print_counts(done: Sequence[Ran]) -> None:
    for ran in done:
        skipped = f", {ran.skipped} skipped" if ran.skipped else ""
        print(f"{ran.experiment}: {ran.measured} cells measured{skipped}, {len(ran.failed)} failed")


def _report(args: argparse.Namespace) -> int:
    from lab.report import write_report

    rows = Results(args.dir / _FILE).read()
    if rows.empty:
        dir_option = "" if args.dir == _DIR else f" --dir {shlex.quote(str(args.dir))}"
        raise AbeyantError(f"there are no results in {args.dir}: run python -m lab run enqueue --quick{dir_option}")
    path = args.to if args.to is not None else args.dir / "report.html"
    verdicts = write_report(rows, path)
    found = [{"experiment": name, "claim": claim.text, **finding._asdict()} for name, claim, finding in verdicts]
    end(args, lambda: _print_verdicts(verdicts), out=args.dir, report=path, found={"claims": found})
    return 0


def _print_verdicts(verdicts: Sequence[tuple[str, Claim, Finding]]) -> None:
    for name, claim, finding in verdicts:
        print(f"{name}: {finding.verdict}: {claim.text}")


if __name__ == "__main__":
    sys.exit(main())
