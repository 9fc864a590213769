"""The page of a replay: one HTML file, complete in itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pandas as pd

from abeyance.pages.document import document, write_whole
from abeyance.pages.style import Figure, plotly
from abeyance.pages.tables import Columns, nothing, table
from abeyance.pages.words import UNKNOWN, count, counted, duration, escaped, percent
from abeyance.pipeline.report import replay_figures as figures
from abeyance.pipeline.report.analysis import ALL, MOST_KINDS, MOST_SCOPES
from abeyance.pipeline.report.parts import made, read_table, section
from abeyance.pipeline.report.tables import options

__all__ = ["write_replay_report"]

plotly("graph_objects")  # whoever means to write a report later learns now, before the work, if it is missing

_ADDED: Final = ("operations", "left_out", "completed", "expired", "unknown", "timers", "cascades", "wakeups")
_COUNTS: Final = (*_ADDED, "bucket_operations", "memory_bytes")
_SETTING: Final = ["timeout_ms", "tick_ms", "wheel_size", "purge_interval"]


def write_replay_report(tables: Path, destination: Path) -> None:
    """Write the page of the replay whose tables lie in `tables`; a reader never sees half of it."""
    replayed, pending, what_if = (read_table(tables, name) for name in ("replay", "pending", "what_if"))
    names = sorted(replayed["instance"].unique())
    scopes = [ALL, *names[:MOST_SCOPES]] if len(names) > 1 else names or [ALL]
    kinds = _kinds(what_if)
    drawn: dict[str, dict[str, object]] = {"plot-pending": {}, "plot-what-if": {}}
    wheels, purges, whats = [], [], []
    for i, scope in enumerate(scopes):
        rows = _within(replayed, scope).sort_values(_SETTING, na_position="first")
        wheel = rows[rows["purge_interval"].isna()]
        asked = what_if[what_if["instance"] == scope]
        drawn["plot-pending"][str(i)] = _pending(pending, scope)
        drawn["plot-what-if"][str(i)] = figures.what_if(asked, kinds)
        wheels.append(figures.by_wheel(_first_time_out(wheel)) + _wheels(wheel))
        purges.append(_purges(rows[rows["purge_interval"].notna()]))
        whats.append(_what_if(asked, kinds))
    text = document(
        kicker="Abeyance · a replay",
        title=f"{counted(_operations(replayed), 'operation')} replayed, {counted(_settings(replayed), 'setting')} each",
        findings=_findings(replayed),
        sections="\n".join(
            [
                section("Tick and wheel size", _READ["wheel"], tables=wheels),
                section("Pending over time", _READ["pending"], plot="plot-pending", nothing=_NOTHING),
                section("With another time-out", _READ["what_if"], plot="plot-what-if", nothing=_NOTHING, tables=whats),
                section("What forgetting late costs", _READ["purge"], tables=purges),
            ]
        ),
        made=made(tables),
        figures=drawn,
        options=options(scopes),
        choose=len(scopes) > 1,
        choose_note=f"{len(names) - len(scopes) + 1:,} more are only in the tables"
        if len(names) >= MOST_SCOPES
        else "",
    )
    write_whole(text, destination)


_NOTHING: Final = "Nothing was replayed."

_READ: Final = {
    "wheel": "Each operation that had to wait is a timer on the real wheel, driven by a clock that wakes exactly when "
    "the next bucket comes up. A timer <em>cascades</em> when it is filed anew before its deadline; the bucket queue "
    "wakes the driver. A coarser tick costs lateness, less than a tick, and saves wake-ups; a larger wheel costs "
    "memory and saves cascades. The figure is of the first time-out; the table has all.",
    "pending": "How many operations were waiting at each moment, by the laws: at exact deadlines. All instances: a "
    "line each, under the first time-out; one instance: a line for each time-out.",
    "what_if": "For each time-out, the share of operations that expires. Where the log itself saw an operation expire "
    "before, nobody knows what a longer time-out would have brought: the line is the least that expires, the band "
    "reaches to the most. (The time-out curve of <code>abeyance analyze</code> estimates where in the band it lies.)",
    "purge": "Kafka's own purgatory leaves ended operations on the watch lists of their other keys until a purge, "
    "which it makes when an estimate passes the purge interval. Abeyance's takes them off at once, and has none.",
}


def _within(rows: pd.DataFrame, scope: str) -> pd.DataFrame:
    """Return the rows of an instance; of all, their sums, where sums mean something."""
    if scope != ALL:
        return rows[rows["instance"] == scope]
    sums = {name: (name, "sum") for name in _COUNTS}
    most = {name: (name, "max") for name in ("pending_most", "lateness_most_ms", "watched_most")}
    work = {name: (name, "sum") for name in ("purges", "purged_past")}
    return rows.groupby(_SETTING, dropna=False, as_index=False).agg(**sums, **most, **work)


def _pending(rows: pd.DataFrame, scope: str) -> Figure | None:
    """Draw an instance's time-outs; of all, the instances under the first time-out."""
    if scope != ALL:
        mine = rows[rows["instance"] == scope]
        lines = [(figures.setting(timeout), series) for timeout, series in _by_time_out(mine)]
    else:
        first = _first_time_out(rows.sort_values("timeout_ms", na_position="first"))
        lines = [(str(name), series) for name, series in first.groupby("instance")]
    return figures.pending(lines[:MOST_KINDS])


def _by_time_out(rows: pd.DataFrame) -> Iterator[tuple[float, pd.DataFrame]]:
    for timeout in rows["timeout_ms"].drop_duplicates().sort_values(na_position="first"):
        yield timeout, rows[rows["timeout_ms"].isna() if pd.isna(timeout) else rows["timeout_ms"] == timeout]


def _first_time_out(rows: pd.DataFrame) -> pd.DataFrame:
    return next((mine for _, mine in _by_time_out(rows)), rows)


def _kinds(what_if: pd.DataFrame) -> list[str]:
    """The kinds that are drawn: those that would expire most."""
    weight = what_if[what_if["instance"] == ALL].groupby("kind")["expired"].sum().sort_values(ascending=False)
    return [str(kind) for kind in weight.index[:MOST_KINDS]]


def _operations(replayed: pd.DataFrame) -> int:
    return int(replayed.groupby("instance")["operations"].max().sum())


def _settings(replayed: pd.DataFrame) -> int:
    return len(replayed[_SETTING].drop_duplicates())


def _findings(replayed: pd.DataFrame) -> list[str]:
    found = []
    together = _within(replayed[replayed["purge_interval"].isna()], ALL)
    for timeout, rows in _by_time_out(together):
        row = rows.iloc[0]
        said = f"With {figures.setting(timeout)} {count(row['expired'])} of {count(row['operations'])} expire"
        open_ = f", {count(row['unknown'])} of them perhaps not" if row["unknown"] else ""
        left = f"; {count(row['left_out'])} could not be replayed" if row["left_out"] else ""
        found.append(f"{said}{open_}{left}.")
    return found


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
    numbers: Columns = {
        "expired": ("expired", count),
        "unknown": ("of these unknown", count),
        "pending_most": ("most pending", count),
        "lateness_most_ms": ("latest", _ms),
        "timers": ("timers", count),
        "cascades": ("cascades", count),
        "wakeups": ("wake-ups", count),
        "bucket_operations": ("bucket queue", count),
        "memory_bytes": ("bytes", count),
    }
    return table(rows, _SETTINGS, numbers)


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
    rows = rows.sort_values(["kind", "timeout_ms"])
    names: Columns = {"kind": ("kind", escaped), "timeout_ms": ("time-out", _ms)}
    numbers: Columns = {
        "operations": ("operations", count),
        "completed": ("completed", count),
        "expired": ("expired", count),
        "unknown": ("unknown", count),
        "expired_share": ("least share", percent),
        "expired_share_most": ("most", percent),
        "p50_ms": ("median wait", _ms),
        "p95_ms": ("p95", _ms),
        "p99_ms": ("p99", _ms),
    }
    return table(rows, names, numbers)
