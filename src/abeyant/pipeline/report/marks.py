"""Marks of incidents in figures over time."""

from __future__ import annotations

from typing import Any

from abeyant.pages.style import EXPIRED, LONG_WAIT, faint
from abeyant.pipeline.report.analysis import Analysis
from abeyant.pipeline.report.small_plots import milliseconds

__all__ = ["incident_marks"]


def incident_marks(analysis: Analysis, scope: str) -> list[dict[str, Any]]:
    """Return the incidents of a scope as plotly shapes: bands across all rows of a figure."""
    rows = analysis.incidents(scope)
    times = zip(milliseconds(rows["first"]), milliseconds(rows["last"]), rows["expired"], strict=True)
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": first,
            "x1": last,
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "fillcolor": faint(EXPIRED if expired else LONG_WAIT, 0.13),
            "line": {"width": 1, "color": faint(EXPIRED if expired else LONG_WAIT, 0.4)},
        }
        for first, last, expired in times
    ]
