"""The figures of a replay: costs by tick and wheel size, pending operations, and expiries by time-out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from abeyant.pages.figure import Figure
from abeyant.pages.formatting import label, percent
from abeyant.pages.heat import heat_map
from abeyant.pages.style import NEUTRAL, PALETTE, faint, wait_axis
from abeyant.pipeline.report.kinds import colours
from abeyant.pipeline.report.pending_figure import pending_figure
from abeyant.pipeline.report.replay_sentences import own_time_out
from abeyant.pipeline.report.small_plots import axis, layout_axis, small_plots
from abeyant.pipeline.report.steps import thinned

__all__ = ["METRICS", "by_wheel", "pending", "what_if"]

METRICS: Final[Mapping[str, Callable[[pd.DataFrame], pd.Series[float]]]] = {
    "cascades a timer": lambda rows: rows["cascades"] / rows["timers"].clip(lower=1),
    "bucket-queue operations a timer": lambda rows: rows["bucket_operations"] / rows["timers"].clip(lower=1),
    "wake-ups a timer": lambda rows: rows["wakeups"] / rows["timers"].clip(lower=1),
    "memory of the wheels, KiB": lambda rows: rows["memory_bytes"] / 1024,
}
_POINTS: Final = 9_000  # of all lines of a figure together


def by_wheel(rows: pd.DataFrame) -> str:
    """Return, in HTML, four heat maps of tick against wheel size for one time-out; "" if no timer was started."""
    if rows.empty or not rows["timers"].any():
        return ""
    maps = []
    for name, metric in METRICS.items():
        grid = rows.assign(value=metric(rows)).pivot_table(index="tick_ms", columns="wheel_size", values="value")
        table = grid.rename(index=lambda tick: f"{tick:g} ms", columns=lambda size: f"{size:,}")
        maps.append(heat_map(name, table, "tick", "buckets a wheel", lambda value: f"{value:,.3g}"))
    return f'<div class="heats">{"".join(maps)}</div>'


def pending(lines: Sequence[tuple[str, pd.DataFrame]]) -> Figure | None:
    """Draw the operations pending over time: a row for each named line, all on one axis of time."""
    if not lines:
        return None
    colour = {name: PALETTE[number % len(PALETTE)] for number, (name, _) in enumerate(lines)}
    steps = {name: thinned(rows.sort_values("at"), _POINTS // len(lines)) for name, rows in lines}
    return pending_figure(steps, colour, "pending at once")


def what_if(rows: pd.DataFrame, kinds: list[str], own: pd.DataFrame) -> Figure | None:
    """Draw the share that expires by time-out: one row per kind, with a band where some outcomes are unknown.

    The median of the operations' `own` time-outs is marked.
    """
    rows = rows[rows["kind"].isin(kinds) & (rows["timeout_ms"] > 0)]
    if rows.empty:
        return None
    figure, colour = Figure(), colours(kinds)
    kinds = [kind for kind in kinds if (rows["kind"] == kind).any()]
    for number, kind in enumerate(kinds, start=1):
        kind_rows = rows[rows["kind"] == kind].sort_values("timeout_ms")
        known = kind_rows["expired_share"].where(kind_rows["expired_share"] == kind_rows["expired_share_most"])
        common: dict[str, Any] = {"x": kind_rows["timeout_ms"], "yaxis": axis("y", number), "showlegend": False}
        edge = {"mode": "lines", "line": {"width": 1, "dash": "dot", "color": colour[kind]}}
        if known.isna().any():
            figure.add_scatter(y=kind_rows["expired_share"], hoverinfo="skip", **common, **edge)
            figure.add_scatter(
                y=kind_rows["expired_share_most"], fill="tonexty", fillcolor=faint(colour[kind], 0.18),
                hoverinfo="skip", **common, **edge,
            )  # fmt: skip
        # A line where the share is known, else only the band.
        figure.add_scatter(
            y=known,
            name=label(kind),
            mode="lines+markers",
            line={"width": 2, "color": colour[kind]},
            hoverinfo="skip",
            **common,
        )
        figure.add_scatter(
            y=kind_rows["expired_share"],
            name=label(kind),
            mode="markers",
            marker={"opacity": 0, "color": colour[kind]},
            text=[
                f"<b>{_shares(row)}</b> of {row['operations']:,}"
                for row in kind_rows[["expired_share", "expired_share_most", "operations"]].to_dict("records")
            ],
            hovertemplate="%{text}",
            **common,
        )
        figure.layout[layout_axis("y", number)] = {
            "tickformat": "~%",
            "range": [0, 1.04],
            "nticks": 4,
            "fixedrange": True,
        }
        _mark(figure, own[own["kind"] == kind]["median_ms"], axis("y", number))
    timeouts = [*rows["timeout_ms"], *own.loc[own["kind"].isin(kinds) & (own["median_ms"] > 0), "median_ms"]]
    low, high = float(min(timeouts)), float(max(timeouts))
    figure.update_layout(
        meta=small_plots(kinds, [_title(kind, own) for kind in kinds], colour),
        hovermode="x unified",
        hoversubplots="axis",
        showlegend=False,
        uirevision="what-if",
        xaxis=wait_axis(low * 0.9, high * 1.1, "time-out (logarithmic)")
        | {"unifiedhovertitle": {"text": "with a time-out of %{x:,.3~r} ms"}},
    )
    return figure


def _mark(figure: Figure, own_ms: pd.Series[float], yaxis: str) -> None:
    for timeout_ms in own_ms[own_ms > 0]:
        figure.add_scatter(
            x=[timeout_ms, timeout_ms],
            y=[0, 1],
            yaxis=yaxis,
            mode="lines",
            line={"width": 2, "dash": "dash", "color": NEUTRAL},
            hoverinfo="skip",
            showlegend=False,
        )


def _title(kind: str, own: pd.DataFrame) -> str:
    today = own_time_out(own, str(own["instance"].iloc[0]), kind, bounds=False) if len(own) else ""
    return f"<b>{label(kind)}</b>  share that expires" + (f"; today {label(today)}" if today else "")


def _shares(row: Mapping[Any, Any]) -> str:
    least, most = percent(row["expired_share"]), percent(row["expired_share_most"])
    return least if least == most else f"{least} to {most}"
