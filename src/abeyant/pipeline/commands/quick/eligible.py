"""Check from the command line whether `abeyant resolve` can run without Spark. Imports nothing heavy."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Final

from abeyant.pipeline.sources.quoted_names import text_of
from abeyant.pipeline.spark.location import is_text, is_uri

__all__ = ["NeedsSparkError", "check_eligible", "check_mapping", "column_of", "format_of", "number_of"]

_MOST_BYTES: Final = 64 << 20
_NAME: Final = re.compile(r"[A-Za-z_]\w*|`[^`]+`", re.ASCII)
_NUMBER: Final = re.compile(r"-?\d{1,9}(?:\s*\*\s*\d{1,9})*", re.ASCII)
_LARGEST: Final = 2**31 - 1  # the largest value of SQL's type `int`
_NO_COLUMNS: Final = {
    *("null", "true", "false", "current_date", "current_time", "current_timestamp", "localtimestamp", "now"),
    *("user", "current_user", "session_user", "current_catalog", "current_database", "current_schema"),
}
"""Words that SQL reads as values, unless a column has that name."""


class NeedsSparkError(Exception):
    """Raised if a command needs Spark. The message is the reason, as a clause: "--conf is given"."""


def check_eligible(args: argparse.Namespace) -> None:
    """Raise `NeedsSparkError` for options and SQL that need Spark, and for files that are not small and local."""
    for option, given in (
        ("--operation-query", args.operation_query),
        ("--event-query", args.event_query),
        ("--conf", args.conf),
        ("--master", args.master != "local[*]"),
    ):
        if given:
            raise NeedsSparkError(f"{option} is given")
    if is_uri(str(args.out)):
        raise NeedsSparkError(f"{args.out} is not a local directory")
    for name in (args.operations, args.events):
        format_of(name, args.format)
    if os.path.getsize(args.operations) + os.path.getsize(args.events) > _MOST_BYTES:
        raise NeedsSparkError(f"the files together are larger than {_MOST_BYTES >> 20} MB")
    check_mapping("operations", dict(args.operation))
    check_mapping("events", dict(args.event))


def check_mapping(table: str, columns: Mapping[str, str]) -> None:
    """Raise `NeedsSparkError` if a column is mapped to SQL that is more than a column's name or a constant."""
    for column, sql in columns.items():
        if text_of(sql) is None and number_of(sql) is None and column_of(sql) is None:
            raise NeedsSparkError(f"{table}: {column}={sql} is more than a column or a constant")


def format_of(name: str, form: str | None) -> str:
    """Return a file's format, `csv` or `parquet`: `form` if given, else by the ending of its name.

    Raises `NeedsSparkError` unless `name` is a single local file in one of these formats.
    """
    path = Path(name)
    form = form or {".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}.get(path.suffix.lower())
    if (
        not is_text(name)
        or is_uri(name)
        or not path.is_file()
        or path.name.startswith(("_", "."))
        or ":" in str(path.absolute())
    ):
        raise NeedsSparkError(f"{name} is not a single local file")
    if form not in ("csv", "parquet") or (form == "csv" and path.suffix.lower() in (".gz", ".bz2", ".zst")):
        raise NeedsSparkError(f"{name} is not a CSV or Parquet file")
    return form


def number_of(sql: str) -> int | None:
    """Return the value of SQL that is an integer or a product of integers, within SQL's type `int`; else None."""
    if not _NUMBER.fullmatch(sql):
        return None
    number = prod(map(int, sql.split("*")))
    return number if abs(number) <= _LARGEST else None


def column_of(sql: str) -> str | None:
    """Return the column's name, in lower case, if the SQL is only a column; else None."""
    return sql.strip("`").lower() if _NAME.fullmatch(sql) and sql.lower() not in _NO_COLUMNS else None
