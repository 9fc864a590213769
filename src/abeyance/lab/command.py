"""`abeyance lab`: list the experiments, run them, write the report."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyance.errors import AbeyanceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add_arguments"]

_DESCRIPTION: Final = """\
Compare designs of timers and purgatories, as the literature does. Other designs
stand behind the same port and are measured in one run, with a verdict on each
claim.
"""
_EXAMPLES: Final = """\
examples:
  abeyance lab list
  abeyance lab run enqueue --quick
      two minutes at most; with Maven, the genuine Kafka too
  abeyance lab run all
      everything, less than an hour; --resume continues it
  abeyance lab run geometry --log 'logs/*/kafka-request.log*'
  abeyance lab report
      lab-results/report.html, with the last run of each experiment
"""
_SPARK_MODULES: Final = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "rich")


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
    listing.set_defaults(run=_list)

    run = commands.add_parser("run", help="run experiments; results are appended as they come")
    run.add_argument("names", nargs="+", metavar="NAME", help="experiments, or all")
    run.add_argument("--quick", action="store_true", help="fewer and smaller cells")
    run.add_argument("--resume", action="store_true", help="continue the last run: skip the cells that it has")
    run.add_argument("--log", nargs="+", default=[], metavar="LOGS", help="Kafka request logs, as traces for geometry")
    run.add_argument("--master", default="local[*]", help="the Spark master (default: %(default)s)")
    run.add_argument("--quiet", action="store_true", help="no progress")
    run.set_defaults(run=_run)

    report = commands.add_parser("report", help="one HTML page of the last run of each experiment")
    report.add_argument("--to", type=Path, metavar="FILE", help="where to write it (default: report.html in DIR)")
    report.set_defaults(run=_report)
    for command in (run, report):
        command.add_argument(
            "--dir", type=Path, default=Path("lab-results"), metavar="DIR", help="the results (default: %(default)s)"
        )
    return parser


def _list(_: argparse.Namespace) -> int:
    from abeyance.lab.experiments import EXPERIMENTS

    for name, experiment in EXPERIMENTS.items():
        full, quick = (len(experiment.grid(quick)) for quick in (False, True))
        where = "Spark, virtual clock" if experiment.clock == "virtual" else "one at a time, real clock"
        print(f"{name:<10} {experiment.title:<42} {full:>4} cells ({quick} quick)  {where}")
    return 0


def _run(args: argparse.Namespace) -> int:
    from abeyance.lab import compiled

    compiled.ensure()  # before the first import of a rival
    from abeyance.lab.experiments import EXPERIMENTS

    names = list(EXPERIMENTS) if "all" in args.names else args.names
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise AbeyanceError(f"there is no experiment {unknown[0]!r}: it is one of {', '.join(EXPERIMENTS)}, or all")
    if args.log:
        from abeyance.pipeline.request_log.files import find_logs

        find_logs(args.log)  # what is wrong with them is said before hours of work
    runner_module = _with_extra("abeyance.lab.runner")
    sessions: list[SparkSession] = []

    def spark() -> SparkSession:
        if not sessions:
            from abeyance.pipeline.spark.session import spark_session

            sessions.append(spark_session(args.master, "abeyance lab", brief=True))
        return sessions[0]

    runner = runner_module.Runner(args.dir, spark, quiet=args.quiet)
    failed = 0
    try:
        for name in names:
            ran = runner.run(EXPERIMENTS[name], quick=args.quick, resume=args.resume, logs=args.log)
            again = f", {ran.skipped} were there" if ran.skipped else ""
            print(f"{name}: {ran.measured} cells measured{again}, {len(ran.failed)} failed; in {args.dir}")
            for one, why in ran.failed.items():
                print(f"abeyance: failed: {one.design} {one.parameters}: {why}", file=sys.stderr)
            failed += len(ran.failed)
    finally:
        for session in sessions:
            with suppress(Exception):  # if it is gone already there is nothing to stop
                session.stop()
    return 1 if failed else 0


def _report(args: argparse.Namespace) -> int:
    report = _with_extra("abeyance.lab.report")
    results = _with_extra("abeyance.lab.results").Results(args.dir)
    path = args.to if args.to is not None else args.dir / "report.html"
    report.write_report(results.read(), path)
    print(path)
    return 0


def _with_extra(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in _SPARK_MODULES:
            raise AbeyanceError(f"the lab needs {missing}: pip install 'abeyance[lab]'") from error
        raise
