"""The page of a replay: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from abeyant.pages.document import document, write_whole
from abeyant.pages.figure import Figure
from abeyant.pages.formatting import UNKNOWN, count, counted, duration, escaped, percent, shortened
from abeyant.pages.tables import Columns, nothing, table
from abeyant.pages.tiles import Tile, tiles
from abeyant.pipeline.report import replay_figures as figures
from abeyant.pipeline.report.analysis import ALL, MOST_KINDS, MOST_SCOPES
from abeyant.pipeline.report.kinds import in_order, is_poll
from abeyant.pipeline.report.offers import read_clients, shortest_enough
from abeyant.pipeline.report.parts import made, plot_place, read_table, section
from abeyant.pipeline.report.replay_sentences import (
    KAFKAS,
    SETTING,
    band,
    by_time_out,
    expiring_sentences,
    setting,
    time_out_sentences,
    together,
    wheel_sentences,
)
from abeyant.pipeline.report.tables import name_cell, options
from abeyant.pipeline.results.directory import read_marker

__all__ = ["replay_tiles", "write_replay_report"]


def write_replay_report(tables: Path, destination: Path) -> None:
    """Write the page of the replay whose tables are in `tables`; readers never see a partial file."""
    replayed, pending, what_if, own = (
        read_table(tables, name) for name in ("replay", "pending", "what_if", "own_timeouts")
    )
    names = sorted(replayed["instance"].unique())
    scopes = [ALL, *names[:MOST_SCOPES]] if len(names) > 1 else names or [ALL]
    kinds, polls = _kinds(what_if)
    plots: dict[str, dict[str, Figure | None]] = {"plot-what-if": {}, "plot-polls": {}, "plot-pending": {}}
    wheels, purges, time_out_tables, poll_tables = [], [], [], []
    for i, scope in enumerate(scopes):
        rows = _within(replayed, scope).sort_values(SETTING, na_position="first")
        wheel = rows[rows["purge_interval"].isna()]
        shares, today = (frame[frame["instance"] == scope] for frame in (what_if, own))
        plots["plot-what-if"][str(i)] = figures.what_if(shares, kinds[:_MOST_DRAWN], today)
        plots["plot-polls"][str(i)] = figures.what_if(shares, polls, today)
        plots["plot-pending"][str(i)] = _pending(pending, scope)
        wheels.append(figures.by_wheel(_first_time_out(wheel)) + _wheels(wheel))
        purges.append(_purges(rows[rows["purge_interval"].notna()]))
        time_out_tables.append(_what_if(shares, kinds))
        poll_tables.append(_what_if(shares, polls))
    sentences = " ".join(map(escaped, wheel_sentences(replayed)))
    wheel_text = '</p><p class="read">'.join(filter(None, [sentences, _READ["wheel"]]))
    text = document(
        kicker="Abeyant · a replay",
        title="Which time-out should I set?" if kinds or polls else "Nothing was replayed",
        own_title=read_marker(tables).get("title"),
        tiles=tiles(replay_tiles(replayed, what_if, own)),
        lead=plot_place("plot-what-if", "Share that expires, by time-out", _NO_HARM)
        + f'<p class="read">{_READ["what_if"]}</p>',
        findings=[*map(escaped, time_out_sentences(what_if, own, read_clients(tables)) + expiring_sentences(replayed))],
        sections="\n".join(
            [
                section("By time-out", _READ["time_outs"], tables=time_out_tables),
                section("Long polls", _READ["polls"], plot="plot-polls", nothing="No long poll.", tables=poll_tables),
                section("Tick and wheel size", wheel_text, tables=wheels),
                section("Pending over time", _READ["pending"], plot="plot-pending", nothing=_NOTHING),
                section("Cost of delayed purging", _READ["purge"], tables=purges),
            ]
        ),
        made=made(tables),
        figures=plots,
        options=options(scopes),
        choose=len(scopes) > 1,
        choose_note=f"only in the tables: {len(names) - MOST_SCOPES:,} more" if len(names) > MOST_SCOPES else "",
    )
    write_whole(text, destination)


_MOST_DRAWN: Final = 5
_NOTHING: Final = "Nothing was replayed."
_NO_HARM: Final = "Nothing waited but long polls, below."

_READ: Final = {
    "wheel": "Each operation that had to wait was a timer on the real wheel. Its driver <em>wakes</em> when the next "
    "bucket is due; a timer <em>cascades</em> when it moves to a finer wheel before its deadline. A coarser tick saves "
    "wake-ups, and makes expiries late by less than a tick. More buckets save cascades, and take memory. The table "
    "compares each wheel with Kafka's under the same time-out; the maps show the first time-out.",
    "pending": "How many operations were waiting at each moment, by the laws: at exact deadlines. All instances: a "
    "row each, under the first time-out; one instance: a row for each time-out. Each has a scale of its own. Where a "
    "time-out is longer than the log's own, the line is an upper bound, because what expired in the log may have ended "
    "earlier.",
    "what_if": "For each time-out, the share of operations that expires; dashed: the median of the time-outs that they "
    "have today. An operation that expired in the log might have completed under a longer time-out, and the log cannot "
    "tell. There the line ends, and the share lies anywhere in the band. The time-out curve of <code>abeyant "
    "analyze</code> estimates where.",
    "time_outs": "The same in numbers. Percentiles are of the waits as the time-out cuts them off; blank where they "
    "depend on operations whose end is unknown.",
    "polls": "A fetch that expires found too little and is sent again: no harm. So its share says nothing about the "
    "time-out to set; a longer one saves requests.",
    "purge": "Kafka's own purgatory leaves ended operations on the watch lists of their other keys until a purge. It "
    "purges when an estimate passes the purge interval. Abeyant's purgatory takes them off at once, and never purges.",
}


def _within(rows: pd.DataFrame, scope: str) -> pd.DataFrame:
    """Return the rows of an instance; for ALL, aggregate the rows of all instances."""
    if scope != ALL:
        return rows[rows["instance"] == scope]
    return together(rows)


def _pending(rows: pd.DataFrame, scope: str) -> Figure | None:
    """Draw pending operations: of one instance, a line per time-out; of ALL, a line per instance, first time-out."""
    if scope != ALL:
        scope_rows = rows[rows["instance"] == scope]
        lines = [(setting(timeout), series) for timeout, series in by_time_out(scope_rows)]
    else:
        first = _first_time_out(rows.sort_values("timeout_ms", na_position="first"))
        lines = [(str(name), series) for name, series in first.groupby("instance")]
    return figures.pending(lines[:MOST_KINDS])


def _first_time_out(rows: pd.DataFrame) -> pd.DataFrame:
    return next((group for _, group in by_time_out(rows)), rows)


def _kinds(what_if: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the kinds with most expiries and, apart, the long polls with most, at most `MOST_KINDS` of each.

    The expiry of long polls does no harm. The first `_MOST_DRAWN` kinds, which are drawn, are in every page's order.
    """
    weight = what_if[what_if["instance"] == ALL].groupby("kind")["expired"].sum().sort_values(ascending=False)
    names = [str(kind) for kind in weight.index]
    matter, polls = ([kind for kind in names if is_poll(kind) is poll][:MOST_KINDS] for poll in (False, True))
    weights = {str(kind): float(number) for kind, number in weight.items()}
    return in_order(matter[:_MOST_DRAWN], weights) + matter[_MOST_DRAWN:], in_order(polls, weights)


def replay_tiles(replayed: pd.DataFrame, what_if: pd.DataFrame, own: pd.DataFrame) -> list[Tile]:
    """Return the tiles at the top of the page, which show its main numbers."""
    main_tiles = [Tile("operations", count(_operations(replayed)), f"{counted(_settings(replayed), 'setting')} each")]
    first = _first_time_out(together(replayed[replayed["purge_interval"].isna()]))
    if len(first):
        row = first.iloc[0]
        expired = band(row["expired"] - row["unknown"], row["expired"])
        main_tiles.append(Tile("expired", expired, f"with {setting(row['timeout_ms'])}, long polls included"))
        main_tiles.append(Tile("most pending", count(row["pending_most"]), "at once in one instance"))
    enough = shortest_enough(what_if, own)
    if enough:
        kind, timeout, share = enough
        name = f"{shortened(kind, 24)} needs" if kind else "needed"
        main_tiles.insert(0, Tile(name, duration(timeout), f"of those tried: {share} expire"))
    return main_tiles


def _operations(replayed: pd.DataFrame) -> int:
    return int(replayed.groupby("instance")["operations"].max().sum())


def _settings(replayed: pd.DataFrame) -> int:
    return len(replayed[SETTING].drop_duplicates())


def _ms(value: float) -> str:
    return UNKNOWN if pd.isna(value) else duration(float(value))


def _time_out(value: float) -> str:
    return "own" if pd.isna(value) else duration(float(value))


_SETTINGS: Final[Columns] = {
    "timeout_ms": ("time-out", _time_out),
    "tick_ms": ("tick", _ms),
    "wheel_size": ("buckets a wheel", count),
}


def _wheels(rows: pd.DataFrame) -> str:
    if rows.empty:
        return nothing(_NOTHING)
    rows = rows.assign(expiring=rows[["expired", "unknown"]].apply(tuple, axis=1))
    for name in ("cascades", "wakeups"):
        rows[f"{name}_share"] = rows[name] / rows["timeout_ms"].map(_of_kafkas(rows, name)).replace(0, float("nan"))
    names: Columns = {**_SETTINGS, "expiring": ("expired", lambda ended: band(ended[0] - ended[1], ended[0]))}
    numbers: Columns = {
        "pending_most": ("most pending", count),
        "lateness_most_ms": ("latest expiry", _ms),
        "timers": ("timers", count),
        "cascades": ("cascades", count),
        "cascades_share": ("of Kafka's", _share),
        "wakeups": ("wake-ups", count),
        "wakeups_share": ("of Kafka's", _share),
        "bucket_operations": ("bucket queue operations", count),
        "memory_bytes": ("memory, bytes", count),
    }
    return table(rows, names, numbers)


def _of_kafkas(rows: pd.DataFrame, name: str) -> dict[float, float]:
    """Return the values of the column `name` under Kafka's wheel, by time-out."""
    kafkas = rows[(rows["tick_ms"] == KAFKAS[0]) & (rows["wheel_size"] == KAFKAS[1])]
    return dict(zip(kafkas["timeout_ms"], kafkas[name], strict=True))


def _share(value: float) -> str:
    return UNKNOWN if pd.isna(value) else f"{100 * value:,.0f}\N{NO-BREAK SPACE}%"


def _purges(rows: pd.DataFrame) -> str:
    if rows.empty:
        return nothing("No purge interval was asked for: <code>--purge-interval 10,100,1000</code> does.")
    names: Columns = {"timeout_ms": ("time-out", _time_out), "purge_interval": ("purge interval", count)}
    numbers: Columns = {
        "pending_most": ("most pending", count),
        "watched_most": ("most watched", count),
        "purges": ("purges", count),
        "purged_past": ("entries looked at", count),
    }
    return table(rows, names, numbers)


def _what_if(rows: pd.DataFrame, kinds: list[str]) -> str:
    rows = rows[rows["kind"].isin(kinds)]
    if rows.empty:
        return nothing(_NOTHING)
    order = {kind: number for number, kind in enumerate(kinds)}  # as in the figure
    rows = rows.assign(_order=rows["kind"].map(order)).sort_values(["_order", "timeout_ms"])
    names: Columns = {"kind": ("kind", name_cell), "timeout_ms": ("time-out", _ms)}
    numbers: Columns = {
        "operations": ("operations", count),
        "completed": ("completed", count),
        "expired": ("expired", count),
        "unknown": ("unknown", count),
        "expired_share": ("share, least", percent),
        "expired_share_most": ("share, most", percent),
        "p50_ms": ("median wait", _ms),
        "p95_ms": ("p95", _ms),
        "p99_ms": ("p99", _ms),
    }
    return table(rows, names, numbers)
