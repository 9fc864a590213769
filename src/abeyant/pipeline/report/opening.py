"""The top of an analysis page: tiles, and the lag of each broker over time with the incidents marked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd

from abeyant.pages.figure import Figure
from abeyant.pages.formatting import count, counted, duration, label, shortened
from abeyant.pages.style import EXPIRED, NEUTRAL, SHORTEST_MS, faint, tick_durations
from abeyant.pages.tiles import Tile
from abeyant.pipeline.report.analysis import ALL, Analysis
from abeyant.pipeline.report.headline import polls
from abeyant.pipeline.report.marks import incident_marks
from abeyant.pipeline.report.small_plots import axis, layout_axis, milliseconds, small_plots

__all__ = ["opening_tiles", "over_time", "read_over_time"]

_MOST_ROWS: Final = 6
_ROW_PIXELS: Final = 44
_STEPS_PER_DECADE: Final = 10

_READ_LAGS: Final = (
    "For each broker, the longest time for which it had sent no fetch to a leader, as a follower; while a fetch "
    "waits at the leader it is 0. Of several leaders the longest counts. All rows have one scale."
)
_READ_WAITS: Final = (
    "No follower fetches in this log. For each instance, the longest wait of an operation that is no fetch, by the "
    "time at which it started; at most 25 % too long. All rows have one scale."
)
_READ_MARKS: Final = (
    f' Incidents are marked: <b style="color:{EXPIRED}">red</b> where operations expired, orange where all completed, '
    "late. A suspect's row is red."
)


def opening_tiles(analysis: Analysis) -> list[Tile]:
    """Return the tiles at the top of the page, which show the main numbers of the whole log."""
    requests, kinds = analysis.within("requests_by_kind", ALL), analysis.within("summary", ALL)
    total, waited = float(requests["requests"].sum()), float(requests["waited"].sum())
    matters = kinds[~polls(kinds["kind"])]
    expired, harmless = float(matters["expired"].sum()), float(kinds["expired"].sum() - matters["expired"].sum())
    tiles = [
        Tile("requests", count(total), f"{count(waited)} waited"),
        Tile(
            "expired",
            count(expired),
            "; ".join(
                filter(None, [_mostly(matters), f"besides {counted(harmless, 'long poll')}" if harmless else ""])
            ),
            alarm=expired > 0,
            link="what-waited-by-kind",
        ),
    ]
    return [*tiles, _worst_incident(analysis), *_longest_lag(analysis), *_suspect(analysis)]


def _mostly(kinds: pd.DataFrame) -> str:
    """Return the kind with most expiries, with their number if other kinds expired too, as in the headline."""
    failed = kinds[kinds["expired"] > 0].sort_values("expired", ascending=False, kind="stable")
    if failed.empty:
        return ""
    kind, number = shortened(failed["kind"].iloc[0], 24), count(float(failed["expired"].iloc[0]))
    return f"of which {number} {kind}" if len(failed) > 1 else kind


def _worst_incident(analysis: Analysis) -> Tile:
    incidents = analysis.incidents(ALL)
    if incidents.empty:
        return Tile("incidents", "none")
    order = ["expired", "operations", "longest_ms"]
    worst = incidents.sort_values(order, ascending=False, kind="stable").iloc[0]
    note = f"{shortened(worst['kind'], 24)}, {counted(worst['operations'], 'operation')}; {len(incidents):,} in all"
    return Tile("worst incident", f"{worst['first']:%H:%M:%S}", note, alarm=bool(worst["expired"]), link="incidents")


def _longest_lag(analysis: Analysis) -> Iterable[Tile]:
    lags = analysis.tables["lags"]
    if lags.empty:
        return
    # Its lags at several leaders differ by a few ms; the first leader to miss it is named.
    most = lags.sort_values(["lag_ms", "at"], ascending=[False, True], kind="stable").iloc[0]
    yield Tile("longest lag", duration(float(most["lag_ms"])), f"broker {most['replica']}, at {most['at']:%H:%M:%S}")


def _suspect(analysis: Analysis) -> Iterable[Tile]:
    """Yield a tile with the suspect of most incidents; yield no tile without incidents."""
    if analysis.incidents(ALL).empty:
        return
    rows = analysis.tables["suspects"]
    likeliest = rows.sort_values("confidence", ascending=False, kind="stable").drop_duplicates("incident")
    if likeliest.empty:
        yield Tile("suspect", "none")
        return
    counts = likeliest["suspect"].value_counts()
    confidence = likeliest.loc[likeliest["suspect"] == counts.index[0], "confidence"].max()
    incidents = counted(float(counts.iloc[0]), "incident")
    yield Tile("suspect", shortened(counts.index[0], 24), f"of {incidents}; confidence {confidence:.2f}", alarm=True)


def read_over_time(analysis: Analysis) -> str:
    """Return the figure's caption, which explains how to read it; HTML."""
    return (_READ_WAITS if analysis.tables["lags"].empty else _READ_LAGS) + _READ_MARKS


def over_time(analysis: Analysis, scope: str) -> Figure | None:
    """Draw the lag of each broker over time; without follower fetches, the longest waits of each instance."""
    lines = _lags(analysis, scope) if len(analysis.tables["lags"]) else _waits(analysis, scope)
    lines = dict(sorted(lines.items(), key=lambda line: -float(line[1]["ms"].max()))[:_MOST_ROWS])
    lines = {name: line for name, line in lines.items() if len(line)}
    if not lines:
        return None
    suspects = set(analysis.tables["suspects"]["suspect"])
    colour = {name: EXPIRED if name in suspects else NEUTRAL for name in lines}
    highest = max(max(float(line["ms"].max()) for line in lines.values()), SHORTEST_MS)
    figure, titles = Figure(), list[str]()
    for number, name in enumerate(sorted(lines), start=1):
        line = lines[name]
        figure.add_scatter(
            x=milliseconds(line["at"]),
            y=line["ms"].astype("float32"),
            yaxis=axis("y", number),
            name=label(name),
            mode="lines",
            line={"shape": "hv", "width": 1.25, "color": colour[name]},
            fill="tozeroy",
            fillcolor=faint(colour[name], 0.2),
            text=[label(f"{duration(ms)}{where}") for ms, where in zip(line["ms"], line["where"], strict=True)],
            hovertemplate="%{text}",
        )
        figure.layout[layout_axis("y", number)] = {
            **tick_durations(highest),
            "range": [0, highest * 1.08],
            "fixedrange": True,
        }
        top = line.loc[line["ms"].idxmax()]
        titles.append(
            f"<b>{label(name)}</b>  at most {duration(float(top['ms']))}{label(top['where'])}, {top['at']:%H:%M:%S}"
        )
    figure.update_layout(
        meta=small_plots(sorted(lines), titles, colour, _ROW_PIXELS, by_kind=False),
        hovermode="x unified",
        hoversubplots="axis",
        showlegend=False,
        uirevision="over-time",
        shapes=incident_marks(analysis, scope),
        xaxis={"type": "date", "title": {"text": "time (UTC)"}},
    )
    return figure


def _lags(analysis: Analysis, scope: str) -> dict[str, pd.DataFrame]:
    """Return each follower's longest lag behind any leader over time, with the leader's name in `where`."""
    rows = analysis.tables["lags"]
    rows = rows if scope == ALL else rows[rows["instance"] == scope]
    longest = rows.sort_values(["at", "lag_ms", "instance"], kind="stable").drop_duplicates(
        ["replica", "at"], keep="last"
    )
    longest = longest.assign(ms=longest["lag_ms"], where=" from " + longest["instance"].map(shortened))
    return {f"broker {replica}": group for replica, group in longest.groupby("replica")}


def _waits(analysis: Analysis, scope: str) -> dict[str, pd.DataFrame]:
    rows = analysis.tables["waits_by_time"]
    rows = rows[~polls(rows["kind"]) & rows["at"].notna()]
    if scope != ALL:
        rows = rows[rows["instance"] == scope]
    ms: Any = np.where(rows["step"].isna(), 0.0, 10.0 ** ((rows["step"].astype(float) + 1) / _STEPS_PER_DECADE))
    longest = rows.assign(ms=ms).sort_values(["at", "ms", "kind"], kind="stable")
    longest = longest.drop_duplicates(["instance", "at"], keep="last")
    longest = longest.assign(where=", " + longest["kind"].map(shortened))
    return {str(name): group for name, group in longest.groupby("instance")}
