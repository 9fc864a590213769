"""The report's tables and lists in HTML; every cell is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from abeyance.pages.tables import Cell, Column, Columns, folded, nothing, table
from abeyance.pages.words import count, duration, escaped, percent, shortened
from abeyance.pipeline.report.analysis import ALL, Analysis
from abeyance.pipeline.report.kinds import colours

MOST_KEYS: Final = 8
MOST_REJECTED: Final = 100
_LONGEST_EXCERPT: Final = 240

_WAITS: Final = {"p50_ms": "median", "p95_ms": "p95", "p99_ms": "p99", "max_ms": "longest"}


def by_kind(analysis: Analysis, scope: str) -> str:
    """Return the summary: one row a kind of operation."""
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
    names: Columns = {"kind": ("kind", _kind(analysis))}
    drawn = rows["kind"].isin(analysis.drawn)
    others = rows[~drawn]
    if others.empty:
        return table(rows, names, columns)
    more = f"{len(others):,} other kinds of request that waited, of less weight: the figures leave them out"
    return table(rows[drawn], names, columns) + folded(more, table(others, names, columns))


def requests(analysis: Analysis, scope: str) -> str:
    """Return every request of the log by its API, those that never wait included."""
    rows = analysis.within("requests_by_kind", scope)
    if rows.empty:
        return nothing("The log holds no request.")
    rows = rows.groupby("api", as_index=False)[["requests", "waited"]].sum()
    rows = rows.sort_values(["requests", "api"], ascending=[False, True])
    rows["share"] = rows["waited"] / rows["requests"]
    columns: dict[str, Column] = {
        "requests": ("requests", count),
        "waited": ("waited", count),
        "share": ("share that waited", percent),
    }
    return table(rows, {"api": ("API", escaped)}, columns)


def keys(analysis: Analysis, scope: str) -> str:
    """Return the keys of each kind on which most time was spent waiting."""
    rows = analysis.keys(scope)
    rows = analysis.top(rows[rows["total_waited_ms"] > 0], MOST_KEYS, ["total_waited_ms"])
    if rows.empty:
        return nothing("Nothing waited on a key.")
    names: dict[str, Column] = {"key": ("key", _key), "kind": ("kind", _kind(analysis))}
    if scope == ALL and len(analysis.instances) > 1:
        names["instance"] = ("instance", escaped)
    columns: dict[str, Column] = {
        "total_waited_ms": ("waited in all", duration),
        "operations": ("operations", count),
        "expired": ("expired", count),
        "expired_share": ("share expired", percent),
    }
    waits = {name: (title, duration) for name, title in _WAITS.items() if name != "p99_ms"}
    return table(rows, names, columns | waits)


def rejected(analysis: Analysis) -> str:
    """Return the lines that could not be read: how many for which reason, and the first of them."""
    rows = analysis.tables["rejected"]
    if rows.empty:
        return nothing("None: every line of the log was read.")
    counted = rows["reason"].fillna("no reason given").value_counts()
    reasons = counted.rename_axis("reason").reset_index(name="lines")
    first = rows.sort_values(["file", "line_number"], kind="stable").head(MOST_REJECTED)
    names: Columns = {
        "file": ("file", _key),
        "line_number": ("line", count),
        "reason": ("reason", escaped),
        "excerpt": ("begins with", _excerpt),
    }
    shown = f"The first {MOST_REJECTED} lines" if len(rows) > MOST_REJECTED else "The lines"
    return table(reasons, {"reason": ("reason", escaped)}, {"lines": ("lines", count)}) + folded(
        shown, table(first, names, {})
    )


def _kind(analysis: Analysis) -> Cell:
    colour = colours(analysis.drawn)

    def show(kind: object) -> str:
        return f'<span class="kind" style="--kind:{colour.get(str(kind), "transparent")}">{escaped(kind)}</span>'

    return show


def _key(text: object) -> str:
    return f'<code title="{escaped(text)}"><bdi>{escaped(shortened(text))}</bdi></code>'


def _excerpt(text: object) -> str:
    return f"<code><bdi>{escaped(shortened(text, _LONGEST_EXCERPT))}</bdi></code>"


def options(names: Sequence[str]) -> str:
    """Return the choices of scope, by position: a name from a log is never an identifier in the page."""
    return "".join(
        f'<option value="{i}">{"all instances" if name == ALL else escaped(name)}</option>'
        for i, name in enumerate(names)
    )
