"""The figures by key, one function each: a scope in, a plotly figure out, or None where there is nothing."""

from __future__ import annotations

from typing import Final

import pandas as pd

from abeyance.pages.style import SHORTEST_MS, Figure, faint, plotly, wait_axis
from abeyance.pages.words import count, counted, duration, label, percent
from abeyance.pipeline.report.analysis import ALL, Analysis
from abeyance.pipeline.report.kinds import colours

MOST_KEYS: Final = 5


def keys_longest(analysis: Analysis, scope: str) -> Figure | None:
    """The keys of each kind whose waits are longest: the median, the 95th percentile, the longest wait."""
    rows = analysis.keys(scope)
    top = analysis.top(rows[rows["p95_ms"] > 0], MOST_KEYS, ["p95_ms", "max_ms"])
    if top.empty:
        return None
    colour = colours(analysis.drawn)
    figure = plotly("graph_objects").Figure()
    names = _names(top, scope, analysis)
    for name, row in zip(names, top.to_dict("records"), strict=True):
        kind = str(row["kind"])
        ends = [max(float(row[column]), SHORTEST_MS) for column in ("p50_ms", "p95_ms", "max_ms")]
        hover = (
            f"<b>{name}</b><br>{label(kind)}, {counted(row['operations'], 'operation')}<br>"
            f"median {duration(row['p50_ms'])}, 95 % within {duration(row['p95_ms'])}, "
            f"longest {duration(row['max_ms'])}<br>{duration(row['total_waited_ms'])} waited in all"
        )
        figure.add_scatter(
            x=ends,
            y=[name] * 3,
            name=label(kind),
            mode="lines+markers",
            line={"color": faint(colour[kind], 0.45), "width": 5},
            marker={
                "symbol": ["line-ns-open", "circle", "line-ns-open"],
                "size": [10, 10, 8],
                "opacity": 1,
                "color": colour[kind],
                "line": {"width": 2, "color": colour[kind]},
            },
            hovertemplate=hover + "<extra></extra>",
        )
    _lay_out_keys(figure, names, f"longest {scope}")
    longest = float(top["max_ms"].max())
    shortest = max(float(top["p50_ms"].min()), SHORTEST_MS)
    figure.update_layout(xaxis=wait_axis(shortest / 1.3, longest * 1.3, "time waited (logarithmic)"))
    return figure


def keys_expired(analysis: Analysis, scope: str) -> Figure | None:
    """The keys of each kind on which most expired, with the share of each key's operations that did."""
    rows = analysis.keys(scope)
    top = analysis.top(rows[rows["expired"] > 0], MOST_KEYS, ["expired", "expired_share"])
    if top.empty:
        return None
    colour = colours(analysis.drawn)
    figure = plotly("graph_objects").Figure()
    names = _names(top, scope, analysis)
    figure.add_bar(
        x=top["expired"],
        y=names,
        orientation="h",
        width=0.28,
        marker={"color": [colour[str(kind)] for kind in top["kind"]]},
        text=[f"{count(row['expired'])} ({percent(row['expired_share'])})" for row in top.to_dict("records")],
        textposition="outside",
        textfont={"size": 12},
        constraintext="none",
        cliponaxis=False,
        customdata=[
            [label(row["kind"]), count(row["operations"]), percent(row["expired_share"])]
            for row in top.to_dict("records")
        ],
        hovertemplate="<b>%{y}</b><br>%{customdata[0]}: %{x:,d} of %{customdata[1]} expired (%{customdata[2]})"
        "<extra></extra>",
    )
    _lay_out_keys(figure, names, f"expired {scope}")
    figure.update_layout(
        xaxis={
            "title": {"text": "operations expired (and their share of the key's operations)"},
            "tickformat": ",d",
            "range": [0, float(top["expired"].max()) * 1.3],
        }
    )
    return figure


def _names(top: pd.DataFrame, scope: str, analysis: Analysis) -> list[str]:
    """Return a label for each key, no two the same: a category of plotly's axis is its text."""
    several = scope == ALL and len(analysis.instances) > 1
    names, colour = list[str](), colours(analysis.drawn)
    for row in top.to_dict("records"):
        name = f"{label(row['key'])} <span style='color:{colour[str(row['kind'])]}'>{label(row['kind'])}</span>"
        name += f" on {label(row['instance'])}" if several else ""
        while name in names:
            name += "\N{ZERO WIDTH SPACE}"
        names.append(name)
    return names


def _lay_out_keys(figure: Figure, names: list[str], revision: str) -> None:
    """Put each key's label above its bar, so that long names cost no width on a narrow screen."""
    above = {"xref": "paper", "x": 0, "xanchor": "left", "yshift": 13, "align": "left", "font": {"size": 12}}
    labels = [above | {"text": name, "y": name, "showarrow": False} for name in names]
    figure.update_layout(
        annotations=labels,
        height=34 * len(names) + 80,
        showlegend=False,
        hovermode="closest",
        uirevision=revision,
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "range": [-0.7, len(names) - 0.2],
            "showticklabels": False,
            "showgrid": False,
            "fixedrange": True,
        },
    )
