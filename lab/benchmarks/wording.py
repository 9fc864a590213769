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
    """Two significant digits below one, three above, and no more decimals than that needs."""
    magnitude = abs(value)
    if magnitude < 0.0005:
        return "0"
    if magnitude < 0.1:
        return f"{value:.3f}"
    if magnitude < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if magnitude < 100 else f"{value:,.0f}"


def median(measurement: Measurement | None) -> str:
    """A measurement's median, in its row's unit; a dash where there is none."""
    if measurement is None:
        return NONE
    return number(shown(ROWS[measurement.row], measurement.median))


def ratio(one: Measurement | None, other: Measurement | None) -> str:
    """One median over another's, as in 0.25x. Never 0x: what is too small to write is below the smallest ratio."""
    if one is None or other is None or other.median <= 0:
        return NONE
    written = number(one.median / other.median)
    return f"{written}x" if written != "0" or one.median == 0 else "<0.001x"
