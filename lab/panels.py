"""Helpers that the plots of experiments share: small plots in rows of two, axes, lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from typing import Any, Final, NamedTuple

from abeyant.pages.figure import Figure
from abeyant.pages.formatting import duration
from lab.look import ORDER, line, title
from lab.run import Run

LOG: Final = {"type": "log", "tickformat": ",.3~r", "dtick": "D2"}
TEN_DAYS: Final = 10 * 86_400_000.0
_MARKS: Final = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, TEN_DAYS)
RATE: Final = {"type": "log", "tickformat": "~s", "dtick": "D2"}
NANOSECONDS: Final = {"type": "log", "tickformat": "~s", "range": [1.5, 3.5], "dtick": 1}
"""The y axis of costs in ns. It cuts off O(n) costs at the top, so that tens of nanoseconds can be told apart."""


_MOST_TICKS: Final = 6


class Panel(NamedTuple):
    """One of the small plots of a figure: its title, columns, unit and y axis."""

    title: str
    x: str
    y: str
    unit: str
    upright: dict[str, Any]


def line_a_design(run: Run) -> Callable[[Figure, Panel, dict[str, str], bool], None]:
    """Return a function that draws a panel with a line for each design."""

    def draw(figure: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for design in in_order(run):
            cells = run.of(design).sort_values(panel.x)
            figure.add_scatter(
                x=cells[panel.x], y=cells[panel.y].where(cells[panel.y] > 0), name=title(design), legendgroup=design,
                showlegend=first, mode="lines+markers", line=line(design), marker={"size": 4},
                hovertemplate=hover_words(title(design), panel.unit, "%{x:,.3~g}"), **axes,
            )  # fmt: skip

    return draw


def figure_of(
    panels: Sequence[Panel],
    draw: Callable[[Figure, Panel, dict[str, str], bool], None],
    below: str,
    *,
    rows: int,
    across: dict[str, Any],
) -> Figure:
    """Return a figure of small plots in rows of two, with one legend below them."""
    figure = Figure()
    gap, row = 66 if rows > 1 else 44, 236
    inner = rows * (row + gap) + 30
    titles = []
    for number, panel in enumerate(panels):
        down, right = divmod(number, 2)
        top = 1 - (down * (row + gap) + gap - 18) / inner
        bottom = top - row / inner
        left = 0.55 if right else 0.0
        index = "" if number == 0 else str(number + 1)
        figure.layout[f"xaxis{index}"] = {
            "domain": [left, left + 0.45], "anchor": f"y{index}", **across,
            "title": {"text": below, "standoff": 4}, "showgrid": False,
        }  # fmt: skip
        figure.layout[f"yaxis{index}"] = {
            "domain": [bottom, top], "anchor": f"x{index}", "tickformat": "~s",
            "title": {"text": panel.unit}, **panel.upright,
        }  # fmt: skip
        draw(figure, panel, {"xaxis": f"x{index}", "yaxis": f"y{index}"}, number == 0)
        _widen(figure, index)
        titles.append(_title(panel.title, left, top))
    figure.update_layout(
        height=inner + 70,
        showlegend=True,
        legend={"orientation": "h", "y": -0.1 if rows > 1 else -0.19, "yanchor": "top", "x": 0},
        hovermode="closest",
        uirevision="lab",
        meta={"panels": len(panels), "rowPixels": row, "gapPixels": gap},
    )
    for words in titles:
        figure.add_annotation(**words)
    return figure


def _widen(figure: Figure, index: str) -> None:
    """If all values of a logarithmic panel are close together, widen its axis enough for a tick at 1, 2 or 5."""
    axis = figure.layout[f"yaxis{index}"]
    if axis.get("type") != "log" or "range" in axis:
        return
    traces = [trace for trace in figure.data if trace["yaxis"] == f"y{index}"]
    values = [value for trace in traces for value in trace["y"] if value is not None and value > 0]
    if values and max(values) < 3 * min(values):
        middle = log10(min(values) * max(values)) / 2
        axis["range"] = [middle - log10(2), middle + log10(2)]


def durations_axis(low: float, high: float) -> dict[str, Any]:
    """Return a logarithmic axis of milliseconds, labelled in readable units."""
    values = [value for value in _MARKS if low <= value <= high]
    return {
        "type": "log",
        "tickvals": values,
        "ticktext": [duration(value) for value in values],
        "range": [log10(low), log10(high)],
    }


def measured_axis(values: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis with ticks at the measured values; if there are many, at some of them."""
    shown = values[:: -(-len(values) // _MOST_TICKS) or 1]
    return {"type": "log", "tickvals": list(shown), "ticktext": [_short(value) for value in shown]}


def percent(share: float) -> str:
    """Return a share in percent as text, without an exponent however small it is."""
    return f"{100 * share:.6f}".rstrip("0").rstrip(".") + " %"


def _short(value: float) -> str:
    """Return a number in few characters, for an axis: 500, 2k, 1M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def hover_words(words: str, unit: str, where: str) -> str:
    """Return the tooltip of a plot's point, as plotly's template."""
    return f"{words}<br>%{{y:,.3~g}} {unit} at {where}<extra></extra>"


def _title(text: str, left: float, top: float) -> dict[str, Any]:
    return {
        "text": text, "x": left, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom",
        "showarrow": False, "font": {"size": 12}, "align": "left",
    }  # fmt: skip


def tick_words(us: int) -> str:
    """Return a wheel's tick as text, in milliseconds."""
    return f"{us / 1_000:g} ms"


def in_order(run: Run) -> list[str]:
    """Return the designs that were measured, in the order of every legend."""
    designs = set(run.cells["design"])
    return [*(design for design in ORDER if design in designs), *sorted(designs.difference(ORDER))]
