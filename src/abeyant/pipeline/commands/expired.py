"""`abeyant expired`: list the operations that expired in a result, by deadline, as text, CSV or JSON. No Spark."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.ending import print_json_text, standard_output
from abeyant.errors import AbeyantError
from abeyant.lazy import missing, needs
from abeyant.pages.formatting import duration, operation_name, visible
from abeyant.pipeline.commands.arguments import add_command, whole_number
from abeyant.pipeline.spark.location import is_uri

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["add_arguments", "run"]

_HELP: Final = "list the operations that expired, from a result"

_DESCRIPTION: Final = """\
List the operations that expired in a result of 'abeyant resolve' or 'abeyant
stream', by deadline: the deadline (UTC), how long it waited, and the operation.
With --csv, a row for each, for a spreadsheet or a join.

Late or never? Resolve once more with a time-out that is long enough, and name
that result with --later: each operation gets how late it was completed there.
"""

_EXAMPLES: Final = """\
examples:
  abeyant expired result
      the first 20 of the result whose --out is result
  abeyant expired result --csv > late.csv
      all of them
  abeyant resolve orders.csv payments.csv --out patient ...
      the same again, with --operation "timeout='365 days'"
  abeyant expired result --later patient
      how late each was completed, or that it never was
"""

_SHOWN: Final = 20
_READ: Final = ["instance", "op_id", "kind", "outcome", "at", "waited_ms"]
_COLUMNS: Final = ("deadline", "op_id", "kind", "instance", "waited_ms")
_LATER: Final = ("completed", "late_ms")
_ID: Final = ["instance", "op_id"]
_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
_BATCH_ROWS: Final = 1 << 16
_LATE_BY: Final = "late by"


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `expired`."""
    parser = add_command(subparsers, "expired", run, _HELP, _DESCRIPTION, _EXAMPLES)
    parser.add_argument("result", metavar="DIR", help="the --out of 'abeyant resolve' or 'abeyant stream'")
    parser.add_argument(
        "--later",
        metavar="DIR",
        help="a result of the same operations with a longer time-out; shows when each completed, and how late",
    )
    parser.add_argument(
        "--limit",
        type=partial(whole_number, least=0),
        metavar="N",
        help=f"show the first N deadlines (default: {_SHOWN} of text, else all; 0: all)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV, with a header, in place of text")
    form.add_argument("--json", action="store_true", help="print one JSON object per line")
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the expired operations; return the exit status. Raises `AbeyantError` if DIR has no table `outcomes`."""
    if lacking := missing({"tables": ("pyarrow",)}):
        raise needs("expired", lacking)
    expired = read_expired(args.result)
    if args.later is not None:
        expired = _with_later(expired, args.later)
    limit = (0 if args.csv or args.json else _SHOWN) if args.limit is None else args.limit
    table = expired[:limit] if limit else expired
    columns = _COLUMNS if args.later is None else _COLUMNS + _LATER
    with standard_output():
        if args.csv:
            lines = csv.writer(sys.stdout, lineterminator="\n")
            lines.writerow(columns)
            lines.writerows(_rows(table, columns, _TIME))
        elif args.json:
            for row in _rows(table, columns, _TIME):
                print_json_text(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False))
        else:
            _print(table, columns)
            arguments = args.result if args.later is None else f"{args.result} --later {args.later}"
            hint = f"; --limit 0 shows all, --csv for a file: abeyant expired {arguments} --csv > expired.csv"
            print(f"{expired.num_rows:,} expired{_later_phrase(expired)}{hint if len(table) < len(expired) else ''}")
    return 0


def _print(table: pa.Table, columns: Sequence[str]) -> None:
    """Print a header and a line of aligned text for each operation."""
    late = "late_ms" in columns
    print(f"{'deadline':<19}  {'waited':>12}  {f'{_LATE_BY:>12}  ' if late else ''}operation")
    for deadline, op_id, kind, instance, waited_ms, *later in _rows(table, columns, "%Y-%m-%d %H:%M:%S"):
        times = [waited_ms, *later[1:]]
        cells = ["never" if ms is None else duration(ms).replace("\N{NO-BREAK SPACE}", " ") for ms in times]
        print(visible("  ".join([deadline, *(f"{cell:>12}" for cell in cells), operation_name(instance, op_id, kind)])))


def _later_phrase(expired: pa.Table) -> str:
    """Return a phrase: how many operations completed later, and how many never; "" without --later."""
    if "late_ms" not in expired.column_names:
        return ""
    never = expired["late_ms"].null_count
    return f": {expired.num_rows - never:,} completed later, {never:,} never"


def _with_later(expired: pa.Table, later: str) -> pa.Table:
    """Add when each operation completed in the result `later`, and how many ms after its deadline.

    Both new columns are null if it never completed. Raises `AbeyantError` as `read_expired` does, and if `later` lacks
    one of the operations, or ends one before its deadline.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    outcomes = _read(later, [*_ID, "outcome", "at"])
    ids = expired.append_column("place", pa.array(range(expired.num_rows), pa.int64())).select([*_ID, "place"])
    matches = ids.join(outcomes, _ID).sort_by("place")
    if matches.num_rows != expired.num_rows or matches["outcome"].null_count:
        raise AbeyantError(
            f"{later} is not a result of the same operations: it lacks some that expired in the first result"
        )
    at = matches["at"].cast(pa.timestamp("us"))
    late = pc.divide(pc.subtract(at.cast(pa.int64()), expired["at"].cast(pa.int64())).cast(pa.float64()), 1000.0)
    if pc.any(pc.less(late, 0.0)).as_py():
        raise AbeyantError(
            f"{later} ends some operations earlier: --later takes a result with a longer time-out, of the same tables "
            "with the same columns mapped"
        )
    is_completed = pc.equal(matches["outcome"], "completed")
    never = pa.scalar(None)
    expired = expired.append_column("completed", pc.if_else(is_completed, at, never.cast(at.type)))
    return expired.append_column("late_ms", pc.if_else(is_completed, late, never.cast(late.type)))


def read_expired(result: str) -> pa.Table:
    """Return the expired operations of a result, sorted by deadline, instance and id. Memory: these rows.

    Raises `AbeyantError` if the directory has no table `outcomes`, or one of the table's files cannot be read.
    """
    import pyarrow as pa

    expired = _read(result, _READ, "expired").sort_by([(name, "ascending") for name in ("at", *_ID)])
    times = expired["at"].cast(pa.timestamp("us"))  # UTC; Spark also writes nanoseconds, always whole microseconds
    return expired.set_column(expired.column_names.index("at"), "at", times)


def _read(result: str, columns: list[str], outcome: str | None = None) -> pa.Table:
    """Read columns of a result's table `outcomes`: all rows, or only rows with the given `outcome`."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    batches = []
    for file in _files(result):
        try:
            parquet_file = pq.ParquetFile(file)
            if lacking := [name for name in columns if name not in parquet_file.schema_arrow.names]:
                raise AbeyantError(f"cannot read {file} as outcomes: it lacks the column {lacking[0]!r}")
            for batch in parquet_file.iter_batches(_BATCH_ROWS, columns=columns):
                batches.append(batch if outcome is None else batch.filter(pc.equal(batch.column("outcome"), outcome)))
        except (OSError, pa.ArrowException) as error:
            raise AbeyantError(f"cannot read {file}: {str(error).splitlines()[0]}") from error
    if not batches:
        raise AbeyantError(f"{result}/outcomes has no Parquet file: the result is not complete")
    return pa.Table.from_batches(batches)


def _files(result: str) -> list[Path]:
    if is_uri(result):
        raise AbeyantError(
            f"{result} is not on this machine: copy its folder 'outcomes' into a local folder, and give that folder"
        )
    outcomes = Path(result) / "outcomes"
    if not outcomes.is_dir():
        raise AbeyantError(f"{result} is not the --out of abeyant resolve or stream: it has no folder 'outcomes'")
    inside = ((file, file.relative_to(outcomes).parts) for file in outcomes.rglob("*.parquet"))
    # Names that begin with _ or . are not part of a table: Spark and our sinks write there first, and rename.
    return sorted(file for file, parts in inside if not any(part.startswith(("_", ".")) for part in parts))


def _rows(expired: pa.Table, columns: Sequence[str], time_format: str) -> Iterator[list[Any]]:
    """Yield each row's values of `columns`: times as text, and '' for a kind that is null."""
    names = ["at" if name == "deadline" else name for name in columns]
    for batch in expired.select(names).to_batches(_BATCH_ROWS):
        for row in batch.to_pylist():
            row["kind"] = row["kind"] or ""
            yield [value.strftime(time_format) if isinstance(value, datetime) else value for value in row.values()]
