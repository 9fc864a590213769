"""The page that compares the replication model's predictions with Kafka's logs: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from abeyant.pages.document import document, write_whole
from abeyant.pages.figure import Figure
from abeyant.pages.formatting import count, counted, duration, escaped, percent
from abeyant.pages.style import EXPIRED, PALETTE, faint, wait_axis
from abeyant.pages.tables import Columns, nothing, table
from abeyant.pages.tiles import Tile, tiles
from abeyant.pipeline.replication import explanations as because
from abeyant.pipeline.replication.explanations import BIN_MS, CLOCK_MS, EDGE_MS
from abeyant.pipeline.report.parts import made, plot_place, read_table, section
from abeyant.pipeline.report.small_plots import axis, layout_axis, small_plots, whole_ticks
from abeyant.pipeline.report.tables import name_cell
from abeyant.pipeline.results.directory import read_marker

__all__ = ["model_tiles", "write_model_report"]

_LEAST_MS: Final = 0.1
"""Lower end of the axes of waits, in ms."""

MINUS: Final = "\N{MINUS SIGN}"
_COLOURS: Final = {
    because.CLOCK: PALETTE[0],
    because.HANDLING: PALETTE[1],
    because.IN_SYNC: PALETTE[3],
    because.EXPIRY: PALETTE[5],
    because.UNEXPLAINED: EXPIRED,
    because.LOG_ENDS: PALETTE[7],
    because.OUTCOME: PALETTE[6],
}


def write_model_report(tables: Path, destination: Path) -> None:
    """Write the page of the comparison whose tables are in the directory `tables`; readers never see a partial file."""
    explanations = read_table(tables, "explanations").sort_values("produces", ascending=False)
    errors, agreement = read_table(tables, "errors"), read_table(tables, "agreement")
    total = int(explanations["produces"].sum())
    text = document(
        kicker="Abeyant · a model checked against Kafka",
        title=f"{counted(total, 'produce')} with acks=all, predicted from the replicas' fetches",
        own_title=read_marker(tables).get("title"),
        tiles=tiles(model_tiles(explanations)),
        lead=plot_place("plot-agreement", "Predicted against logged", _NOTHING)
        + f'<p class="read">{_READ["agreement"]}</p>',
        findings=_findings(explanations, total),
        sections="\n".join(
            [
                section("How far off", _READ["errors"], plot="plot-errors", nothing=_NOTHING),
                section("Where it comes from", _READ["explanations"], tables=[_explanations(explanations, total)]),
                section("The worst", _READ["outliers"], tables=[_outliers(read_table(tables, "outliers"))]),
            ]
        ),
        made=made(tables),
        figures={"plot-agreement": {"0": _agreement(agreement)}, "plot-errors": {"0": _errors(errors)}},
    )
    write_whole(text, destination)


_NOTHING: Final = "The logs hold no produce with acks=all that was appended."

_READ: Final = {
    "agreement": "Each dot groups waits: x as Kafka logged them, y as predicted by the rebuilt high watermark. "
    "Its size is their number. A perfect model has all of them on the diagonal. The grey band around it is "
    "the resolution of the log's clock, a millisecond. Both axes are logarithmic.",
    "errors": "Predicted less logged wait, a quarter of a millisecond a bar; the outermost bars hold all that is "
    "further off. Each explanation has a scale of its own. The grey band is what the log's own clock cannot tell "
    "apart: it has milliseconds, so two lines may be one from the truth.",
    "explanations": "<em>While the fetch was handled</em>: Kafka answered the produce within its handling of the "
    "follower's fetch, at whose end the model answers it. <em>A change of the replicas in sync</em>: the log has when "
    "the controller answered, not when the leader acted on it. <em>Expired early or late</em>: the broker's own "
    "timer was not on time. <em>The log ends first</em>: what completed the produce comes after the log's last line, "
    "so the model lets it expire. <em>Unexplained</em>: the log does not show why.",
    "outliers": "The predictions that are furthest from the log, beyond its clock.",
}


def model_tiles(explanations: pd.DataFrame) -> list[Tile]:
    """Return the tiles at the top of the page, which show its main numbers."""
    counts = explanations.groupby("explanation")["produces"].sum()
    total = int(counts.sum())
    if not total:
        return []
    within, mismatches, unexplained = (
        int(counts.get(name, 0)) for name in (because.CLOCK, because.OUTCOME, because.UNEXPLAINED)
    )
    return [
        Tile("produces", count(total), "with acks=all"),
        Tile("within the log's clock", percent(within / total), "predicted to a millisecond"),
        Tile("explained", count(total - within - mismatches - unexplained), "further off, for a stated reason"),
        Tile("unexplained", count(unexplained), percent(unexplained / total), alarm=unexplained > 0),
        Tile("another outcome", count(mismatches), "than predicted", alarm=mismatches > 0),
    ]


def _findings(explanations: pd.DataFrame, total: int) -> list[str]:
    if not total:
        return [_NOTHING]
    counts = explanations.set_index("explanation")["produces"]
    within, mismatches = int(counts.get(because.CLOCK, 0)), int(counts.get(because.OUTCOME, 0))
    unexplained = int(counts.get(because.UNEXPLAINED, 0))
    ends = (
        "Every one ended as predicted, completed or expired"
        if not mismatches
        else f"Of {count(mismatches)}, either the log or the model says that it expired, and the other does not"
    )
    return [
        f"{ends}.",
        f"{percent(within / total)} of the waits are within a millisecond of the log; {percent(unexplained / total)} "
        "are further off for a reason that the log does not show.",
    ]


def _agreement(rows: pd.DataFrame) -> Figure | None:
    if rows.empty:
        return None
    figure = Figure()
    most = max(rows["logged_ms"].max(), rows["predicted_ms"].max()) * 1.3
    across = np.geomspace(_LEAST_MS, most, 200)
    edge: dict[str, Any] = {"mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
    figure.add_scatter(x=across, y=np.maximum(across - CLOCK_MS, _LEAST_MS / 10), **edge)
    figure.add_scatter(x=across, y=across + CLOCK_MS, fill="tonexty", fillcolor=faint(PALETTE[7], 0.18), **edge)
    figure.add_scatter(
        x=[_LEAST_MS, most], y=[_LEAST_MS, most], mode="lines", showlegend=False, hoverinfo="skip",
        line={"color": "rgba(128,128,128,0.6)", "width": 1},
    )  # fmt: skip
    for outcome, colour in (("completed", PALETTE[0]), ("expired", EXPIRED)):
        group = rows[rows["logged"] == outcome].groupby(["logged_ms", "predicted_ms"])["produces"].sum().reset_index()
        figure.add_scatter(
            x=group["logged_ms"],
            y=group["predicted_ms"],
            mode="markers",
            name=outcome,
            marker={
                "color": colour,
                "opacity": 0.75,
                "size": 3 + 2.2 * group["produces"] ** 0.33,
                "line": {"width": 0},  # plotly's default outline is white, also in dark mode
            },
            customdata=group["produces"],
            hovertemplate="logged about %{x:,.2~r} ms, predicted about %{y:,.2~r} ms: %{customdata:,d}",
        )
    figure.update_layout(
        height=400,
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        hovermode="closest",
        uirevision="agreement",
        xaxis=wait_axis(_LEAST_MS, most, "wait in the log"),
        yaxis=wait_axis(_LEAST_MS, most, "wait by the model"),
    )
    return figure


def _errors(rows: pd.DataFrame) -> Figure | None:
    """Draw a histogram of errors per explanation, each on its own scale; a band marks the log clock's resolution."""
    if rows.empty:
        return None
    figure, kinds, titles = Figure(), list[str](), list[str]()
    for explanation, colour in _COLOURS.items():
        group = rows[rows["explanation"] == explanation].groupby("low_ms")["produces"].sum().reset_index()
        if group.empty:
            continue
        kinds.append(explanation)
        figure.add_bar(
            x=group["low_ms"] + BIN_MS / 2,
            y=group["produces"],
            yaxis=axis("y", len(kinds)),
            width=BIN_MS,
            name=explanation,
            marker={"color": colour, "line": {"width": 0}},
            hovertemplate="%{y:,d} at %{x:+.3~f} ms",
        )
        figure.layout[layout_axis("y", len(kinds))] = {
            "rangemode": "tozero",
            "tickformat": "~s",
            **whole_ticks(int(group["produces"].max())),
            "fixedrange": True,
        }
        titles.append(f"<b>{explanation}</b>  {counted(float(group['produces'].sum()), 'produce')}")
    reach = EDGE_MS + BIN_MS
    clock = {"type": "rect", "xref": "x", "yref": "paper", "x0": -CLOCK_MS, "x1": CLOCK_MS, "y0": 0, "y1": 1}
    figure.update_layout(
        meta=small_plots(kinds, titles, _COLOURS),
        shapes=[{**clock, "layer": "below", "line": {"width": 0}, "fillcolor": faint(PALETTE[7], 0.18)}],
        bargap=0,
        showlegend=False,
        hovermode="closest",
        uirevision="errors",
        xaxis={"title": {"text": "predicted less logged, ms"}, "range": [-reach, reach]},
    )
    return figure


def _signed(ms: float) -> str:
    return ("+" if ms >= 0 else MINUS) + duration(abs(ms))


def _explanations(rows: pd.DataFrame, total: int) -> str:
    if rows.empty:
        return nothing(_NOTHING)
    numbers: Columns = {
        "produces": ("produces", count),
        "share": ("share", percent),
        "least_ms": ("least error", _signed),
        "median_ms": ("median", _signed),
        "most_ms": ("most", _signed),
    }
    return table(rows.assign(share=rows["produces"] / total), {"explanation": ("explanation", escaped)}, numbers)


def _outliers(rows: pd.DataFrame) -> str:
    if rows.empty:
        return nothing("None is beyond the log's clock.")
    names: Columns = {
        "instance": ("instance", name_cell),
        "op_id": ("file and line", escaped),
        "start": ("start (UTC)", lambda at: escaped(f"{at:%H:%M:%S.%f}"[:-3])),
        "explanation": ("explanation", escaped),
    }
    numbers: Columns = {
        "logged_ms": ("logged", duration),
        "predicted_ms": ("predicted", duration),
        "error_ms": ("error", _signed),
        "handling_ms": ("fetch handled in", _some),
    }
    return table(rows.sort_values("error_ms", key=abs, ascending=False), names, numbers)


def _some(value: Any) -> str:
    return "" if pd.isna(value) else duration(float(value))
