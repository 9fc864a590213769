"""Convert texts in common forms to times, integers and durations, as Spark does; give reasons for rejected rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.commands.quick.eligible import NeedsSparkError
from abeyant.tables.defaults import SHOWN_CHARS, unreadable_reason
from abeyant.tables.durations import parse_duration
from abeyant.tables.schemas import is_whole

__all__ = ["converted"]

_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-](?:0\d|1[0-3]):[0-5]\d)?)?", re.ASCII
)
_NO_TIME: Final = re.compile(r"\D*|[+-]?\d+|\d+:.*", re.ASCII)
"""Texts that Spark does not read as times either: words, plain numbers, times of day."""
_INTEGER: Final = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def converted(column: pa.ChunkedArray, name: str, kind: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray | None]:
    """Return a column converted to `kind` (see `tables.schemas`), and a column of reasons why rows are rejected.

    A reason is null where a row is not rejected; the column of reasons is None if no row is rejected.

    Raises `NeedsSparkError` for a type or a text that only Spark can convert. O(distinct texts), in Python.
    """
    source_type = column.type
    if pa.types.is_dictionary(source_type):
        column, source_type = column.cast(source_type.value_type), source_type.value_type
    if pa.types.is_string(source_type) or pa.types.is_large_string(source_type):
        if kind == "text":
            return column.cast(pa.string()), None
        target_type, parse, type_name = _KINDS[kind]
        return _parsed(column, target_type, parse, lambda text: unreadable_reason(name, type_name, text))
    if kind == "text" and is_whole(source_type):
        return column.cast(pa.string()), None
    if kind == "an integer" and pa.types.is_signed_integer(source_type):
        return column.cast(pa.int64()), None
    if pa.types.is_timestamp(source_type) and kind == "a timestamp":
        if source_type.unit == "ns":
            column = pc.floor_temporal(column, unit="microsecond")
        return column.cast(pa.timestamp("us", source_type.tz)).cast(pa.timestamp("us", "UTC")), None
    if pa.types.is_date32(source_type) and kind == "a timestamp":
        return column.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")), None
    raise NeedsSparkError(f"only Spark converts the type {source_type} of the column {name}")


def _parsed(
    column: pa.ChunkedArray, target_type: pa.DataType, parse: Callable[[str], Any], explain: Callable[[str], str]
) -> tuple[pa.ChunkedArray, pa.ChunkedArray | None]:
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    values = [parse(text) for text in texts]
    reasons = [explain(text) if value is None else None for text, value in zip(texts, values, strict=True)]
    array = pa.array(values, pa.int64()).cast(target_type).take(encoded.indices)
    row_reasons = None
    if any(reasons):
        row_reasons = pa.chunked_array([pa.array(reasons, pa.string()).take(encoded.indices)])
    return pa.chunked_array([array]), row_reasons


def _time(text: str) -> int | None:
    """Return microseconds since 1970; None if the text is no time. Raise NeedsSparkError if only Spark can tell."""
    match = _TIME.fullmatch(text)
    if match is None:
        if _NO_TIME.fullmatch(text):
            return None
        raise NeedsSparkError(f"only Spark can tell whether {text[:SHOWN_CHARS]!r} is a time")
    day, hours, zone = match.groups()
    try:
        time = datetime.fromisoformat(f"{day}T{hours or '00:00'}{zone or 'Z'}")
    except ValueError:  # such as February 30
        return None
    since = time - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _integer(text: str) -> int | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    if re.fullmatch(r"\s.*|.*\s|[+-]?\d+", text, re.DOTALL):
        raise NeedsSparkError(f"only Spark can tell whether {text[:SHOWN_CHARS]!r} is a whole number")
    return None


_KINDS: Final[dict[str, tuple[pa.DataType, Callable[[str], int | None], str]]] = {
    "a timestamp": (pa.timestamp("us", "UTC"), _time, "timestamp"),
    "an integer": (pa.int64(), _integer, "bigint"),
    "a duration or text": (pa.duration("us"), parse_duration, "duration"),
}
