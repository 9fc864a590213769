"""Each law of the design has tests, and `pytest -m` finds them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from laws import all_laws, laws_of

ROOT = Path(__file__).parents[1]


def test_the_laws_are_those_of_the_docs() -> None:
    laws, resolve = ((ROOT / "docs" / name).read_text() for name in ("laws.md", "resolve.md"))
    rows = re.findall(r"^\| ([TPK]\d+) \|", laws, re.MULTILINE)
    items = re.findall(r"^- (O\d) ", resolve, re.MULTILINE)
    assert sorted(rows + items) == sorted(all_laws())


def test_each_law_has_a_test() -> None:
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path == Path(__file__):
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                found |= laws_of(node.name, ast.get_docstring(node), ast.get_docstring(tree))
    assert set(all_laws()) - found == set()


@pytest.mark.parametrize(
    ("name", "docstring", "laws"),
    [
        ("test_t3_it_runs_once", None, {"T3"}),
        ("test_t1_t10_both[p2]", "", {"T1", "T10", "P2"}),
        ("test_outcomes", "Laws O1-O3, and P5.", {"O1", "O2", "O3", "P5"}),
        ("test_port_k99_at2", "KIP-848, T42, MT1", set()),
    ],
)
def test_laws_are_read_from_names_and_docstrings(name: str, docstring: str | None, laws: set[str]) -> None:
    assert laws_of(name, docstring) == laws


def test_t3_this_test_is_marked(request: pytest.FixtureRequest) -> None:
    assert {mark.name for mark in request.node.iter_markers()} == {"T3"}
