"""Format numbers and names for people: separators, units, and escaping of text that a log could inject."""

from __future__ import annotations

import html
import math
import unicodedata
from typing import Final

UNKNOWN: Final = "\N{EN DASH}"
_LONGEST_LABEL = 60
_LEAST_MS = 0.1  # shorter durations are in microseconds
_MOST_TICKS = 25  # the most that fit on an axis of a page of 400 px
_SECOND, _MINUTE, _HOUR, _DAY = 1_000.0, 60_000.0, 3_600_000.0, 86_400_000.0
_BELOW_MINUTE = [10.0**power for power in range(-3, 5)]
_DECADES = [*_BELOW_MINUTE, _MINUTE, 10 * _MINUTE, _HOUR, 10 * _HOUR, *(_DAY * 10.0**power for power in range(5))]
_HALF_DECADES = sorted([*_DECADES, *(3 * step for step in [*_BELOW_MINUTE, _MINUTE, 10 * _MINUTE, _HOUR])])
_THIRD_DECADES = sorted(
    [*_DECADES, *(n * step for n in (2, 3, 5, 7) for step in [*_BELOW_MINUTE[:-1], _MINUTE])]
    + [n * 10 * _SECOND for n in (2, 3, 4, 5)]
)


def count(number: float) -> str:
    """Return a whole number with thousands separators."""
    return UNKNOWN if math.isnan(number) else f"{round(number):,}"


def counted(number: float, one: str, many: str | None = None) -> str:
    """Return a count with its noun: '1 request', '2 requests'."""
    return f"{count(number)} {one if round(number) == 1 else many or one + 's'}"


def without_value(reason: str) -> str:
    """Return the reason of a rejected row or line, without the value after the colon, which may differ per row."""
    return reason.partition(": ")[0]


def percent(share: float) -> str:
    """Return a share as a percentage. Never rounds a positive share to 0 %, nor one below 1 to 100 %."""
    if math.isnan(share):
        return UNKNOWN
    if share in (0, 1):
        return f"{share * 100:.0f}\N{NO-BREAK SPACE}%"
    if share < 0.0001:
        return "< 0.01\N{NO-BREAK SPACE}%"
    if share > 0.9999:
        return "> 99.99\N{NO-BREAK SPACE}%"
    digits = 2 if share < 0.01 or share > 0.99 else 1
    return f"{share * 100:.{digits}f}\N{NO-BREAK SPACE}%".replace(".0\N{NO-BREAK SPACE}%", "\N{NO-BREAK SPACE}%")


def duration(ms: float) -> str:
    """Return milliseconds in a readable unit, with three digits."""
    if math.isnan(ms):
        return UNKNOWN
    if 0 < ms < _LEAST_MS:
        return f"{_three(ms * 1_000)}\N{NO-BREAK SPACE}µs"
    if ms < 999.5:
        return f"{_three(ms)}\N{NO-BREAK SPACE}ms"
    seconds = ms / 1_000
    if seconds < 59.95:
        return f"{_three(seconds)}\N{NO-BREAK SPACE}s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h" if hours else f"{days:,} d"


def _three(number: float) -> str:
    digits = 0 if number >= 100 else 1 if number >= 10 else 2
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def tick_values(low: float, high: float) -> tuple[list[float], list[str]]:
    """Return the ticks of a logarithmic axis from `low` to `high`, in milliseconds, and their labels."""
    for steps in (_DECADES, _HALF_DECADES, _THIRD_DECADES):
        values = [step for step in steps if low <= step <= high]
        if len(values) >= 4:
            break
    near = (high / low) ** (1 / _MOST_TICKS)  # with many decades, 10 h and 24 h would overlap
    values = [value for value, after in zip(values, [*values[1:], math.inf], strict=True) if after / value >= near]
    return values, [duration(value) for value in values]


def visible(text: object) -> str:
    """Return text from a log with control and direction-changing characters replaced by U+FFFD, tabs by spaces."""
    line = str(text).replace("\t", " ")
    if line.isprintable():
        return line
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else c for c in line
    )


def operation_name(instance: str, op_id: str, kind: str | None) -> str:
    """Return an operation's name as lists show it: `instance/id (kind)`, without the parts that are empty."""
    return "/".join(part for part in (instance, op_id) if part) + (f" ({kind})" if kind else "")


def shortened(text: object, longest: int = _LONGEST_LABEL) -> str:
    """Return visible text, shortened in the middle, since names differ at their start or end. Quote blank text."""
    printable = visible(text)
    if not printable.strip():
        printable = f'"{printable}"'
    if len(printable) <= longest:
        return printable
    head = (longest - 1) * 2 // 3
    return f"{printable[:head]}…{printable[head + 1 - longest :]}"


def escaped(text: object) -> str:
    """Return visible text that is safe in HTML, between tags and in attributes."""
    return html.escape(visible(text), quote=True)


def label(text: object) -> str:
    """Return a short label for a plot, escaped for plotly, which interprets tags, entities and templates.

    Isolates names in a right-to-left script, so that they do not reorder the words around them.
    """
    short = shortened(text)
    if any(unicodedata.bidirectional(c) in {"R", "AL", "AN"} for c in short):
        short = f"\N{FIRST STRONG ISOLATE}{short}\N{POP DIRECTIONAL ISOLATE}"
    return html.escape(short, quote=False).replace("%{", "%&#123;")
