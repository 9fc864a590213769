"""The figure of pending operations over time, for analyses and replays: one row per line on one time axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from abeyant.pages.figure import Figure
from abeyant.pages.formatting import count, label
from abeyant.pages.style import faint
from abeyant.pipeline.report.small_plots import axis, layout_axis, milliseconds, small_plots, whole_ticks

__all__ = ["pending_figure"]


def pending_figure(lines: Mapping[str, pd.DataFrame], colour: Mapping[str, str], at_once: str, **layout: Any) -> Figure:
    """Return the figure. Each line has columns `at` and `pending`, already thinned, and gets its own scale.

    `at_once` is text that ends each row's title, after the maximum number pending; `layout` is added to the layout.
    """
    figure, titles = Figure(), list[str]()
    for number, (name, steps) in enumerate(lines.items(), start=1):
        highest = int(steps["pending"].max())
        figure.add_scatter(
            x=milliseconds(steps["at"]),
            y=steps["pending"].to_numpy("int32"),
            yaxis=axis("y", number),
            name=label(name),
            mode="lines",
            line={"shape": "hv", "width": 1.25, "color": colour[name]},
            fill="tozeroy",
            fillcolor=faint(colour[name], 0.16),
            hovertemplate="%{y:,d} pending",
        )
        figure.layout[layout_axis("y", number)] = {
            "rangemode": "tozero",
            "tickformat": ",d",
            **whole_ticks(highest),
            "range": [0, highest * 1.08],
            "fixedrange": True,
        }
        titles.append(f"<b>{label(name)}</b>  at most {count(highest)} {at_once}")
    figure.update_layout(
        meta=small_plots(list(lines), titles, dict(colour)),
        hovermode="x unified",
        hoversubplots="axis",
        showlegend=False,
        uirevision="pending",
        xaxis={"type": "date", "title": {"text": "time (UTC)"}},
        **layout,
    )
    return figure
