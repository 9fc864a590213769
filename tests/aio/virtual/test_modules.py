"""The modules of virtual time, by their imports: those for the type checker count too."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from abeyant.aio import virtual

NAME = virtual.__name__
FILES = {f"{NAME}.{path.stem}": path for path in Path(virtual.__file__).parent.glob("*.py") if path.stem != "__init__"}


def imported(path: Path) -> set[str]:
    found = [node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return FILES.keys() & set(found)


def test_they_form_no_circle() -> None:
    order = list(TopologicalSorter({name: imported(path) for name, path in FILES.items()}).static_order())
    assert set(order) == FILES.keys()  # a circle raises CycleError, which names it
    assert order.index(f"{NAME}.timeline") < order.index(f"{NAME}.mount") < order.index(f"{NAME}.clock")
