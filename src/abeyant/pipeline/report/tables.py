"""The report's tables and lists in HTML; every cell is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from abeyant.pages.formatting import count, duration, escaped, percent, shortened, visible, without_value
from abeyant.pages.tables import Cell, Column, Columns, folded, nothing, table
from abeyant.pipeline.report.analysis import ALL, Analysis
from abeyant.pipeline.report.kinds import colours
from abeyant.pipeline.request_log.line import NOT_A_REQUEST

MOST_REJECTED: Final = 100
_LONGEST_EXCERPT: Final = 240
_LONGEST_SUSPECT: Final = 24

_WAITS: Final = {"p50_ms": "median", "p95_ms": "p95", "p99_ms": "p99", "max_ms": "longest"}


def by_kind(analysis: Analysis, scope: str) -> str:
    """Return the summary as an HTML table: one row per kind of operation."""
    rows = analysis.within("summary", scope)
    if rows.empty:
        return nothing("No operation of any kind was read.")
    columns: dict[str, Column] = {
        "operations": ("operations", count),
        "waited": ("waited", count),
        "completed": ("completed", count),
        "expired": ("expired", count),
        "unknown": ("unknown", count),
        "expired_share": ("share expired", percent),
    }
    if not rows["unknown"].any():
        del columns["unknown"]
    columns |= {name: (title, duration) for name, title in _WAITS.items()}
    order = {kind: i for i, kind in enumerate(analysis.kinds)}
    rows = rows.sort_values("kind", key=lambda kinds: kinds.map(order), kind="stable")
    rows = rows.assign(number=rows["kind"].map(order))
    names: Columns = {"kind": ("kind", _kind(analysis))}
    is_drawn = rows["kind"].isin(analysis.drawn)
    others = rows[~is_drawn]
    bars = ("waited", "expired", "p95_ms")
    if others.empty:
        return table(rows, names, columns, bars=bars, mark="kind", number="number")
    heading = f"{len(others):,} other kinds that waited, of less weight: the figures leave them out"
    drawn_table, other_table = (
        table(part, names, columns, bars=bars, mark="kind", number="number") for part in (rows[is_drawn], others)
    )
    return drawn_table + folded(heading, other_table)


def incidents(analysis: Analysis, scope: str) -> str:
    """Return the incidents in their order in time, each with a link that shows its time in every figure."""
    rows = analysis.incidents(scope)
    if rows.empty:
        return nothing("None: no burst of expiries, of long waits or of other trouble.")
    rows = rows.assign(when=rows[["first", "last", "kind", "trouble"]].apply(tuple, axis=1), lasted=_lasted(rows))
    rows = rows.assign(struck=rows[["keys", "keys_struck"]].apply(tuple, axis=1), suspect=_suspects(analysis, rows))
    names: Columns = {
        "when": ("when (UTC)", _burst(analysis)),
        "suspect": ("suspect", _suspect),
    }
    columns: Columns = {
        "expired": ("expired", count),
        "operations": ("operations", count),
        "longest_ms": ("longest", duration),
        "lasted": ("lasted", duration),
    }
    last_columns: Columns = {
        "instances": ("instances", lambda struck: escaped(", ".join(map(shortened, struck)))),
        "struck": ("keys", _struck),
    }
    return table(rows, names, columns, more=last_columns, bars=("operations", "expired", "longest_ms"), mark="kind")


def _burst(analysis: Analysis) -> Cell:
    kind = _kind(analysis)

    def show(burst: tuple[pd.Timestamp, pd.Timestamp, str, str]) -> str:
        trouble = _TROUBLES.get(burst[3], burst[3])
        return f'{_when(burst[:2])}<br>{kind(burst[2])}<br><span class="small">{escaped(trouble)}</span>'

    return show


_TROUBLES: Final = {
    "waited": "waited long",
    "handled": "handled slowly",
    "sent": "sent slowly",
    "rebalanced": "joined slowly",
    "paused": "came late",
}


def _suspects(analysis: Analysis, rows: pd.DataFrame) -> pd.Series[Any]:
    """Return (suspect, evidence, confidence) of each incident's likeliest suspect; None for incidents without one."""
    likeliest: dict[int, tuple[str, str, float]] = {}
    suspects = analysis.tables["suspects"].sort_values("confidence", ascending=False, kind="stable")
    for row in suspects.to_dict("records"):
        suspect = str(row["suspect"]), str(row["evidence"]), float(row["confidence"])
        likeliest.setdefault(int(row["incident"]), suspect)
    numbers = {index: number for number, index in enumerate(analysis.incidents(ALL).index, 1)}
    return pd.Series([likeliest.get(numbers[index]) for index in rows.index], index=rows.index, dtype=object)


def _suspect(value: object) -> str:
    if not isinstance(value, tuple):
        return ""
    suspect, evidence, confidence = value
    short = shortened(suspect, _LONGEST_SUSPECT).replace(" ", "\N{NO-BREAK SPACE}")
    details = f'<div class="small evidence">{escaped(evidence)} (confidence {confidence:.2f})</div>'
    return f"<bdi>{escaped(short)}</bdi>{details}"


def _lasted(rows: pd.DataFrame) -> list[float]:
    return [
        (last - first) / pd.Timedelta(milliseconds=1) for first, last in zip(rows["first"], rows["last"], strict=True)
    ]


def _when(times: tuple[pd.Timestamp, pd.Timestamp]) -> str:
    first, last = (pd.Timestamp(time) for time in times)
    edges = (first.floor("s"), last.ceil("s"))
    link = "&amp;".join(f"{name}={edge.timestamp():.0f}" for name, edge in zip(("from", "to"), edges, strict=True))
    return f'<a class="when" href="?{link}#pending-over-time">{first:%Y-%m-%d %H:%M:%S}</a>'


def _struck(keys: tuple[object, float]) -> str:
    names, number = keys
    labels = [escaped(shortened(key)) for key in ([] if names is None else list(names))]  # type: ignore[call-overload]
    rest = f" and {int(number) - len(labels):,} more" if labels and number > len(labels) else ""
    return f'<span class="keys"><bdi>{"</bdi>, <bdi>".join(labels)}</bdi>{rest}</span>' if labels else ""


def requests(analysis: Analysis, scope: str) -> str:
    """Return an HTML table of requests by API, with the share that waited; APIs that never wait are included."""
    rows = analysis.within("requests_by_kind", scope)
    if rows.empty:
        return nothing("The log holds no request.")
    rows = rows.groupby("api", as_index=False)[["requests", "waited"]].sum()
    rows = rows.sort_values(["requests", "api"], ascending=[False, True])
    rows["share"] = rows["waited"] / rows["requests"]
    rows["number"] = rows["api"].map({api: number for number, api in enumerate(analysis.apis)})
    columns: dict[str, Column] = {
        "requests": ("requests", count),
        "waited": ("waited", count),
        "share": ("share that waited", percent),
    }
    return table(rows, {"api": ("API", escaped)}, columns, bars=("requests", "share"), mark="api", number="number")


def keys_longest(analysis: Analysis, scope: str) -> str:
    """Return, for each kind, a table of the keys with the longest waits, by 95th percentile and by the sum of waits."""
    top = analysis.slowest_keys(scope)
    return _keys(analysis, scope, top, "p95_ms", "Nothing waited on a key.")


def keys_expired(analysis: Analysis, scope: str) -> str:
    """Return, for each kind, a table of the keys on which most operations expired."""
    top = analysis.expiring_keys(scope)
    return _keys(analysis, scope, top, "expired", "Nothing expired.")


def _keys(analysis: Analysis, scope: str, rows: pd.DataFrame, by: str, otherwise: str) -> str:
    if rows.empty:
        return nothing(otherwise)
    rows = rows[~rows.index.duplicated()]
    numbers = analysis.shown_keys.reset_index(names="number")
    rows = rows.merge(numbers, on=["instance", "kind", "key"], how="left")
    order = {kind: number for number, kind in enumerate(analysis.kinds)}
    rows = rows.assign(_order=rows["kind"].map(order)).sort_values(["_order", by], ascending=[True, False])
    names: dict[str, Column] = {"key": ("key", key_cell), "kind": ("kind", _kind(analysis))}
    if scope == ALL and len(analysis.instances) > 1:
        names["instance"] = ("instance", name_cell)
    waits: dict[str, Column] = {name: (title, duration) for name, title in _WAITS.items() if name != "p99_ms"}
    ends: dict[str, Column] = {
        "operations": ("operations", count),
        "expired": ("expired", count),
        "expired_share": ("share expired", percent),
    }
    total: dict[str, Column] = {"total_waited_ms": ("waited in all", duration)}
    columns = ends if by == "expired" else waits | total | ends
    bars = ("expired", "expired_share") if by == "expired" else ("p95_ms", "max_ms", "total_waited_ms")
    return table(rows, names, columns, bars=bars, mark="kind", number="number")


def rejected(analysis: Analysis) -> str:
    """Return two tables of rejected lines: their number by reason, and the first lines of each reason."""
    rows = analysis.tables["rejected"]
    if rows.empty:
        return nothing("None: every line of the log was read.")
    rows = rows.assign(group=rows["reason"].fillna("no reason given").map(without_value))
    rows["other"] = rows["group"] == NOT_A_REQUEST  # lines of other loggers come last
    counts = rows.groupby(["group", "other"]).size().reset_index(name="lines")
    reasons = counts.sort_values(["other", "lines", "group"], ascending=[True, False, True], kind="stable")
    first = rows.sort_values(["file", "line_number"], kind="stable")
    # The first line of each reason, then the next ones: one reason with many lines leaves room for the others.
    first = first.assign(nth=first.groupby("group").cumcount())
    first = first.sort_values(["nth", "other"], kind="stable").head(MOST_REJECTED)
    names: Columns = {
        "file": ("file", key_cell),
        "line_number": ("line", count),
        "reason": ("reason", escaped),
        "excerpt": ("begins with", _excerpt),
    }
    title = f"The first {MOST_REJECTED} lines, reasons in turn" if len(rows) > MOST_REJECTED else "The lines"
    return table(reasons, {"group": ("reason", escaped)}, {"lines": ("lines", count)}) + folded(
        title, table(first, names, {})
    )


def _kind(analysis: Analysis) -> Cell:
    colour = colours(analysis.drawn)

    def show(kind: object) -> str:
        short = shortened(kind)
        title = "" if short == visible(kind) else f' title="{escaped(kind)}"'
        style = f"--kind:{colour.get(str(kind), 'transparent')}"
        return f'<span class="kind" style="{style}"{title}>{escaped(short)}</span>'

    return show


def key_cell(text: object) -> str:
    """Return a cell with a key, a file or the like, shortened; its tooltip has the full text."""
    short = shortened(text)
    title = "" if short == visible(text) else f' title="{escaped(text)}"'
    return f"<code{title}><bdi>{escaped(short)}</bdi></code>"


def name_cell(text: object) -> str:
    """Return a cell with a name, shortened, in which right-to-left text does not reorder the text beside it."""
    return f"<bdi>{escaped(shortened(text))}</bdi>"


def _excerpt(text: object) -> str:
    return f"<code><bdi>{escaped(shortened(text, _LONGEST_EXCERPT))}</bdi></code>"


def options(names: Sequence[str]) -> str:
    """Return the options of the scope menu. Their values are positions, as names from a log are untrusted."""
    return "".join(
        f'<option value="{i}">{"all instances" if name == ALL else escaped(shortened(name))}</option>'
        for i, name in enumerate(names)
    )


def kind_filter(kinds: Sequence[str]) -> str:
    """Return the menu that filters by kind, and the button that shows the whole log again."""
    entries = "".join(f'<option value="{escaped(kind)}">{escaped(shortened(kind))}</option>' for kind in kinds)
    return (
        '<label>Kind <select id="kind" autocomplete="off"><option value="">all kinds</option>'
        f'{entries}</select></label> <button type="button" id="whole" hidden>show the whole log</button>'
        ' <span class="small" id="slices" hidden></span>'
    )
