"""HTML tables and lists. Each column of a table has a function that formats and escapes its cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import pandas as pd

from abeyant.pages.formatting import escaped

__all__ = ["Cell", "Column", "Columns", "facts", "folded", "nothing", "table"]

_LONGEST_LIST: Final = 120

Cell = Callable[[Any], str]
Column = tuple[str, Cell]
Columns = Mapping[str, Column]


def facts(made: Mapping[str, Any]) -> str:
    """Return the record of how a result was made (command, files, options, ...) as an HTML list."""
    if not made:
        return nothing("The result has no record of how it was made.")
    entries = (f"<dt>{escaped(_plain_name(name))}</dt><dd>{_fact(value)}</dd>" for name, value in made.items())
    return f"<dl>{''.join(entries)}</dl>"


def _fact(value: object) -> str:
    if isinstance(value, Mapping):
        return "<ul>" + "".join(f"<li>{escaped(_plain_name(k))}: {_fact(v)}</li>" for k, v in value.items()) + "</ul>"
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        columns: Columns = {str(name): (escaped(_plain_name(name)), _fact) for name in value[0]}
        numbers = {name for name in columns if all(isinstance(item.get(name), int) for item in value)}
        return table(
            pd.DataFrame(value, columns=list(columns), dtype=object),
            {name: column for name, column in columns.items() if name not in numbers},
            {name: column for name, column in columns.items() if name in numbers},
        )
    if isinstance(value, list) and sum(len(str(item)) for item in value) < _LONGEST_LIST:
        return ", ".join(_fact(item) for item in value)
    if isinstance(value, list):
        return "<ul>" + "".join(f"<li>{_fact(item)}</li>" for item in value) + "</ul>"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"<bdi>{escaped('none' if value is None else value)}</bdi>"


def _plain_name(name: object) -> str:
    return str(name).replace("_", " ")


def table(
    rows: pd.DataFrame,
    names: Columns,
    numbers: Columns,
    *,
    more: Columns | None = None,
    bars: Collection[str] = (),
    mark: str | None = None,
    number: str | None = None,
) -> str:
    """Return an HTML table: columns of names, of numbers, then of `more` names. The page's script sorts and folds it.

    Cells in the columns `bars` have a bar, whose length is the share of the column's greatest number. Each row carries
    its value in the column `mark`, for the page's filters, and its value in the column `number`, by which the script
    finds the row to update its numbers for a selected time range.
    """
    head = "".join(f'<th scope="col">{title}</th>' for title, _ in names.values())
    attributes = (f' data-column="{escaped(name)}"' if number else "" for name in numbers)
    head += "".join(
        f'<th scope="col" class="number"{name}>{title}</th>'
        for name, (title, _) in zip(attributes, numbers.values(), strict=True)
    )
    last = (more or {}).items()
    head += "".join(f'<th scope="col">{title}</th>' for _, (title, _) in last)
    maxima = {name: float(pd.to_numeric(rows[name]).max()) for name in bars if not rows.empty}
    body = "".join(
        f"<tr{_mark(row, 'kind', mark)}{_mark(row, 'number', number)}>"
        + "".join(f"<td>{show(row[name])}</td>" for name, (_, show) in names.items())
        + "".join(_number(row[name], show, maxima.get(name)) for name, (_, show) in numbers.items())
        + "".join(f"<td>{show(row[name])}</td>" for name, (_, show) in last)
        + "</tr>"
        for row in rows.to_dict("records")
    )
    return (
        f'<div class="wide"><table class="sortable"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _mark(row: Mapping[Any, Any], name: str, column: str | None) -> str:
    return "" if column is None else f' data-{name}="{escaped(row[column])}"'


def _number(value: Any, show: Cell, most: float | None) -> str:
    number = pd.to_numeric(value, errors="coerce")
    is_number = not pd.isna(number)
    exact = f' data-value="{float(number):.12g}"' if is_number else ""
    if most is None:
        return f'<td class="number"{exact}>{show(value)}</td>'
    length = float(number) / most if is_number and most > 0 else 0.0
    return f'<td class="number bar"{exact} style="--bar:{max(length, 0.0):.3f}">{show(value)}</td>'


def folded(title: str, content: str) -> str:
    """Return HTML content that is collapsed under a title."""
    return f"<details><summary>{title}</summary>{content}</details>"


def nothing(sentence: str) -> str:
    """Return HTML with a sentence that says why a part of the page is empty."""
    return f'<p class="nothing">{sentence}</p>'
