"""The house's order below Spark: imports point down only, and the modules of virtual time form no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import abeyance

SOURCE = Path(abeyance.__file__).parent

# From the ground up. The rows below the last know nothing of what is above them.
ROWS: list[set[str]] = [
    {"errors", "reporting", "_interpreted"},
    {"engine"},
    {"timer"},
    {"idle"},
    {"purgatory"},
    {"aio"},
]
FLOOR = {room: number for number, row in enumerate(ROWS) for room in row}


def modules(under: Path) -> Iterator[tuple[str, Path]]:
    for path in under.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(path: Path) -> set[str]:
    """The modules of this package that a file names in imports, those for the type checker included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("abeyance.")}


def room(module: str) -> str:
    return module.split(".")[1]


def test_imports_point_down_only() -> None:
    assert set(FLOOR) <= {room(module) for module, _ in modules(SOURCE) if module != "abeyance"}
    upwards = {
        f"{module} imports {name}"
        for module, path in modules(SOURCE)
        if module != "abeyance"  # the front door: it shows what is in the rooms
        for name in imported(path)
        if room(module) in FLOOR and room(name) != room(module)
        if room(name) not in FLOOR or FLOOR[room(name)] >= FLOOR[room(module)]
    }
    assert not upwards


def test_the_modules_of_virtual_time_form_no_circle() -> None:
    known = dict(modules(SOURCE / "aio" / "virtual"))
    graph = {module: imported(path) & known.keys() for module, path in known.items()}
    assert len(graph) > 8
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle
