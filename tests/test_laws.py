"""Each law of the design has tests, and `pytest -m` finds them; `make test` has some of each law and of each room."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from laws import all_laws, laws_of

TESTS = Path(__file__).parent
ROOT = TESTS.parent


def test_the_laws_are_those_of_the_docs() -> None:
    laws, resolve = ((ROOT / "docs" / name).read_text() for name in ("laws.md", "resolve.md"))
    rows = re.findall(r"^\| ([TPK]\d+) \|", laws, re.MULTILINE)
    items = re.findall(r"^- (O\d) ", resolve, re.MULTILINE)
    assert sorted(rows + items) == sorted(all_laws())


def is_slow(node: ast.AST) -> bool:
    """Whether a decorator, or what is given to `pytestmark`, marks all of it as slow."""
    marks = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return any(ast.unparse(mark) == "pytest.mark.slow" for mark in marks)


@cache
def all_tests() -> list[tuple[Path, bool, set[str]]]:
    """Each test: its file, relative to the folder of all tests; whether it is one of the quick; its laws."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        assigned = (node for node in tree.body if isinstance(node, ast.Assign))
        marks = [node.value for node in assigned if ast.unparse(node.targets[0]) == "pytestmark"]
        slow = any(map(is_slow, marks))
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                laws = laws_of(node.name, ast.get_docstring(node), ast.get_docstring(tree))
                quick = not slow and not any(map(is_slow, node.decorator_list))
                found.append((path.relative_to(TESTS), quick, laws))
    return found


def with_a_target_of_their_own() -> set[str]:
    """The folders that `make test` and `make test-all` leave out."""
    [call] = re.findall(r"^test: .*\n\t(.+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(re.findall(r"--ignore=tests/(\S+)", call))


def test_each_law_has_a_quick_test() -> None:
    out = with_a_target_of_their_own()
    found = (
        laws for file, quick, laws in all_tests() if quick and file.parts[0] not in out and file.name != "test_laws.py"
    )
    assert set(all_laws()) - set().union(*found) == set()


# It takes minutes: two type checkers that read all anew.
NEVER_QUICK = {"type_checkers"}


def test_each_room_has_a_quick_test() -> None:
    out = with_a_target_of_their_own()
    rooms = {file.parent for file, _, _ in all_tests() if file.parts[0] not in out}
    quick = {file.parent for file, quick, _ in all_tests() if quick}
    assert {str(room) for room in rooms - quick} == NEVER_QUICK


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
