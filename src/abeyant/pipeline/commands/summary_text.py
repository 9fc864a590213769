"""Summaries for the terminal and `--json`: of an analysis, and of outcomes."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from abeyant.pages.formatting import counted, duration, shortened, visible, without_value
from abeyant.pages.tiles import Tile
from abeyant.pipeline.report.analysis import ALL, COLUMNS, read_analysis
from abeyant.pipeline.report.headline import findings, happened, headline, note, read_as
from abeyant.pipeline.report.kinds import is_poll
from abeyant.pipeline.report.opening import opening_tiles
from abeyant.pipeline.request_log.line import NOT_A_REQUEST
from abeyant.pipeline.spark.location import is_uri

if TYPE_CHECKING:
    from abeyant.pipeline.analysis.job import AnalysisResult
    from abeyant.pipeline.report.outcomes import Outcomes

__all__ = ["analysis_json", "json_tables", "json_tiles", "outcomes_json", "plain", "print_outcomes", "print_summary"]

_DRAWN: Final = frozenset(
    {"incident_waits", "keys_by_time", "lags", "pending_plot", "requests_by_time", "timeout_curve", "waits_by_time"}
)
_TABLES: Final = tuple(name for name in COLUMNS if name != "rejected" and name not in _DRAWN)
"""The page's tables that `--json` prints: not the rejected lines, which it counts, nor the many points of figures."""
_TAG: Final = re.compile("<[^<>]*>")
_MOST_KINDS: Final = 12
_MOST_KEYS: Final = 5
_MOST_REASONS: Final = 6
_LEAST_KIND: Final = 8
_PIPE_COLUMNS: Final = 120


def print_summary(result: AnalysisResult, console: Console | None = None) -> None:
    """Print incidents, then waits and expiries by kind, then rejected lines."""
    console = console or standard_output()
    analysis = read_analysis(result.folder)
    console.print(visible(headline(analysis)), style="bold", markup=False, highlight=False)
    for sentence in analysis.what_happened:
        console.print(visible(sentence), soft_wrap=True, markup=False, highlight=False)
    rows = [row for row in _rows(result.folder / "summary") if row["instance"] == ALL]
    # Expired kinds first, then those that waited most; a long poll that expires does no harm.
    rows.sort(
        key=lambda row: (not row["expired"] or is_poll(row["kind"]), -row["expired"], -row["waited"], row["kind"])
    )
    instances = {row["instance"] for row in _rows(result.folder / "requests_by_kind")}
    console.print(
        f"{counted(result.requests, 'request')} of {counted(len(instances), 'instance')}, "
        f"{counted(result.operations, 'operation')}, {counted(result.rejected, 'line')} rejected",
        highlight=False,
    )
    if text := read_as(analysis):
        console.print(visible(text), soft_wrap=True, markup=False, highlight=False)
    console.print()
    print_kinds(rows, console)
    if result.rejected:
        _print_rejected(result.folder / "rejected", console)


def analysis_json(folder: Path) -> dict[str, Any]:
    """Return the contents of `--json` for an analysis: its marker, the page's sentences, and its tables as rows."""
    analysis = read_analysis(folder)
    rows = json_tables(folder, _TABLES)
    page = {
        "headline": plain(headline(analysis)),
        "note": _text(note(analysis)),
        "tiles": json_tiles(opening_tiles(analysis)),
        "what_happened": [*map(_text, happened(analysis))],
        "findings": [*map(_text, findings(analysis))],
        "rejected_lines": _rejected(folder / "rejected"),
    }
    return {**analysis.made, **page, **rows}


def outcomes_json(outcomes: Outcomes) -> dict[str, Any]:
    """Return the contents of `--json` for outcomes: the page's sentences, and its tables as rows."""
    from abeyant.pipeline.report.outcomes import outcome_tiles

    rows = {"summary": outcomes.summary.to_dict("records")}
    if outcomes.keys is not None:
        rows["expired_keys"] = outcomes.keys.to_dict("records")
    return {"headline": plain(outcomes.title), "tiles": json_tiles(outcome_tiles(outcomes)), **rows}


def json_tiles(tiles: Iterable[Tile]) -> list[dict[str, str]]:
    """Return a page's tiles as rows for JSON: their name, value and note."""
    return [{"name": tile.name, "value": plain(tile.value), "note": plain(tile.note)} for tile in tiles]


def json_tables(folder: Path, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return small tables of a result's folder as rows for JSON, times as text."""
    return {name: _json_rows(folder / name) for name in names}


def print_outcomes(outcomes: Outcomes, console: Console | None = None, *, out: Path | str | None = None) -> None:
    """Print outcomes by kind, the keys that expire most, and rejected rows.

    `out` is the result, if it has the table `outcomes` as files; the last lines then say how to list what expired.
    """
    console = console or standard_output()
    console.print(plain(outcomes.title), highlight=False)
    if len(outcomes.summary):
        console.print()
        rows = outcomes.summary.sort_values(["expired", "waited"], ascending=False, kind="stable")
        print_kinds([{str(name): value for name, value in row.items()} for row in rows.to_dict("records")], console)
    for sentence in filter(None, (outcomes.warning, outcomes.may_be_open)):
        console.print(f"\n{visible(sentence)}", soft_wrap=True, markup=False, highlight=False)
    if outcomes.keys is not None and len(outcomes.keys):
        about = "about " if outcomes.keys["one_in"].max() > 1 else ""
        several = outcomes.keys["instance"].nunique() > 1
        first = "expired, the first five" if len(outcomes.keys) > _MOST_KEYS else "expired"
        console.print(
            f"\n{first if outcomes.each_key_once else 'keys that expire most'}", style="bold", highlight=False
        )
        for row in outcomes.keys.head(_MOST_KEYS).to_dict("records"):
            suffix = f" (instance {shortened(row['instance'])})" if several else ""
            times = "" if outcomes.each_key_once else about + format(row["expired"], ",")
            line = f"{times:>12}  {shortened(row['key'])}{suffix}"
            console.print(line, soft_wrap=True, markup=False, highlight=False)
    if outcomes.rejected:
        console.print("\nrejected rows", style="bold", highlight=False)
        for reason, number in outcomes.rejected.items():
            console.print(f"{number:>12,}  {reason}", soft_wrap=True, markup=False, highlight=False)
    if out is not None and (expired := outcomes.count("expired")):
        lines = [f"\nThe {expired:,} expired: {visible(out)}/outcomes, outcome = 'expired'"]
        if not is_uri(str(out)):
            lines.append(f"All of them as CSV: abeyant expired {visible(shlex.quote(str(out)))} --csv > expired.csv")
        for line in lines:
            console.print(line, soft_wrap=True, markup=False, highlight=False)


def standard_output() -> Console:
    """Return a console on the standard output; if that is not a terminal, wide enough for every table."""
    console = Console(emoji=False)  # print a key such as `user:id:7` as it is
    return console if console.is_terminal else Console(width=_PIPE_COLUMNS, emoji=False)


def print_kinds(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print a line for each of the first kinds: how many operations, how many expired, and percentiles of waits."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    cell_rows = [_cells(row) for row in rows[:_MOST_KINDS]]
    names = ("kind", "count", "expired", "%", "p50", "p95", "p99", "longest")
    widths = [max(cell_len(cell) for cell in column) for column in zip(names, *cell_rows, strict=True)]
    # In a narrow terminal shorten the kind, never a number. Columns are two spaces apart.
    widths[0] = max(min(widths[0], console.width - sum(widths[1:]) - 2 * len(widths[1:])), _LEAST_KIND)
    for name, width in zip(names, widths, strict=True):
        table.add_column(name, justify="left" if name == "kind" else "right", no_wrap=True, width=width)
    for cells in cell_rows:
        table.add_row(*map(Text, cells))  # a Text: in a str rich takes [...] for markup
    console.print(table)
    if len(rows) > _MOST_KINDS:
        console.print(f"and {len(rows) - _MOST_KINDS} more kinds", style="dim", highlight=False)
    if any(map(_poll_expired, rows[:_MOST_KINDS])):
        console.print(
            "* long polls: to expire is their normal end, when nothing new came", style="dim", highlight=False
        )


def _poll_expired(row: Mapping[str, Any]) -> bool:
    return bool(row["expired"]) and is_poll(row["kind"])


def _cells(row: Mapping[str, Any]) -> list[str]:
    share = row["expired_share"]
    return [
        visible(row["kind"]) + "*" * _poll_expired(row),
        f"{row['operations']:,}",
        f"{row['expired']:,}",
        "-" if share is None else f"{100 * share:.2f}",
        *(plain(duration(row[name])) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")),
    ]


def _rejected(table: Path) -> list[dict[str, Any]]:
    """Return a row for each reason of rejection: how many lines it has, and the first of them.

    Lines of other loggers come last.
    """
    first: dict[str, dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    for row in sorted(_rows(table), key=lambda row: (row["file"], row["line_number"])):
        reason = without_value(row["reason"])
        first.setdefault(reason, row)
        counts[reason] += 1
    reasons = sorted(counts, key=lambda reason: (reason == NOT_A_REQUEST, -counts[reason], reason))
    return [{**first[reason], "reason": reason, "lines": counts[reason]} for reason in reasons]


def _print_rejected(table: Path, console: Console) -> None:
    console.print("\nrejected lines", style="bold", highlight=False)
    rows = _rejected(table)
    for row in rows[:_MOST_REASONS]:
        line = f"{row['lines']:>12,}  {row['reason']} (first: {row['file']} line {row['line_number']})"
        console.print(visible(line), style="yellow", soft_wrap=True, markup=False, highlight=False)
    if len(rows) > _MOST_REASONS:
        footer = f"... and {len(rows) - _MOST_REASONS:,} more reasons in the table `rejected`"
        console.print(footer, style="yellow", highlight=False)


def _text(words: str) -> str:
    """Return a sentence of the page without HTML."""
    return plain(unescape(_TAG.sub("", words)))


def plain(words: str) -> str:
    """Replace no-break spaces, for a terminal."""
    return words.replace("\N{NO-BREAK SPACE}", " ")


def _rows(table: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(table).to_pylist()
    return rows


def _json_rows(table: Path) -> list[dict[str, Any]]:
    """Return a table's rows for JSON, times as text."""
    return [
        {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
        for row in _rows(table)
    ]
