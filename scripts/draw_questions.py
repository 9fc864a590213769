"""Draw the questions of docs/questions.md from their own data: docs/images/questions/*.svg.

    python examples/questions.py build/questions/questions
    python -m scripts.draw_questions build/questions

Of each outcome that a question has, the first operation with events is drawn: a bar from the start to the deadline, or
to where it ended if that is later, a mark for each event of its keys, the end in the colour of its outcome.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from abeyant import tables

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "questions.md"
PICTURES = ROOT / "docs" / "images" / "questions"

WIDTH, LEFT, RIGHT, ROW, TOP = 810, 200, 670, 34, 12  # pixels
MOST = 40
"""Events that are drawn of one operation: more would be a blot."""


def sections() -> dict[str, str]:
    """Return the text below each question of the page."""
    return dict(re.findall(r"^## (.*)\n((?:.|\n)*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def code_of(text: str) -> list[str]:
    """Return the Python blocks of a text."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


class Asked:
    """`abeyant.tables` for a block of the page; notes what it hands to `resolve`, and what that returns."""

    Calendar = tables.Calendar
    names: dict[str, Any]  # of the block

    def resolve(self, operations: pd.DataFrame, events: pd.DataFrame, **rules: Any) -> pa.Table:
        """Resolve as `abeyant.tables` does."""
        self.operations, self.events, self.rules = operations, events, rules
        self.outcomes = tables.resolve(operations, events, **rules)
        return self.outcomes


def run(question: str) -> Asked:
    """Run a question's block, in a folder that has the tables."""
    asked = Asked()
    asked.names = {"pd": pd, "tables": asked}
    for code in code_of(sections()[question]):
        exec(compile(code, question, "exec"), asked.names)
    return asked


def slug(question: str) -> str:
    """Return the name of a question's picture, without its suffix."""
    return "-".join(re.findall(r"[a-z0-9]+", question.lower())[:6])


def draw(question: str, asked: Asked) -> str:
    """Return a question's picture as SVG, which follows the reader's light or dark mode."""
    ends = {row["op_id"]: row for row in asked.outcomes.to_pylist()}
    shown = list(_examples(asked.operations, asked.events, ends))
    high = 2 * TOP + ROW * len(shown)
    said = "; ".join(f"{row['op_id']} {ends[row['op_id']]['outcome']}, {len(at)} events" for row, at in shown)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{high}" viewBox="0 0 {WIDTH} {high}" '
            f'role="img" aria-label="{escape(f"{question} {said}.")}">',
            _STYLE,
            *(
                line
                for number, (row, at) in enumerate(shown)
                for line in _row(row, at, ends[row["op_id"]], TOP + ROW * number + ROW / 2)
            ),
            "</svg>\n",
        ]
    )


def _keys(row: dict[Any, Any]) -> set[str]:
    watches = row.get("watches")
    found = {watch["key"] for watch in watches} if isinstance(watches, list) else {row["key"]}
    return found | {row[name] for name in ("cancel_key", "extend_key", "pause_key") if name in row}


def _examples(
    operations: pd.DataFrame, events: pd.DataFrame, ends: dict[str, Any]
) -> Iterator[tuple[dict[Any, Any], list[datetime]]]:
    """Yield the first operation of each outcome that has events about its time, with these events.

    Where an outcome has none such, as orders that are all paid long after their deadline, yield its first operation
    with an event by a whole wait after its end, and the first of these.
    """
    events = events.dropna(subset=["key", "at"])
    times = {key: sorted(some) for key, some in events.groupby("key")["at"]}
    seen: set[str] = set()
    tardy: dict[str, tuple[dict[Any, Any], list[datetime]]] = {}
    for row in operations.to_dict("records"):
        end = ends.get(row["op_id"])
        if end is None or end["outcome"] in seen:
            continue
        margin = (end["at"] - row["start"]) / 4
        first, last = row["start"] - margin, end["at"] + margin
        near = sorted(at for key in _keys(row) for at in times.get(key, []) if first <= at <= last)
        if near and end["at"] > row["start"]:
            seen.add(end["outcome"])
            yield row, list(dict.fromkeys(near))[:MOST]
        elif end["outcome"] == "expired" and "expired" not in tardy:
            last = end["at"] + (end["at"] - row["start"])
            after = sorted(at for key in _keys(row) for at in times.get(key, []) if end["at"] < at <= last)
            if after:
                tardy["expired"] = row, after[:1]
    for outcome, example in tardy.items():
        if outcome not in seen:
            yield example


def _row(row: dict[Any, Any], events: list[datetime], end: dict[str, Any], y: float) -> Iterator[str]:
    begin, over = row["start"], end["at"]
    first, last = min(begin, *events), max(over, *events)
    scale = (RIGHT - LEFT) / ((last - first).total_seconds() or 1)

    def x(at: datetime) -> str:
        return f"{LEFT + (at - first).total_seconds() * scale:.1f}"

    name = escape(row["op_id"] if len(row["op_id"]) < 20 else row["op_id"][:19] + "…")
    yield f'<text class="name" x="{LEFT - 14}" y="{y + 4:g}">{name}</text>'
    width = max(float(x(over)) - float(x(begin)), 2)
    yield f'<rect class="bar" x="{x(begin)}" y="{y - 7:g}" width="{width:.1f}" height="14" rx="3"/>'
    for at in events:
        yield f'<path class="event" d="M{x(at)} {y - 11:g} V{y + 11:g}"/>'
    yield f'<circle class="{end["outcome"]}" cx="{x(over)}" cy="{y:g}" r="6"/>'
    waited = pd.Timedelta(milliseconds=end["waited_ms"]).floor("s")
    yield f'<text x="{RIGHT + 14}" y="{y - 1:g}">{end["outcome"]}</text>'
    yield f'<text class="note" x="{RIGHT + 14}" y="{y + 12:g}">after {escape(_said(waited))}</text>'


def _said(waited: pd.Timedelta) -> str:
    parts = waited.components
    units = [(parts.days, "d"), (parts.hours, "h"), (parts.minutes, "min"), (parts.seconds, "s")]
    return " ".join([f"{count} {unit}" for count, unit in units if count][:2])


_STYLE = """<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.name { text-anchor: end } .note { font-size: 11px; fill: #59636e }
.bar { fill: #d0d7de } .event { stroke: #1f2328; stroke-width: 1.5 }
.completed { fill: #1a7f37 } .expired { fill: #c62828 } .cancelled { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .note { fill: #9198a1 } .bar { fill: #3d444d } .event { stroke: #e6edf3 }
  .completed { fill: #3fb950 } .expired { fill: #ff7b72 }
}
</style>"""


def main(folder: Path) -> None:
    """Draw all, from the tables in this folder's `questions`."""
    os.chdir(folder)
    if not Path("examples").exists():  # the page reads some tables from there
        Path("examples").symlink_to(ROOT / "examples")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for question in sections():
        (PICTURES / f"{slug(question)}.svg").write_text(draw(question, run(question)), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
