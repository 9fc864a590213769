"""`abeyance resolve`: any two tables in, outcomes out. Imports Spark only when it runs."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyance.errors import AbeyanceError
from abeyance.pipeline.command import spark_for, terminate_as_interrupt
from abeyance.pipeline.result_directory import check_target, new_result, write_marker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["add_arguments", "run"]

FORMATS: Final = ("parquet", "json", "csv")

_DESCRIPTION: Final = """\
Tell which operations got their answer in time, and which did not. An operation (start, timeout_ms)
waits until the progress of a key has reached what it requires; each ends once: completed, or expired.

OPERATIONS and EVENTS are files or directories of Parquet, JSON lines, or CSV with a header. The columns:

  operations   op_id, start, timeout_ms; key and required (or watches: array<struct<key, required>>);
               instance, kind, condition (all, any) where there is more than one
  events       key, at, progress; instance as above

--operation and --event say where a column comes from, as a Spark SQL expression over the table's own.
Left out: instance is '', condition 'all', required 1 and progress 1 (an event that only has to happen).

DIR gets the tables outcomes, invalid_operations and invalid_events (Parquet). The last two hold what
cannot be resolved, with the reason.
"""

_EXAMPLES: Final = """\
examples:
  abeyance resolve orders.parquet payments.parquet --out result
  abeyance resolve orders.csv payments.csv --out result \\
      --operation op_id=order_id --operation key=order_id --operation start=ordered_at \\
      --operation timeout_ms=15*60*1000 --event key=order_id --event at=paid_at
      orders that were paid within 15 minutes, from two CSV files
  abeyance resolve log.csv log.csv --out result --deadline exclusive \\
      --operation "op_id=if(activity = 'Send Fine', case, null)" ...
      one log as both tables: rows without op_id, key or at are set aside
"""


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `resolve`; its parsed arguments have `run` as their `run`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "resolve",
        help="tell which operations completed and which expired, from tables of operations and events",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("operations", metavar="OPERATIONS", help="file or directory")
    parser.add_argument("events", metavar="EVENTS", help="file or directory")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where the result goes")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace DIR if it holds an earlier result (nothing else ever)"
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="of both tables (default: by the name's ending, else parquet)"
    )
    for table in ("operation", "event"):
        parser.add_argument(
            f"--{table}",
            action="append",
            default=[],
            type=_mapping,
            metavar="COLUMN=SQL",
            help=f"where a column of the {table}s comes from; may be given for each column",
        )
    parser.add_argument(
        "--deadline",
        choices=["inclusive", "exclusive"],
        default="inclusive",
        help="whether progress at the very end of the time counts (default: %(default)s)",
    )
    parser.add_argument(
        "--unique-ids", action="store_true", help="promise that no op_id is there twice: saves a search"
    )
    parser.add_argument(
        "--master", default="local[*]", help="the Spark master (default: %(default)s, all cores of this machine)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary: only the result's path")
    parser.set_defaults(run=run)
    return parser


def _mapping(text: str) -> tuple[str, str]:
    column, equals, expression = text.partition("=")
    if not (equals and column.strip() and expression.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=SQL")
    return column.strip(), expression.strip()


def run(args: argparse.Namespace) -> int:
    """Resolve as told, print a summary and the result's path; return the exit status.

    Raises `AbeyanceError` with one line for what the user can mend. Interrupted (130) it leaves nothing behind.
    """
    check_target(args.out.absolute(), overwrite=args.overwrite)
    for path in (args.operations, args.events):
        if "://" not in path and not Path(path).exists():
            raise AbeyanceError(f"no such file or directory: {path}")
    try:
        with terminate_as_interrupt(), spark_for(args, "abeyance resolve") as spark, _explained():
            counts = _resolve(spark, args)
    except KeyboardInterrupt:
        print(f"abeyance: interrupted: {args.out} was not written", file=sys.stderr)
        return 130
    if not args.quiet:
        for what, count in counts.items():
            print(f"{what:<44}{count:>14,}")
    print(args.out)
    return 0


def _resolve(spark: SparkSession, args: argparse.Namespace) -> dict[str, int]:
    from abeyance.pipeline import invalid_events, invalid_operations, resolve
    from abeyance.pipeline.progress import Steps
    from abeyance.pipeline.resolve_tables import events_from, operations_from

    operations = operations_from(_read(spark, args.operations, args.format), dict(args.operation))
    events = events_from(_read(spark, args.events, args.format), dict(args.event))
    tables = {
        "outcomes": resolve(operations, events, deadline=args.deadline, unique_ids=args.unique_ids),
        "invalid_operations": invalid_operations(operations),
        "invalid_events": invalid_events(events),
    }
    steps = Steps(quiet=args.quiet)
    group = "abeyance-resolve"
    with new_result(args.out, overwrite=args.overwrite) as aside:
        for name, table in tables.items():
            spark.sparkContext.setJobGroup(group, name, interruptOnCancel=True)
            with steps.step(f"writing {name}", spark, group):
                table.write.parquet(f"file://{aside / name}")
        counts = _counts(spark, aside)
        write_marker(aside, {"tables": list(tables), "deadline": args.deadline, **counts})
    return counts


def _read(spark: SparkSession, path: str, chosen: str | None) -> DataFrame:
    ending = Path(path).name.removesuffix(".gz").rpartition(".")[2]
    form = chosen or (ending if ending in FORMATS else "json" if ending in ("jsonl", "ndjson") else "parquet")
    # Without a scheme a path is this machine's; Hadoop takes it as it is, blanks and all.
    where = path if "://" in path else f"file://{Path(path).resolve()}"
    # Columns of CSV stay text: what cannot be read as its column's type is set aside row by row.
    options = {"header": "true"} if form == "csv" else {}
    return spark.read.format(form).options(**options).load(where)


def _counts(spark: SparkSession, aside: Path) -> dict[str, int]:
    """How many operations ended how, and how many rows were set aside why."""
    counts: dict[str, int] = {}
    for name, column in (("outcomes", "outcome"), ("invalid_operations", "reason"), ("invalid_events", "reason")):
        found = spark.read.parquet(f"file://{aside / name}").groupBy(column).count().orderBy(column).collect()
        label = "" if name == "outcomes" else f"{name.replace('_', ' ')}: "
        counts |= {f"{label}{row[0]}": row[1] for row in found}
    return counts


@contextmanager
def _explained() -> Iterator[None]:
    """Say in one line what Spark found wrong."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    # Spark writes what it found wrong to the error stream as well, as a line of JSON: once is enough.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = [line.strip() for line in str(error).split("\n") if line.strip()]
        causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
        raise AbeyanceError(f"Spark failed: {(causes or lines or [type(error).__name__])[0]}") from error
