"""`abeyant expired`: list what expired in a result, by deadline, for a person as CSV or JSON. Needs no Spark."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.ending import print_json_text, standard_output
from abeyant.errors import AbeyantError
from abeyant.lazy import missing, needs
from abeyant.pages.words import duration, operation_name, visible
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
"""

_EXAMPLES: Final = """\
examples:
  abeyant expired result
      the first 20 of the result whose --out is result
  abeyant expired result --csv > late.csv
      all of them
"""

_SHOWN: Final = 20
_READ: Final = ["instance", "op_id", "kind", "outcome", "at", "waited_ms"]
_COLUMNS: Final = ("deadline", "op_id", "kind", "instance", "waited_ms")
_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
_BATCH_ROWS: Final = 1 << 16


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `expired`."""
    parser = add_command(subparsers, "expired", run, _HELP, _DESCRIPTION, _EXAMPLES)
    parser.add_argument("result", metavar="DIR", help="the --out of 'abeyant resolve' or 'abeyant stream'")
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
    """Print what expired; return the exit status. Raises `AbeyantError` where DIR has no table `outcomes`."""
    if lacking := missing({"tables": ("pyarrow",)}):
        raise needs("expired", lacking)
    expired = read_expired(args.result)
    limit = (0 if args.csv or args.json else _SHOWN) if args.limit is None else args.limit
    shown = expired[:limit] if limit else expired
    with standard_output():
        if args.csv:
            lines = csv.writer(sys.stdout, lineterminator="\n")
            lines.writerow(_COLUMNS)
            lines.writerows(_rows(shown, _TIME))
        elif args.json:
            for row in _rows(shown, _TIME):
                print_json_text(json.dumps(dict(zip(_COLUMNS, row, strict=True)), ensure_ascii=False))
        else:
            print(f"{'deadline':<19}  {'waited':>12}  operation")
            for deadline, op_id, kind, instance, waited_ms in _rows(shown, "%Y-%m-%d %H:%M:%S"):
                operation = operation_name(instance, op_id, kind)
                waited = duration(waited_ms).replace("\N{NO-BREAK SPACE}", " ")
                print(visible(f"{deadline:<19}  {waited:>12}  {operation}"))
            more = f"; --limit 0 shows all, --csv for a file: abeyant expired {args.result} --csv > expired.csv"
            print(f"{expired.num_rows:,} expired{more if shown.num_rows < expired.num_rows else ''}")
    return 0


def read_expired(result: str) -> pa.Table:
    """Return the outcomes of a result that expired, by deadline, instance and id. Memory: these rows.

    Raises `AbeyantError` where the directory has no table `outcomes`, or a file of it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found = []
    for file in _files(result):
        try:
            stored = pq.ParquetFile(file)
            if lacking := [name for name in _READ if name not in stored.schema_arrow.names]:
                raise AbeyantError(f"cannot read {file}: no column {lacking[0]!r}, which outcomes have")
            for batch in stored.iter_batches(_BATCH_ROWS, columns=_READ):
                found.append(batch.filter(pc.equal(batch.column("outcome"), "expired")))
        except (OSError, pa.ArrowException) as error:
            raise AbeyantError(f"cannot read {file}: {str(error).splitlines()[0]}") from error
    if not found:
        raise AbeyantError(f"{result}/outcomes has no Parquet file: the result is not complete")
    order = [(name, "ascending") for name in ("at", "instance", "op_id")]
    expired = pa.Table.from_batches(found).sort_by(order)
    times = expired["at"].cast(pa.timestamp("us"))  # UTC; Spark also writes nanoseconds, always whole microseconds
    return expired.set_column(expired.column_names.index("at"), "at", times)


def _files(result: str) -> list[Path]:
    if is_uri(result):
        raise AbeyantError(f"{result} is not on this machine: copy its folder outcomes here, and name the folder above")
    outcomes = Path(result) / "outcomes"
    if not outcomes.is_dir():
        raise AbeyantError(f"{result} is not the --out of abeyant resolve or stream: it has no folder 'outcomes'")
    inside = ((file, file.relative_to(outcomes).parts) for file in outcomes.rglob("*.parquet"))
    # What begins with _ or . is not part of a table: Spark and our sinks write there first, and rename.
    return sorted(file for file, parts in inside if not any(part.startswith(("_", ".")) for part in parts))


def _rows(expired: pa.Table, time_format: str) -> Iterator[tuple[str, str, str, str, float]]:
    for batch in expired.select(["at", "op_id", "kind", "instance", "waited_ms"]).to_batches(_BATCH_ROWS):
        for row in batch.to_pylist():
            deadline = row["at"].strftime(time_format)
            yield deadline, row["op_id"], row["kind"] or "", row["instance"], row["waited_ms"]
