"""Format figures and sizes."""

from __future__ import annotations

from lab.benchmarks.catalogue import ROWS, Row
from lab.benchmarks.measurement import Measurement

NONE = "\N{EN DASH}"  # where there is no figure


def size(count: int) -> str:
    """Return a size as text: 0, 1 k, 100 k, 1 M."""
    if count and count % 1_000_000 == 0:
        return f"{count // 1_000_000} M"
    return f"{count // 1_000} k" if count and count % 1_000 == 0 else str(count)


def shown(row: Row, figure: float) -> float:
    """Return a figure in its row's unit."""
    return figure * row.scale


def number(value: float) -> str:
    """Format a figure: two significant digits below one, three above, and no more decimals than needed."""
    magnitude = abs(value)
    if magnitude < 0.0005:
        return "0"
    if magnitude < 0.1:
        return f"{value:.3f}"
    if magnitude < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if magnitude < 100 else f"{value:,.0f}"


def median(measurement: Measurement | None) -> str:
    """Return a measurement's median as text, in its row's unit; a dash if there is no measurement."""
    if measurement is None:
        return NONE
    return number(shown(ROWS[measurement.row], measurement.median))


def ratio(one: Measurement | None, other: Measurement | None) -> str:
    """Return the ratio of two medians as text, such as 0.25x. A ratio too small to write is "<0.001x", never 0x."""
    if one is None or other is None or other.median <= 0:
        return NONE
    written = number(one.median / other.median)
    return f"{written}x" if written != "0" or one.median == 0 else "<0.001x"
