"""Draw the rooms of the package and their imports: docs/images/house.svg.

    python -m scripts.draw_house

A box is a folder of `src/abeyant`; an arrow points to a room that it imports, types included. An arrow that follows
from others (a imports b, b imports c, a imports c) is left out. The folders of large rooms stand in their box.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "abeyant"
PICTURE = ROOT / "docs" / "images" / "house.svg"

WORDS = {
    "cli": "the command abeyant",
    "pipeline": "Apache Spark",
    "broker": "a Kafka-compatible cluster",
    "simulation": "all chance from one seed",
    "tables": "resolve, without Spark",
    "pages": "what reports are made of",
    "metrics": "for Prometheus",
    "aio": "event loop, virtual time",
    "web": "HTTP for what looks in",
    "window": "a live page",
    "purgatory": "operations that wait, by key",
    "resolver": "complete or expire, live",
    "idle": "idle time-outs",
    "timer": "the wheel with a clock",
    "kernels": "columns of integers",
    "engine": "the timing wheel",
}
PLACES = {
    "cli": 440, "window": 310, "broker": 310, "pipeline": 670, "simulation": 100, "aio": 210, "idle": 100,
    "purgatory": 310, "web": 513, "tables": 675, "pages": 780, "metrics": 305, "resolver": 675, "timer": 210,
    "kernels": 675, "engine": 440,
}  # fmt: skip
"""The middle of each room's box, in pixels from the left. Its height follows from what it imports."""
WIDTH, WIDE, NARROW, HIGH, GAP, ABOVE = 880, 330, 190, 52, 20, 44  # pixels
INSIDE = 3  # names of folders a line


def rooms() -> list[str]:
    """Return the names of the rooms: the folders of the package, and the command."""
    return [*sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")), "cli"]


def imports(names: list[str]) -> dict[str, set[str]]:
    """Return which rooms each room imports, wherever the import stands."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        folder = PACKAGE / name
        for path in [PACKAGE / "cli.py"] if name == "cli" else sorted(folder.rglob("*.py")):
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            targets = imported(module, ast.parse(path.read_text(encoding="utf-8")))
            # A name of the package itself comes from timer, purgatory or idle.
            found[name] |= {_room(target, names) for target in targets}
        found[name] -= {name, ""}
    return found


def imported(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield what a module of the package imports from it, anywhere in its tree; names are those below `abeyant`."""
    package = ["abeyant", *name.split(".")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (full.partition(".")[2] for full in found if full.partition(".")[0] == "abeyant")


def _room(target: str, names: list[str]) -> str:
    word = target.partition(".")[0]
    if word in names:
        return word
    return next((room for room, known in _SURFACE.items() if word in known), "")


_SURFACE = {
    "purgatory": ("Purgatory", "DelayedOperation", "Outcome"),
    "resolver": ("Resolver", "Resolution", "Watch", "Calendar"),
    "idle": ("IdleDetector",),
    "timer": ("SystemTimer", "ManualTimer", "TimerTask"),
}


def levels(found: Mapping[str, set[str]]) -> dict[str, int]:
    """Return how far each room is above the ground: one more than the highest room that it imports."""
    heights: dict[str, int] = {}
    for name in TopologicalSorter(found).static_order():  # raises CycleError where there is none
        heights[name] = 1 + max((heights[other] for other in found[name]), default=-1)
    return heights


def reduced(found: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Leave out each import that follows from others."""

    def reach(name: str) -> set[str]:
        return found[name] | {far for other in found[name] for far in reach(other)}

    return {
        name: {other for other in others if not any(other in reach(between) for between in others - {other})}
        for name, others in found.items()
    }


def inside(name: str) -> list[str]:
    """Return the folders of a large room, in alphabetical order; none for a small one."""
    found = sorted(path.parent.name for path in (PACKAGE / name).glob("*/__init__.py"))
    return found if len(found) > 2 else []


def draw() -> str:
    """Return the picture as SVG, which follows the reader's light or dark mode."""
    names = rooms()
    for name in names:
        if name not in PLACES or name not in WORDS:
            raise SystemExit(f"{name} has no place: add it to PLACES and WORDS in {Path(__file__).name}")
    found = imports(names)
    heights = levels(found)
    rows = [[name for name in names if heights[name] == level] for level in range(max(heights.values()) + 1)][::-1]
    boxes: dict[str, tuple[float, float, float, float]] = {}
    top = float(GAP)
    for row in rows:
        for name in row:
            wide, high = _size(name)
            boxes[name] = (PLACES[name] - wide / 2, top, wide, high)
        top += max(boxes[name][3] for name in row) + ABOVE
    arrows = [
        _arrow(boxes[name], boxes[other]) for name, others in sorted(reduced(found).items()) for other in sorted(others)
    ]
    said = "; ".join(f"{name} imports {', '.join(sorted(found[name])) or 'nothing'}" for name in names)
    bottom = top - ABOVE + GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom:g}" '
            f'viewBox="0 0 {WIDTH} {bottom:g}" '
            f'role="img" aria-label="{escape(f"The rooms of the package. {said}.")}">',
            _STYLE,
            *arrows,
            *(line for name in names for line in _box(name, boxes[name])),
            "</svg>\n",
        ]
    )


def _size(name: str) -> tuple[int, int]:
    lines = -(-len(inside(name)) // INSIDE)
    return (WIDE, HIGH + 6 + 17 * lines) if lines else (NARROW, HIGH)


def _box(name: str, box: tuple[float, float, float, float]) -> list[str]:
    left, top, wide, high = box
    middle = left + wide / 2
    words = WORDS.get(name, "")
    folders = inside(name)
    lines = [" · ".join(folders[first : first + INSIDE]) for first in range(0, len(folders), INSIDE)]
    return [
        f'<rect x="{left:g}" y="{top:g}" width="{wide:g}" height="{high:g}" rx="8"/>',
        f'<text class="name" x="{middle:g}" y="{top + 22:g}">{escape(name)}</text>',
        f'<text class="note" x="{middle:g}" y="{top + 40:g}">{escape(words)}</text>',
        *(
            f'<text class="inside" x="{middle:g}" y="{top + 62 + 17 * number:g}">{escape(line)}</text>'
            for number, line in enumerate(lines)
        ),
    ]


def _arrow(source: tuple[float, float, float, float], target: tuple[float, float, float, float]) -> str:
    start, end = source[0] + source[2] / 2, target[0] + target[2] / 2
    top, bottom = source[1] + source[3], target[1]
    start += max(min(end - start, source[2] / 3), -source[2] / 3)
    end += max(min(start - end, target[2] / 3), -target[2] / 3)
    bend = (bottom - top) / 2
    return (
        f'<path d="M{start:g} {top:g} C{start:g} {top + bend:g} {end:g} {bottom - bend:g} {end:g} {bottom - 6:g}" '
        'marker-end="url(#tip)"/>'
    )


_STYLE = """<style>
text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; text-anchor: middle }
.name { font-size: 16px; font-weight: 600 } .note { font-size: 13px; fill: #59636e }
.inside { font-size: 12px; fill: #59636e }
rect { fill: #ffffff; stroke: #8c959f } #tip path { fill: #8c959f }
path { fill: none; stroke: #8c959f; stroke-width: 1.3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .note, .inside { fill: #9198a1 } rect { fill: #151b23; stroke: #6e7681 }
  path { stroke: #6e7681 } #tip path { fill: #6e7681 }
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z"/></marker></defs>"""


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"drawn: {PICTURE.relative_to(ROOT)}")
