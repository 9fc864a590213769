"""Parse durations as people write them, in a column or a command line: `500ms`, `15 min`, `1 h 30 min`, `2 days`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

__all__ = ["exact_microseconds", "parse_duration"]

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


def exact_microseconds(text: str) -> Fraction | None:
    """Return a duration in microseconds, not rounded; None if the text is not a duration."""
    rest, total = text.strip(), Fraction(0)
    if not rest:
        return None
    while found := _PART.match(rest):
        unit = found[2].lower()
        factor = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if factor is None:
            return None
        total += Fraction(found[1]) * factor
        rest = rest[found.end() :]
    return None if rest else total


def parse_duration(text: str | None) -> int | None:
    """Return a duration rounded to microseconds; None if the text is not a duration or exceeds 64 bits."""
    exact = None if text is None else exact_microseconds(text)
    return round(exact) if exact is not None and round(exact) <= _MOST else None
