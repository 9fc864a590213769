"""Draw the figures by kind of operation: each function takes a scope and returns a figure, or None without data."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from abeyant.pages.figure import Figure
from abeyant.pages.formatting import count, duration, label
from abeyant.pages.style import EXPIRED, SHORTEST_MS, faint, wait_axis
from abeyant.pipeline.report.analysis import Analysis
from abeyant.pipeline.report.kinds import colours
from abeyant.pipeline.report.marks import incident_marks
from abeyant.pipeline.report.pending_figure import pending_figure
from abeyant.pipeline.report.small_plots import axis, layout_axis, small_plots, whole_ticks
from abeyant.pipeline.report.steps import thinned, total

PENDING_POINTS: Final = 20_000
CURVE_POINTS: Final = 4_000
"""Maximum points of all lines of a figure together, to keep the page small; each line gets an equal share."""


def pending(analysis: Analysis, scope: str) -> Figure | None:
    """Draw the operations pending over time, one row per kind, each on its own scale, and mark the incidents."""
    rows = analysis.within("pending_plot", scope)
    kinds = [kind for kind in analysis.drawn if (rows.loc[rows["kind"] == kind, "pending"] > 0).any()]
    if not kinds:
        return None
    lines = {kind: thinned(total(rows[rows["kind"] == kind]), analysis.points(PENDING_POINTS)) for kind in kinds}
    return pending_figure(lines, colours(analysis.drawn), "at once", shapes=incident_marks(analysis, scope))


def waits(analysis: Analysis, scope: str) -> Figure | None:
    """Draw how long operations waited: one histogram per kind on a logarithmic axis, in a colour per outcome."""
    rows = analysis.within("waits", scope)
    did_wait = rows[(rows["operations"] > 0) & (rows["high_ms"] > 0) & rows["kind"].isin(analysis.drawn)]
    kinds = [kind for kind in analysis.drawn if (did_wait["kind"] == kind).any()]
    if not kinds:
        return None
    figure, titles, colour = Figure(), list[str](), colours(analysis.drawn)
    edges = pd.concat([did_wait["low_ms"], did_wait["high_ms"]])
    least, most = max(float(edges[edges > 0].min()), SHORTEST_MS), float(edges.max())
    for i, kind in enumerate(kinds, start=1):
        kind_rows = did_wait[did_wait["kind"] == kind]
        for outcome in sorted(kind_rows["outcome"].unique(), key=_outcome_order):
            bins = kind_rows[kind_rows["outcome"] == outcome]
            bins = bins.groupby(["low_ms", "high_ms"], as_index=False)["operations"].sum()
            low, high = bins["low_ms"].clip(lower=least / 2), bins["high_ms"].clip(lower=least)
            edge_pairs = zip(bins["low_ms"], bins["high_ms"], strict=True)
            figure.add_bar(
                x=(low + high) / 2,
                width=high - low,
                y=bins["operations"],
                yaxis=axis("y", i),
                name=f"{label(kind)} {label(outcome)}",
                marker={"color": _outcome_colour(str(outcome), colour[kind]), "line": {"width": 0}},
                customdata=[[duration(a), duration(b)] for a, b in edge_pairs],
                hovertemplate="<b>%{y:,d}</b> after %{customdata[0]} to %{customdata[1]}",
            )
        figure.layout[layout_axis("y", i)] = {
            "rangemode": "tozero",
            "tickformat": "~s",
            **whole_ticks(kind_rows.groupby("low_ms")["operations"].sum().max()),
            "fixedrange": True,
        }
        titles.append(_waits_in_words(kind_rows))
    figure.update_layout(
        meta=small_plots(kinds, titles, colour),
        barmode="stack",
        bargap=0,
        showlegend=False,
        hovermode="x unified",
        uirevision=f"waits {scope}",
        xaxis=wait_axis(least / 2, most * 1.1, "time waited (logarithmic)")
        | {"unifiedhovertitle": {"text": "waited about %{x:,.2~r} ms"}},
    )
    return figure


def _waits_in_words(rows: pd.DataFrame) -> str:
    number = rows["operations"]
    expired = float(number[rows["outcome"] == "expired"].sum())
    unknown = float(number[rows["outcome"] == "unknown"].sum())
    text = f"<b>{label(rows['kind'].iloc[0])}</b>  {count(float(number.sum()))} waited"
    if expired:
        text += f", <b>{count(expired)} expired</b>"
    return text + (f", {count(unknown)} unknown" if unknown else "")


def timeout_curve(analysis: Analysis, scope: str) -> Figure | None:
    """Draw the share that would have expired at each time-out T: one row per kind, with its confidence band."""
    rows = analysis.within("timeout_curve", scope)
    rows = rows[rows["kind"].isin(analysis.drawn)]
    timeouts = rows.loc[rows["timeout_ms"] > 0, "timeout_ms"]
    if timeouts.empty:
        return None
    low, high = max(float(timeouts.min()), SHORTEST_MS), float(timeouts.max())
    figure, kinds, colour = Figure(), list[str](), colours(analysis.drawn)
    for kind in analysis.drawn:
        curve = _from(low, rows[rows["kind"] == kind].sort_values("timeout_ms", kind="stable"))
        if curve.empty:
            continue
        kinds.append(kind)
        curve = _sparse(curve, analysis.points(CURVE_POINTS))
        _add_band(figure, curve, colour[kind], axis("y", len(kinds)))
        figure.add_scatter(
            x=curve["timeout_ms"].astype("float32"),
            y=curve["share_expiring"].astype("float32"),
            yaxis=axis("y", len(kinds)),
            name=label(kind),
            mode="lines",
            line={"shape": "hv", "width": 2, "color": colour[kind]},
            customdata=curve["at_risk"].to_numpy("int32"),
            hovertemplate="<b>%{y:.3~p}</b> would expire (%{customdata:,d} waited so long)",
        )
        figure.layout[layout_axis("y", len(kinds))] = {
            "tickformat": "~%",
            "range": [0, 1.04],
            "nticks": 4,
            "fixedrange": True,
        }
    figure.update_layout(
        meta=small_plots(kinds, [f"<b>{label(kind)}</b>" for kind in kinds], colour),
        hovermode="x unified",
        hoversubplots="axis",
        showlegend=False,
        uirevision="timeout",
        xaxis=wait_axis(low, high, "time-out T (logarithmic)")
        | {"unifiedhovertitle": {"text": "with a time-out of %{x:,.3~r} ms"}},
    )
    return figure


def _from(low: float, curve: pd.DataFrame) -> pd.DataFrame:
    """Cut a curve at the axis' lower edge `low`, with its share there; if it begins later, with a share of 1."""
    before = curve[curve["timeout_ms"] <= low].tail(1)
    if before.empty:
        before = curve.head(1).assign(share_expiring=1.0, low=1.0, high=1.0)
    return pd.concat([before.assign(timeout_ms=low), curve[curve["timeout_ms"] > low]])


def _sparse(curve: pd.DataFrame, most: int) -> pd.DataFrame:
    """Keep at most `most` rows of a curve: the first, the last, and rows evenly spaced on the logarithmic axis."""
    if len(curve) <= most:
        return curve
    steps = np.log10(curve["timeout_ms"].to_numpy())
    targets = np.linspace(steps[0], steps[-1], most)
    return curve.iloc[np.unique(np.searchsorted(steps, targets).clip(0, len(curve) - 1))]


def _add_band(figure: Figure, curve: pd.DataFrame, colour: str, axis: str) -> None:
    common: dict[str, Any] = {
        "x": curve["timeout_ms"].astype("float32"),
        "yaxis": axis,
        "mode": "lines",
        "line": {"shape": "hv", "width": 0},
        "showlegend": False,
        "hoverinfo": "skip",
    }
    if curve["low"].isna().all():
        return
    figure.add_scatter(y=curve["low"].astype("float32"), **common)
    figure.add_scatter(y=curve["high"].astype("float32"), fill="tonexty", fillcolor=faint(colour, 0.14), **common)


def _outcome_order(outcome: object) -> int:
    return {"completed": 0, "unknown": 1, "expired": 2}.get(str(outcome), 3)


def _outcome_colour(outcome: str, colour: str) -> str:
    return {"completed": colour, "expired": EXPIRED}.get(outcome, faint(colour, 0.35))
