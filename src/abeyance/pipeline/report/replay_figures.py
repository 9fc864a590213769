"""The figures of a replay: what tick and wheel size cost, what was pending, what other time-outs would have done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from abeyance.pages.heat import heat_map
from abeyance.pages.style import PALETTE, Figure, faint, plotly, wait_axis
from abeyance.pages.words import label, percent
from abeyance.pipeline.report.kinds import colours

__all__ = ["METRICS", "by_wheel", "pending", "what_if"]

METRICS: Final[Mapping[str, Callable[[pd.DataFrame], pd.Series[float]]]] = {
    "cascades a timer": lambda rows: rows["cascades"] / rows["timers"].clip(lower=1),
    "bucket-queue operations a timer": lambda rows: rows["bucket_operations"] / rows["timers"].clip(lower=1),
    "wake-ups a timer": lambda rows: rows["wakeups"] / rows["timers"].clip(lower=1),
    "memory of the wheels, KiB": lambda rows: rows["memory_bytes"] / 1024,
}


def by_wheel(rows: pd.DataFrame) -> str:
    """Four heat maps, tick against wheel size, of one time-out; HTML."""
    if rows.empty or not rows["timers"].any():
        return ""
    maps = []
    for name, metric in METRICS.items():
        grid = rows.assign(value=metric(rows)).pivot_table(index="tick_ms", columns="wheel_size", values="value")
        shown = grid.rename(index=lambda tick: f"{tick:g} ms", columns=lambda size: f"{size:,}")
        maps.append(heat_map(name, shown, "tick", "buckets a wheel", lambda value: f"{value:,.3g}"))
    return f'<div class="heats">{"".join(maps)}</div>'


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
        yaxis={"rangemode": "tozero", "tickformat": ",d", "title": {"text": "operations pending"}},
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
        known = mine["expired_share"].where(mine["expired_share"] == mine["expired_share_most"])
        common: dict[str, Any] = {"x": mine["timeout_ms"], "legendgroup": label(kind)}
        edge = {"mode": "lines", "line": {"width": 1, "dash": "dot", "color": colour[kind]}}
        unseen = {"showlegend": False, "hoverinfo": "skip"}
        if known.isna().any():
            figure.add_scatter(y=mine["expired_share"], **common, **edge, **unseen)
            figure.add_scatter(
                y=mine["expired_share_most"], fill="tonexty", fillcolor=faint(colour[kind], 0.18),
                **common, **edge, **unseen,
            )  # fmt: skip
        # A line where the share is known; where it is not, only the band says where it lies.
        figure.add_scatter(
            y=known,
            name=label(kind),
            mode="lines+markers",
            line={"width": 2, "color": colour[kind]},
            hoverinfo="skip",
            **common,
        )
        figure.add_scatter(
            y=mine["expired_share"],
            name=label(kind),
            mode="markers",
            marker={"opacity": 0, "color": colour[kind]},
            showlegend=False,
            text=[
                f"<b>{_shares(row)}</b> of {row['operations']:,}"
                for row in mine[["expired_share", "expired_share_most", "operations"]].to_dict("records")
            ],
            hovertemplate="%{text}",
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
        yaxis={"title": {"text": "share that expires (%)"}, "tickformat": "~%", "range": [0, 1.02]},
    )
    return figure


def _shares(row: Mapping[Any, Any]) -> str:
    least, most = percent(row["expired_share"]), percent(row["expired_share_most"])
    return least if least == most else f"{least} to {most}"
