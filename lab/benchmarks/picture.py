"""Draw the README's picture: the longest stall of a thread while a million timers expire.

    python -m lab.benchmarks.picture        docs/benchmarks-figures.md -> docs/images/stall.svg

`make bench` draws it anew with the page. The figures are read from the page's table, so that picture and page agree.
The picture has a background of its own, light or dark as the reader's system is, so any page can show it.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

from lab.benchmarks.page import FIGURES

DOCS = Path(__file__).parents[2] / "docs"
SECTION, COLUMN = "Longest stall: expiries", "1 M"
BARS = {  # line of the table -> label in the picture; ours first
    "abeyant aio.EventLoop": "Abeyant, event loop",
    "abeyant SystemTimer": "Abeyant, SystemTimer",
    "Apache Kafka (JVM)": "Apache Kafka's timer, JVM",
    "uvloop": "uvloop",
    "asyncio": "asyncio",
}
WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 760, 224, 104, 84, 32, 18
STYLE = """\
text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.card { fill: #ffffff; stroke: #d0d7de } .bar { fill: #8c959f } .ours { fill: #c62828; font-weight: 600 }
.title { font-size: 16px; font-weight: 600 } .note { font-size: 13px; fill: #59636e }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .card { fill: #0d1117; stroke: #3d444d } .bar { fill: #6e7681 } .ours { fill: #ff7b72 }
  .note { fill: #9198a1 }
}"""


class MissingFigureError(Exception):
    """Raised if the page lacks a figure that the picture shows."""


def figures(page: str) -> dict[str, str]:
    """Return the longest stalls in ms, as written in the page's table, by the table's line (rival)."""
    section = re.search(rf"^## {SECTION}$(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    if section is None:
        raise MissingFigureError(
            f"the page has no section {SECTION!r}: run `make bench`, or `python -m lab.benchmarks --render`"
        )
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section[1].splitlines() if "|" in line]
    if not table or COLUMN not in table[0]:
        raise MissingFigureError(f"the table below {SECTION!r} has no column {COLUMN!r}")
    stalls = {line[0]: line[table[0].index(COLUMN)] for line in table[1:]}
    missing = [name for name in BARS if not re.fullmatch(r"[\d,.]+", stalls.get(name, ""))]
    if missing:
        raise MissingFigureError(f"the table below {SECTION!r} has no figure of {', '.join(missing)}")
    return {name: stalls[name] for name in BARS}


def svg(stalls: dict[str, str]) -> str:
    """Return the picture as SVG."""
    length = {name: float(figure.replace(",", "")) for name, figure in stalls.items()}
    scale = (WIDTH - LEFT - RIGHT) / max(length.values())
    height = TOP + STEP * len(BARS) + 22
    title = "One million timers expire at once: how long does your thread stall?"
    summary = "; ".join(f"{BARS[name]}: {figure} ms" for name, figure in stalls.items())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{escape(title)} {escape(summary)}.">',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'<text class="title" x="24" y="36">{escape(title)}</text>',
        '<text class="note" x="24" y="59">Longest stall, milliseconds. Shorter is better. '
        "Two cores, the garbage collector on.</text>",
    ]
    for place, (name, figure) in enumerate(stalls.items()):
        ours = " ours" if name.startswith("abeyant ") else ""
        top, long = TOP + STEP * place, max(length[name] * scale, 2)
        middle = top + BAR / 2 + 5
        lines += [
            f'<text class="name{ours}" x="{LEFT - 12}" y="{middle:g}" text-anchor="end">{escape(BARS[name])}</text>',
            f'<rect class="bar{ours}" x="{LEFT}" y="{top}" width="{long:.1f}" height="{BAR}" rx="2"/>',
            f'<text class="figure{ours}" x="{LEFT + long + 8:.1f}" y="{middle:g}">{figure} ms</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def draw(docs: Path = DOCS) -> Path:
    """Draw the picture from the page in `docs`; return the picture's path."""
    path = docs / "images" / "stall.svg"
    image = svg(figures((docs / FIGURES).read_text()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(image)
    return path


if __name__ == "__main__":
    try:
        print(f"picture: {draw()}")
    except (MissingFigureError, OSError) as error:
        sys.exit(f"benchmarks: error: {error}")
