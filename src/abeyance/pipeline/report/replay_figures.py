"""The figures of a replay: what tick and wheel size cost, what was pending, what other time-outs would have done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from abeyance.pages.style import PALETTE, Figure, faint, plotly, wait_axis
from abeyance.pages.words import duration, label
from abeyance.pipeline.report.kinds import colours

__all__ = ["METRICS", "by_wheel", "pending", "setting", "what_if"]

METRICS: Final[Mapping[str, Callable[[pd.DataFrame], pd.Series[float]]]] = {
    "cascades a timer": lambda rows: rows["cascades"] / rows["timers"].clip(lower=1),
    "bucket-queue operations a timer": lambda rows: rows["bucket_operations"] / rows["timers"].clip(lower=1),
    "wake-ups a timer": lambda rows: rows["wakeups"] / rows["timers"].clip(lower=1),
    "memory of the wheels, KiB": lambda rows: rows["memory_bytes"] / 1024,
}


def setting(timeout_ms: float) -> str:
    """Return a time-out in words."""
    return "own time-outs" if pd.isna(timeout_ms) else f"time-out {duration(float(timeout_ms))}"


def by_wheel(rows: pd.DataFrame) -> Figure | None:
    """Four heat maps, tick against wheel size, of one time-out."""
    if rows.empty or not rows["timers"].any():
        return None
    go = plotly("graph_objects")
    figure, titles = go.Figure(), list[dict[str, Any]]()
    for number, (name, metric) in enumerate(METRICS.items()):
        down, right = divmod(number, 2)
        index = "" if number == 0 else str(number + 1)
        left, top = 0.54 * right, 1 - 0.54 * down
        grid = rows.assign(value=metric(rows)).pivot_table(index="tick_ms", columns="wheel_size", values="value")
        figure.add_heatmap(
            z=grid.to_numpy(),
            x=[f"{size:,}" for size in grid.columns],
            y=[f"{tick:g} ms" for tick in grid.index],
            xaxis=f"x{index}",
            yaxis=f"y{index}",
            colorscale=[[0, faint(PALETTE[0], 0.08)], [1, PALETTE[0]]],
            showscale=False,
            text=[[f"{value:,.3g}" for value in line] for line in grid.to_numpy()],
            texttemplate="%{text}",
            xgap=2,
            ygap=2,
            hovertemplate=f"tick %{{y}}, %{{x}} buckets a wheel<br>%{{z:.4~g}} {name}<extra></extra>",
        )
        below = {"title": {"text": "buckets a wheel"}} if down else {}
        figure.layout[f"xaxis{index}"] = {
            "domain": [left, left + 0.46], "anchor": f"y{index}", "type": "category", "showgrid": False, **below,
        }  # fmt: skip
        figure.layout[f"yaxis{index}"] = {
            "domain": [top - 0.4, top - 0.06], "anchor": f"x{index}", "type": "category", "showgrid": False,
        }  # fmt: skip
        titles.append(
            {
                "text": f"<b>{name}</b>",
                "x": left,
                "y": top - 0.05,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 12},
            }
        )
    figure.update_layout(height=440, annotations=titles, showlegend=False, uirevision="wheel")
    return figure


def pending(lines: Sequence[tuple[str, pd.DataFrame]]) -> Figure | None:
    """Operations pending over time: named lines, all on one scale."""
    if not lines:
        return None
    figure = plotly("graph_objects").Figure()
    for number, (name, rows) in enumerate(lines):
        steps = rows.sort_values("at")
        figure.add_scatter(
            x=steps["at"],
            y=steps["pending"],
            name=label(name),
            mode="lines",
            line={"shape": "hv", "width": 1.25, "color": PALETTE[number % len(PALETTE)]},
            hovertemplate="%{y:,d} pending",
        )
    figure.update_layout(
        height=360,
        hovermode="x unified",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        uirevision="pending",
        xaxis={"type": "date", "title": {"text": "time (UTC)"}},
        yaxis={"rangemode": "tozero", "tickformat": ",d", "title": {"text": "pending"}},
    )
    return figure


def what_if(rows: pd.DataFrame, kinds: list[str]) -> Figure | None:
    """The share that expires under each time-out, by kind; a band where the log leaves it open."""
    rows = rows[rows["kind"].isin(kinds) & (rows["timeout_ms"] > 0)]
    if rows.empty:
        return None
    figure, colour = plotly("graph_objects").Figure(), colours(kinds)
    for kind in kinds:
        mine = rows[rows["kind"] == kind].sort_values("timeout_ms")
        common: dict[str, Any] = {"x": mine["timeout_ms"], "legendgroup": label(kind), "mode": "lines+markers"}
        invisible = {"width": 0}
        hidden = {"mode": "lines", "line": invisible, "showlegend": False, "hoverinfo": "skip"}
        figure.add_scatter(y=mine["expired_share"], **common | hidden)
        figure.add_scatter(
            y=mine["expired_share_most"], fill="tonexty", fillcolor=faint(colour[kind], 0.18), **common | hidden
        )
        figure.add_scatter(
            y=mine["expired_share"],
            name=label(kind),
            line={"width": 2, "color": colour[kind]},
            customdata=mine[["expired_share_most", "operations"]],
            hovertemplate="<b>%{y:.3~p}</b> to %{customdata[0]:.3~p} of %{customdata[1]:,d}",
            **common,
        )
    low, high = float(rows["timeout_ms"].min()), float(rows["timeout_ms"].max())
    figure.update_layout(
        height=400,
        hovermode="x unified",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        uirevision="what-if",
        xaxis=wait_axis(low * 0.9, high * 1.1, "time-out (logarithmic)")
        | {"unifiedhovertitle": {"text": "with a time-out of %{x:,.3~r} ms"}},
        yaxis={"title": {"text": "share that expires"}, "tickformat": "~%", "range": [0, 1.02]},
    )
    return figure
