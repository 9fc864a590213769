"""Parse durations as people and programs write them, in a column or a command line.

Accepted are `500ms`, `15 min`, `1 h 30 min`, `2 days`; ISO 8601 as in Java and JSON, `PT15M`, `P1DT2H`; and hours,
minutes and seconds as Python, pandas and SQL print them: `0:15:00`, `1 day, 2:00:00`, `0 days 00:45:00`. Not accepted
are months and years, which have no fixed length, and `0:15`, which may mean minutes or hours.
"""

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
    **dict.fromkeys(("h", "hr", "hour"), 3_600_000_000),
    **dict.fromkeys(("d", "day"), 86_400_000_000),
    **dict.fromkeys(("w", "week"), 604_800_000_000),
}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", re.IGNORECASE)
_NUMBER: Final = r"(\d+(?:[.,]\d+)?)"
_ISO: Final = re.compile(
    rf"P(?=[\dT])(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.IGNORECASE
)
_CLOCK: Final = re.compile(r"(?:(\d+)\s*days?,?\s+)?(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)", re.IGNORECASE)
_MOST: Final = 2**63 - 1


def exact_microseconds(text: str) -> Fraction | None:
    """Return a duration in microseconds, not rounded; None if the text is not a duration."""
    rest, total = text.strip(), Fraction(0)
    if not rest:
        return None
    for form, units in (_ISO, "wdhms"), (_CLOCK, "dhms"):
        if match := form.fullmatch(rest):
            parts = zip(match.groups(), units, strict=True)
            return sum((Fraction(part.replace(",", ".")) * _UNITS[unit] for part, unit in parts if part), total)
    while match := _PART.match(rest):
        unit = match[2].lower()
        factor = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if factor is None:
            return None
        total += Fraction(match[1]) * factor
        rest = rest[match.end() :]
    return None if rest else total


def parse_duration(text: str | None) -> int | None:
    """Return a duration rounded to microseconds; None if the text is not a duration or exceeds 64 bits."""
    exact = None if text is None else exact_microseconds(text)
    return round(exact) if exact is not None and round(exact) <= _MOST else None
