"""The report's tables and lists in HTML; every cell is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from .analysis import ALL, Analysis
from .style import colours
from .words import count, duration, escaped, percent, shortened

MOST_KEYS: Final = 8
MOST_REJECTED: Final = 100
_LONGEST_EXCERPT: Final = 240

Cell = Callable[[Any], str]
Column = tuple[str, Cell]
Columns = Mapping[str, Column]
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
    return table(rows[drawn], names, columns) + _folded(more, table(others, names, columns))


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
    return table(reasons, {"reason": ("reason", escaped)}, {"lines": ("lines", count)}) + _folded(
        shown, table(first, names, {})
    )


def facts(made: Mapping[str, Any]) -> str:
    """Return how the analysis was made: the marker's entries, as they are."""
    if not made:
        return nothing("The analysis left no record of how it was made.")
    entries = (f"<dt>{escaped(_words(name))}</dt><dd>{_fact(value)}</dd>" for name, value in made.items())
    return f"<dl>{''.join(entries)}</dl>"


def _fact(value: object) -> str:
    if isinstance(value, Mapping):
        return "<ul>" + "".join(f"<li>{escaped(_words(k))}: {_fact(v)}</li>" for k, v in value.items()) + "</ul>"
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        columns: Columns = {str(name): (escaped(_words(name)), _fact) for name in value[0]}
        numbers = {name for name in columns if all(isinstance(item.get(name), int) for item in value)}
        return table(
            pd.DataFrame(value, columns=list(columns), dtype=object),
            {name: column for name, column in columns.items() if name not in numbers},
            {name: column for name, column in columns.items() if name in numbers},
        )
    if isinstance(value, list) and sum(len(str(item)) for item in value) < _LONGEST_EXCERPT // 2:
        return ", ".join(_fact(item) for item in value)
    if isinstance(value, list):
        return "<ul>" + "".join(f"<li>{_fact(item)}</li>" for item in value) + "</ul>"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"<bdi>{escaped('none' if value is None else value)}</bdi>"


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def table(rows: pd.DataFrame, names: Columns, numbers: Columns) -> str:
    """Return an HTML table: columns of names to the left, of numbers to the right."""
    head = _cells("th", (title for title, _ in names.values()), "") + _cells(
        "th", (title for title, _ in numbers.values()), "number"
    )
    body = "".join(
        f"<tr>{_cells('td', (show(row[name]) for name, (_, show) in names.items()), '')}"
        f"{_cells('td', (show(row[name]) for name, (_, show) in numbers.items()), 'number')}</tr>"
        for row in rows.to_dict("records")
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cells(tag: str, contents: Iterable[str], kind: str) -> str:
    attribute = f' class="{kind}"' if kind else ""
    return "".join(f"<{tag}{attribute}>{content}</{tag}>" for content in contents)


def _kind(analysis: Analysis) -> Cell:
    colour = colours(analysis.drawn)

    def show(kind: object) -> str:
        return f'<span class="kind" style="--kind:{colour.get(str(kind), "transparent")}">{escaped(kind)}</span>'

    return show


def _key(text: object) -> str:
    return f'<code title="{escaped(text)}"><bdi>{escaped(shortened(text))}</bdi></code>'


def _excerpt(text: object) -> str:
    return f"<code><bdi>{escaped(shortened(text, _LONGEST_EXCERPT))}</bdi></code>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def nothing(sentence: str) -> str:
    """Return what stands where there is nothing to show; HTML."""
    return f'<p class="nothing">{sentence}</p>'


def options(names: Sequence[str]) -> str:
    """Return the choices of scope, by position: a name from a log is never an identifier in the page."""
    return "".join(
        f'<option value="{i}">{"all instances" if name == ALL else escaped(name)}</option>'
        for i, name in enumerate(names)
    )
