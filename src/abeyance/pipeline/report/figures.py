"""The figures by kind, one function each: a scope in, a plotly figure out, or None where there is nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd

from abeyance.pages.style import EXPIRED, SHORTEST_MS, Figure, faint, plotly, row_title, rows_of, wait_axis
from abeyance.pages.words import count, duration, label
from abeyance.pipeline.report.analysis import Analysis
from abeyance.pipeline.report.kinds import colours
from abeyance.pipeline.report.steps import total


def pending(analysis: Analysis, scope: str) -> Figure | None:
    """Operations pending over time: one row a kind, each on its own scale, all on one axis of time."""
    rows = analysis.within("pending_plot", scope)
    kinds = [kind for kind in analysis.drawn if (rows.loc[rows["kind"] == kind, "pending"] > 0).any()]
    if not kinds:
        return None
    go, colour = plotly("graph_objects"), colours(analysis.drawn)
    domains, inner = rows_of(kinds, gap_px=28, row_px=84)
    figure, titles = go.Figure(), list[dict[str, Any]]()
    for i, (kind, domain) in enumerate(zip(kinds, domains, strict=True), start=1):
        steps = total(rows[rows["kind"] == kind])
        highest = int(steps["pending"].max())
        figure.add_scatter(
            x=steps["at"],
            y=steps["pending"],
            yaxis=_axis("y", i),
            name=label(kind),
            mode="lines",
            line={"shape": "hv", "width": 1.25, "color": colour[kind]},
            fill="tozeroy",
            fillcolor=faint(colour[kind], 0.16),
            hovertemplate="%{y:,d} pending",
        )
        figure.layout[_layout_axis("y", i)] = {
            "domain": domain,
            "anchor": "x",
            "rangemode": "tozero",
            "tickformat": ",d",
            **_whole_ticks(highest),
            "range": [0, highest * 1.08],
            "fixedrange": True,
        }
        text = f"<b>{label(kind)}</b>  at most {count(highest)} at once"
        titles.append(row_title(text, colour[kind], domain[1]))
    figure.update_layout(
        height=inner + 60,
        annotations=titles,
        hovermode="x unified",
        hoversubplots="axis",
        showlegend=False,
        uirevision="pending",
        xaxis={"anchor": _axis("y", len(kinds)), "type": "date", "title": {"text": "time (UTC)"}},
    )
    return figure


def waits(analysis: Analysis, scope: str) -> Figure | None:
    """How long operations waited: one histogram a kind on a logarithmic axis, what expired told apart."""
    rows = analysis.within("waits", scope)
    did_wait = rows[(rows["operations"] > 0) & (rows["high_ms"] > 0) & rows["kind"].isin(analysis.drawn)]
    kinds = [kind for kind in analysis.drawn if (did_wait["kind"] == kind).any()]
    if not kinds:
        return None
    go, colour = plotly("graph_objects"), colours(analysis.drawn)
    domains, inner = rows_of(kinds, gap_px=28, row_px=84)
    figure, titles = go.Figure(), list[dict[str, Any]]()
    edges = pd.concat([did_wait["low_ms"], did_wait["high_ms"]])
    least, most = max(float(edges[edges > 0].min()), SHORTEST_MS), float(edges.max())
    for i, (kind, domain) in enumerate(zip(kinds, domains, strict=True), start=1):
        mine = did_wait[did_wait["kind"] == kind]
        for outcome in sorted(mine["outcome"].unique(), key=_outcome_order):
            bins = mine[mine["outcome"] == outcome]
            bins = bins.groupby(["low_ms", "high_ms"], as_index=False)["operations"].sum()
            low, high = bins["low_ms"].clip(lower=least / 2), bins["high_ms"].clip(lower=least)
            edges_said = zip(bins["low_ms"], bins["high_ms"], strict=True)
            figure.add_bar(
                x=(low + high) / 2,
                width=high - low,
                y=bins["operations"],
                yaxis=_axis("y", i),
                name=f"{label(kind)} {label(outcome)}",
                marker={"color": _outcome_colour(str(outcome), colour[kind]), "line": {"width": 0}},
                customdata=[[duration(a), duration(b)] for a, b in edges_said],
                hovertemplate="<b>%{y:,d}</b> after %{customdata[0]} to %{customdata[1]}",
            )
        figure.layout[_layout_axis("y", i)] = {
            "domain": domain,
            "anchor": "x",
            "rangemode": "tozero",
            "tickformat": "~s",
            **_whole_ticks(mine.groupby("low_ms")["operations"].sum().max()),
            "fixedrange": True,
        }
        titles.append(row_title(_waits_in_words(mine), colour[kind], domain[1]))
    figure.update_layout(
        height=inner + 60,
        annotations=titles,
        barmode="stack",
        bargap=0,
        showlegend=False,
        hovermode="x unified",
        uirevision=f"waits {scope}",
        xaxis=wait_axis(least / 2, most * 1.1, "time waited (logarithmic)")
        | {"anchor": _axis("y", len(kinds)), "unifiedhovertitle": {"text": "waited about %{x:,.2~r} ms"}},
    )
    return figure


def _waits_in_words(waited: pd.DataFrame) -> str:
    number = waited["operations"]
    expired = float(number[waited["outcome"] == "expired"].sum())
    unknown = float(number[waited["outcome"] == "unknown"].sum())
    text = f"<b>{label(waited['kind'].iloc[0])}</b>  {count(float(number.sum()))} waited"
    if expired:
        text += f", <span style='color:{EXPIRED}'>{count(expired)} expired</span>"
    return text + (f", {count(unknown)} unknown" if unknown else "")


def timeout_curve(analysis: Analysis, scope: str) -> Figure | None:
    """What share would have expired had the time-out been T, by kind, with its band where there is one."""
    rows = analysis.within("timeout_curve", scope)
    rows = rows[rows["kind"].isin(analysis.drawn)]
    later = rows.loc[rows["timeout_ms"] > 0, "timeout_ms"]
    if later.empty:
        return None
    low, high = max(float(later.min()), SHORTEST_MS), float(later.max())
    go, colour = plotly("graph_objects"), colours(analysis.drawn)
    figure = go.Figure()
    for kind in analysis.drawn:
        curve = _from(low, rows[rows["kind"] == kind].sort_values("timeout_ms", kind="stable"))
        if curve.empty:
            continue
        _add_band(figure, curve, colour[kind], kind)
        figure.add_scatter(
            x=curve["timeout_ms"],
            y=curve["share_expiring"].astype("float32"),
            name=label(kind),
            legendgroup=label(kind),
            mode="lines",
            line={"shape": "hv", "width": 2, "color": colour[kind]},
            customdata=curve["at_risk"],
            hovertemplate="<b>%{y:.3~p}</b> would expire (%{customdata:,d} waited so long)",
        )
    figure.update_layout(
        height=420,
        hovermode="x unified",
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        showlegend=True,
        uirevision="timeout",
        xaxis=wait_axis(low, high, "time-out T (logarithmic)")
        | {"unifiedhovertitle": {"text": "with a time-out of %{x:,.3~r} ms"}},
        yaxis={"title": {"text": "share that would expire"}, "tickformat": "~%", "range": [0, 1.02]},
    )
    return figure


def _from(low: float, curve: pd.DataFrame) -> pd.DataFrame:
    """Let a curve begin at the axis' edge: with what holds there, or with all, before anything completed."""
    before = curve[curve["timeout_ms"] <= low].tail(1)
    if before.empty:
        before = curve.head(1).assign(share_expiring=1.0, low=1.0, high=1.0)
    return pd.concat([before.assign(timeout_ms=low), curve[curve["timeout_ms"] > low]])


def _add_band(figure: Figure, curve: pd.DataFrame, colour: str, kind: str) -> None:
    common: dict[str, Any] = {
        "x": curve["timeout_ms"],
        "mode": "lines",
        "line": {"shape": "hv", "width": 0},
        "legendgroup": label(kind),
        "showlegend": False,
        "hoverinfo": "skip",
    }
    if curve["low"].isna().all():
        return
    figure.add_scatter(y=curve["low"].astype("float32"), **common)
    figure.add_scatter(y=curve["high"].astype("float32"), fill="tonexty", fillcolor=faint(colour, 0.14), **common)


def _whole_ticks(highest: int) -> dict[str, int]:
    """Return few ticks for an axis of counts, none between two whole numbers."""
    return {"dtick": 1} if highest < 5 else {"nticks": 4}


def _axis(letter: str, number: int) -> str:
    return letter if number == 1 else f"{letter}{number}"


def _layout_axis(letter: str, number: int) -> str:
    return f"{letter}axis" if number == 1 else f"{letter}axis{number}"


def _outcome_order(outcome: object) -> int:
    return {"completed": 0, "unknown": 1, "expired": 2}.get(str(outcome), 3)


def _outcome_colour(outcome: str, colour: str) -> str:
    return {"completed": colour, "expired": EXPIRED}.get(outcome, faint(colour, 0.35))
