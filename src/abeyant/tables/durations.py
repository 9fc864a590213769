"""Parse durations as people write them in a column: `15 min`, `1 h 30 min`, `2 days`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds

from abeyant.tables.defaults import SHOWN_CHARS

__all__ = ["duration_column", "parse_duration"]

_UNITS: Final = {
    **dict.fromkeys(("us", "µs", "microsecond"), 1),
    **dict.fromkeys(("ms", "millisecond"), 1_000),
    **dict.fromkeys(("s", "sec", "second"), 1_000_000),
    **dict.fromkeys(("m", "min", "minute"), 60_000_000),
    **dict.fromkeys(("h", "hour"), 3_600_000_000),
    **dict.fromkeys(("d", "day"), 86_400_000_000),
    **dict.fromkeys(("w", "week"), 604_800_000_000),
}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", re.IGNORECASE)
_MOST: Final = 2**63 - 1


def parse_duration(text: str | None) -> int | None:
    """Return a duration rounded to microseconds; None if the text is not a duration or exceeds 64 bits."""
    if text is None:
        return None
    rest, total = text.strip(), Fraction(0)
    while found := _PART.match(rest):
        unit = found[2].lower()
        factor = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if factor is None:
            return None
        total += Fraction(found[1]) * factor
        rest = rest[found.end() :]
    micros = round(total)
    return micros if not rest and text.strip() and micros <= _MOST else None


def duration_column(column: pa.Array, name: str) -> tuple[pa.Array, pa.Array]:
    """Return Arrow durations or texts in microseconds, and the reason for each row without. O(distinct texts)."""
    if kinds.is_null(column.type):
        return pa.nulls(len(column), pa.int64()), pa.nulls(len(column), pa.string())
    if kinds.is_duration(column.type):
        unit = column.type.unit
        if unit == "ns":
            return pa.compute.divide(column.cast(pa.int64()), 1000), pa.nulls(len(column), pa.string())
        try:
            return column.cast(pa.duration("us")).cast(pa.int64()), pa.nulls(len(column), pa.string())
        except pa.ArrowInvalid:
            values = [
                None if one is None else one * {"ms": 1000, "s": 10**6}[unit]
                for one in column.cast(pa.int64()).to_pylist()
            ]
            fits = [value is None or abs(value) <= _MOST for value in values]
            whole = [value if ok else None for value, ok in zip(values, fits, strict=True)]
            return pa.array(whole, pa.int64()), pa.array(
                [None if ok else f"{name} is beyond 64 bits" for ok in fits], pa.string()
            )
    encoded = column if kinds.is_dictionary(column.type) else column.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    micros = [parse_duration(text) for text in texts]
    reasons = [
        None
        if text is None or found is not None
        else f"{name} is not a duration such as '15 min': {text[:SHOWN_CHARS]}"
        for text, found in zip(texts, micros, strict=True)
    ]
    return pa.array(micros, pa.int64()).take(encoded.indices), pa.array(reasons, pa.string()).take(encoded.indices)
