"""Refuse small local input in which a command has nothing to process, before Spark starts, which takes seconds.

Spark's job refuses other input (large, on a store, or readable only by Spark), with the same message.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from abeyant.errors import AbeyantError
from abeyant.pipeline.request_log.files import Chunk, LogFile, chunks, no_request
from abeyant.pipeline.request_log.line import KNOWN_TOPICS, ApiRequest, BadLineError, LineParser
from abeyant.pipeline.request_log.operation import read_request
from abeyant.pipeline.request_log.replication import facts
from abeyant.pipeline.request_log.requests import numbered_lines, read_requests
from abeyant.pipeline.request_log.time_zone import time_zone
from abeyant.pipeline.request_log.wrapping import may_be_request

if TYPE_CHECKING:
    import pyarrow as pa

    from abeyant.pipeline.sources.source import Input

__all__ = ["check_log", "check_outcome", "check_requests", "check_tables", "is_acks_all", "is_operation"]

_MOST_BYTES: Final = 1 << 20  # some milliseconds to read


def check_log(
    args: argparse.Namespace, files: Sequence[LogFile], counts: Callable[[ApiRequest], bool], why: str
) -> None:
    """Raise `AbeyantError(why)` if the files are small, and `counts` returns False for every request in them.

    Stops reading at the first request that counts. If no line looks like a request at all, the error says so instead.
    """
    pieces = _small_chunks(files)
    if pieces is None:
        return
    parse, any_request = LineParser(time_zone(args.timezone)).parse, False
    for piece in pieces:
        for *_, line, request in read_requests(piece, None, parse):
            any_request = any_request or may_be_request(line)
            with suppress(BadLineError):
                if isinstance(request, ApiRequest) and counts(request):
                    return
    raise AbeyantError(why if any_request else no_request(files))


def check_requests(files: Sequence[LogFile]) -> None:
    """Raise `AbeyantError` if the files are small, and no line in them looks like a request."""
    pieces = _small_chunks(files)
    if pieces is None:
        return
    lines = (line for piece in pieces for _, line in numbered_lines(piece))
    if not any(isinstance(line, bytes) and may_be_request(line) for line in lines):
        raise AbeyantError(no_request(files))


def _small_chunks(files: Sequence[LogFile]) -> list[Chunk] | None:
    """Return the chunks of the files if their total size is small, else None."""
    pieces = chunks(files)
    return pieces if sum(piece.cost for piece in pieces) <= _MOST_BYTES else None


def is_operation(request: ApiRequest) -> bool:
    """Return whether a request is an operation. Raise `BadLineError` if its body has a form that Kafka never writes."""
    *_, operated = read_request(request, KNOWN_TOPICS)
    return operated is not None


def is_acks_all(request: ApiRequest) -> bool:
    """Return whether a request is a produce request with acks=all whose records were appended.

    Raises as `is_operation` does.
    """
    return any(fact.what == "appended" and fact.timeout_ms is not None for fact in facts(request, KNOWN_TOPICS))


def check_tables(operations: Input, events: Input | None, why: str) -> None:
    """Raise `AbeyantError` if a small table lacks a column, and `AbeyantError(why)` if `operations` has no row."""
    with suppress(_LaterError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's job warns
        table = _small_table(operations)
        if events is None:
            check_outcome(operations.name, table.column_names)
        else:
            _check_columns(table, operations)
            with suppress(_LaterError):
                _check_columns(_small_table(events), events)
        if not table.num_rows:
            raise AbeyantError(why)


def check_outcome(name: str, columns: Sequence[str]) -> None:
    """Raise `AbeyantError` unless a table of operations has a column `outcome`. Called if no events are given."""
    if "outcome" not in columns:
        raise AbeyantError(f"{name} has no column 'outcome': give the table of events with --events")


class _LaterError(Exception):
    """Raised if only Spark can check a table; the check is then left to Spark's job."""


def _small_table(source: Input) -> pa.Table:
    from abeyant.pipeline.commands.quick.eligible import NeedsSparkError, format_of
    from abeyant.pipeline.commands.quick.files import read_file

    try:
        format_of(source.name, source.format)
        if source.query is not None or os.path.getsize(source.name) > _MOST_BYTES:
            raise _LaterError
        return read_file(source.name, source.format)
    except NeedsSparkError as error:
        raise _LaterError from error


def _check_columns(table: pa.Table, source: Input) -> None:
    from abeyant.pipeline.commands.quick.eligible import NeedsSparkError, check_mapping
    from abeyant.pipeline.commands.quick.tables import completed
    from abeyant.tables.schemas import EVENTS, OPERATIONS

    with suppress(NeedsSparkError):
        check_mapping(source.table, source.columns)
        completed(table, source.columns, OPERATIONS if source.table == "operations" else EVENTS, source.table)
