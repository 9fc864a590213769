"""`abeyant pending`: list a stream's pending operations from its checkpoint, while it runs or after."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.ending import print_json_text, standard_output
from abeyant.errors import AbeyantError
from abeyant.former import former, written_before
from abeyant.pages.formatting import operation_name, visible
from abeyant.pipeline.commands.arguments import add_command, add_master, whole_number
from abeyant.pipeline.commands.running import spark_for
from abeyant.pipeline.spark.extra import check_extra
from abeyant.pipeline.spark.location import is_uri

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["add_arguments", "run"]

_HELP: Final = "list the pending operations of a stream"

_DESCRIPTION: Final = """\
List the pending operations of a stream, a line per watch: its key and required
progress, the operation's start and deadline. Reads the state in the stream's
checkpoint as of its last batch. The stream may be running.
"""

_EXAMPLES: Final = """\
examples:
  abeyant pending result
      the next 20 deadlines of the stream whose --out is result
  abeyant pending result --limit 0 --json > waiting.jsonl
  abeyant pending result --key customer-17
"""


_MEND: Final = "start a new stream, with another --out and checkpoint"


def add_arguments(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand `pending`."""
    parser = add_command(subparsers, "pending", run, _HELP, _DESCRIPTION, _EXAMPLES)
    parser.add_argument("stream", metavar="DIR", help="a stream's --out, or its checkpoint")
    parser.add_argument(
        "--limit",
        type=partial(whole_number, least=0),
        default=20,
        metavar="N",
        help="show the next N deadlines (default: 20; 0: all)",
    )
    parser.add_argument("--key", help="show only watches of this key")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    add_master(parser)
    parser.set_defaults(quiet=True)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print pending operations; return the exit status.

    Raises `AbeyantError` if DIR is neither the --out nor the checkpoint of a stream.
    """
    checkpoint = args.stream if is_uri(args.stream) else _checkpoint(args.stream)
    check_extra("pending")
    with spark_for(args, "abeyant pending", brief=True) as spark:
        from abeyant.pipeline import read_pending

        table = read_pending(spark, _stored_checkpoint(spark, checkpoint) if is_uri(args.stream) else checkpoint)
        if args.key is not None:
            table = table.where(table["key"] == args.key)
        table = table.orderBy("deadline", "instance", "op_id").persist()
        rows = table.limit(args.limit) if args.limit else table
        with standard_output():
            if args.json:
                for line in _json_lines(rows):
                    print_json_text(line)
            else:
                for line in _text_lines(rows):
                    print(line)
                print(f"{table.count():,} pending")
    return 0


def _checkpoint(path: str) -> str:
    """Return the checkpoint of the stream whose --out is `path`. If `path` is itself a checkpoint, return it."""
    from abeyant.pipeline.commands.stream_run.description import DESCRIPTION

    file, checkpoint = Path(path) / DESCRIPTION, Path(path) / "checkpoint"
    if file.exists():
        # Prefer the checkpoint inside: after a move, the described path may belong to another stream.
        return str(checkpoint.absolute()) if (checkpoint / "state").is_dir() else _named(file.read_bytes(), file)
    if file.with_name(former(DESCRIPTION)).exists():
        raise written_before(path, _MEND)
    if not (Path(path) / "state").is_dir():
        raise AbeyantError(f"{path} is neither the --out nor the checkpoint of a stream that has run: name one of them")
    return path


def _named(description: bytes | str, place: object) -> str:
    """Return the checkpoint that a stream's description names. Raise `AbeyantError` for a damaged description."""
    try:
        return str(json.loads(description)["checkpoint"])
    except (ValueError, LookupError, TypeError) as error:
        raise AbeyantError(f"{place} is damaged and names no checkpoint: give the checkpoint as DIR") from error


def _stored_checkpoint(spark: SparkSession, uri: str) -> str:
    """Return the checkpoint of the stream whose --out is `uri`, on a store. If `uri` is a checkpoint, return it."""
    from abeyant.pipeline.commands.stream_run.description import DESCRIPTION
    from abeyant.pipeline.spark.connect import is_connect
    from abeyant.pipeline.spark.store import Store

    if is_connect(spark):
        return uri
    store = Store(spark, uri)
    if store.exists(former(DESCRIPTION)):
        raise written_before(uri, _MEND)
    description = store.read(DESCRIPTION)
    return uri if description is None else _named(description, f"{uri}/{DESCRIPTION}")


def _json_lines(table: DataFrame) -> Iterator[str]:
    from pyspark.sql import functions as F  # noqa: N812

    from abeyant.pipeline.resolver.rejected import TIME_FORMAT

    options = {"timestampFormat": TIME_FORMAT}
    for row in table.select(F.to_json(F.struct(*table.columns), options)).toLocalIterator():
        yield row[0]


def _text_lines(table: DataFrame) -> Iterator[str]:
    from pyspark.sql import functions as F  # noqa: N812

    # As texts: Python would show times in the machine's zone.
    times = {name: F.date_format(name, "yyyy-MM-dd HH:mm:ss") for name in ("deadline", "start")}
    form = "{:<19}  {:<19}  {:>10}  {:<24}  {}"
    yield form.format("until", "since", "required", "key", "operation")
    for row in table.withColumns(times).toLocalIterator():
        operation = operation_name(row.instance, row.op_id, row.kind)
        yield visible(form.format(row.deadline, row.start, row.required, row.key, operation))
