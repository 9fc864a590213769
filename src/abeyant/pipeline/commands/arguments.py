"""Arguments that the pipeline's commands share: logs, tables, results and Spark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.location import is_text
from abeyant.pipeline.spark.session import GENERATED

if TYPE_CHECKING:
    from abeyant.pipeline.sources.source import Source

__all__ = [
    "FORMATS",
    "add_command",
    "add_deadline",
    "add_instance",
    "add_logs",
    "add_master",
    "add_out",
    "add_result",
    "add_tables",
    "are_small",
    "check_place",
    "generate_java",
    "named",
    "note_left_out",
    "source_for",
    "table_source",
    "whole_number",
]

_SMALL_BYTES: Final = 16 << 20
FORMATS: Final = ("parquet", "orc", "json", "csv")


def add_command(
    subparsers: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str, description: str, examples: str
) -> argparse.ArgumentParser:
    """Add a subcommand; its parsed arguments have the function `run` as an attribute."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_logs(parser: argparse.ArgumentParser, or_table: str = "") -> None:
    """Add LOGS and --timezone; `or_table` is appended to the help of LOGS."""
    parser.add_argument("logs", nargs="+", metavar="LOGS", help=f"files, globs or directories{or_table}")
    parser.add_argument(
        "--timezone", default="UTC", metavar="ZONE", help="time zone of log timestamps (default: %(default)s)"
    )


def note_left_out(args: argparse.Namespace) -> Callable[[str], None] | None:
    """Return a function that prints a sentence to stderr; None with --quiet."""
    return None if args.quiet else lambda sentence: print(f"abeyant: {sentence}", file=sys.stderr)


def add_instance(parser: argparse.ArgumentParser) -> None:
    """Add --instance."""
    parser.add_argument(
        "--instance", metavar="NAME", help="name of the broker that wrote all the logs (default: each file's folder)"
    )


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add --out; its value is a `Path`, or a str if it is a URI."""
    parser.add_argument(
        "--out",
        required=True,
        type=_place,
        metavar="DIR",
        help="directory for the result: a path, or a URI such as s3a://",
    )


def _place(text: str) -> Path | str:
    scheme, separator, rest = text.partition("://")
    if not is_text(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8, which Spark requires of paths")
    if not separator and text:
        return Path(text)
    if scheme == "file":
        return Path(rest)
    if not rest.strip("/"):
        raise argparse.ArgumentTypeError(f"{text!r} names no directory: give a path, or a URI such as s3a://bucket/dir")
    return text.rstrip("/")


def add_result(parser: argparse.ArgumentParser) -> None:
    """Add --out and --overwrite."""
    add_out(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace DIR, but only if it holds an earlier result")


def check_place(args: argparse.Namespace) -> None:
    """Raise `AbeyantError` unless a result may be written to --out, as far as is known without Spark."""
    from abeyant.pipeline.results.registry import sink_of

    sink_of(args.out).check(overwrite=args.overwrite)


def add_tables(parser: argparse.ArgumentParser) -> None:
    """Add --format, and the options that map rows and columns: --operation, --event and --TABLE-query."""
    parser.add_argument(
        "--format", choices=FORMATS, help="format of the files (default: by the ending of their names, else parquet)"
    )
    for table in ("operation", "event"):
        parser.add_argument(
            f"--{table}",
            action="append",
            default=[],
            type=_assignment("COLUMN=SQL"),
            metavar="COLUMN=SQL",
            help=f"SQL expression for a column of the {table}s; may be repeated",
        )
        parser.add_argument(
            f"--{table}-query",
            metavar="SQL",
            help=f"SQL query over the table '{table}s'; its result replaces the rows of {table.upper()}S",
        )


def add_deadline(parser: argparse.ArgumentParser) -> None:
    """Add --deadline."""
    parser.add_argument(
        "--deadline",
        choices=["inclusive", "exclusive"],
        default="inclusive",
        help="whether progress exactly at the deadline counts (default: %(default)s)",
    )


def add_master(parser: argparse.ArgumentParser) -> None:
    """Add --master and --conf."""
    parser.add_argument(
        "--master", default="local[*]", help="the Spark master (default: %(default)s, all cores of this machine)"
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_assignment("NAME=VALUE"),
        metavar="NAME=VALUE",
        help="Spark setting, as for spark-submit; may be repeated",
    )


def named(paths: Sequence[str]) -> str:
    """Return the first path as text, with the number of further paths: "a.log and 2 more"."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def whole_number(text: str, least: int) -> int:
    """Parse an integer from `least` to 2**31 - 1, for argparse. Raises argparse's error for other texts."""
    if not text.isdecimal() or not least <= int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {(1 << 31) - 1}")
    return int(text)


def source_for(args: argparse.Namespace, table: Literal["operations", "events"], name: str, **more: Any) -> Source:
    """Return the source that OPERATIONS or EVENTS (`name`) stands for; `more` are further fields of its `Input`.

    Raises `AbeyantError` if --operation or --event maps an unknown column.
    """
    from abeyant.pipeline.sources.registry import source_of
    from abeyant.pipeline.sources.source import Input
    from abeyant.pipeline.sources.tables import check_mapped

    columns = dict(getattr(args, table[:-1]))
    check_mapped(table, columns)
    query = getattr(args, f"{table[:-1]}_query")
    return source_of(Input(table, name, columns, query=query, format=args.format, **more))


def table_source(args: argparse.Namespace, table: Literal["operations", "events"], name: str) -> Source:
    """Return the source that OPERATIONS or EVENTS (`name`) stands for. Raise `AbeyantError` for an empty directory."""
    source = source_for(args, table, name)
    if source.describe().empty:
        raise AbeyantError(f"{name} is empty: put files there (names that begin with _ or . are ignored)")
    return source


def are_small(*sources: Source) -> bool:
    """Return whether the sources together are small enough for a JVM with few optimizations, which starts sooner."""
    sizes = [source.size(_SMALL_BYTES) for source in sources]
    return None not in sizes and sum(size or 0 for size in sizes) <= _SMALL_BYTES


def generate_java(args: argparse.Namespace, text: int) -> None:
    """Turn on Spark's code generation if the input, of `text` bytes, is large enough to repay it. --conf overrides."""
    if text > _SMALL_BYTES:
        args.conf = [*GENERATED.items(), *args.conf]


class _assignment:  # noqa: N801 - argparse shows the name of a type
    """Parser of NAME=VALUE for argparse. Returns name and value; `form` describes them in the error."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __call__(self, text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form {self._form}")
        return name.strip(), value.strip()
