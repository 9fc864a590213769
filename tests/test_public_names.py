"""The list of all names is that of the code, and says how each is called: compiled and interpreted alike."""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest

import abeyant
from scripts.public_names import MODULES, PAGE, members, names, signature, source_of
from seeds import with_slow


@pytest.mark.parametrize("pure", with_slow(["", "1"], ["1"]), ids=["compiled", "interpreted"])
def test_the_page_of_all_names_is_that_of_the_code(pure: str) -> None:
    call = [sys.executable, "-m", "scripts.public_names", "--print"]
    told = subprocess.run(
        call, cwd=PAGE.parents[2], env={**os.environ, "ABEYANT_PURE": pure}, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == PAGE.read_text().splitlines(), "python -m scripts.public_names writes it anew"


@pytest.mark.parametrize("module", MODULES)
def test_every_name_and_method_says_how_it_is_called(module: str) -> None:
    found = import_module(module)
    assert names(found)
    for name in names(found):
        thing = getattr(found, name)
        signature(thing)  # raises for one that is called and does not say how
        for member, of in members(thing).items() if inspect.isclass(thing) else ():
            assert not inspect.isroutine(of) or inspect.signature(of), f"{module}.{name}.{member}"


@pytest.mark.parametrize("module", MODULES)
def test_dir_lists_every_name(module: str) -> None:
    found: Any = import_module(module)
    assert set(found.__all__) <= set(dir(found))


SOURCE = PAGE.parents[2] / "src" / "abeyant"
OTHERS = {"JAVA_HOME", "PATH", "SIGSTOP", "PYTHONHASHSEED"}


@cache
def classes() -> set[str]:
    """The names of all classes of the package."""
    return {name for path in SOURCE.rglob("*.py") for name in re.findall(r"^class ([A-Z]\w+)", path.read_text(), re.M)}


@cache
def importable() -> dict[str, list[Any]]:
    """Every name of every public module, and what has it."""
    found: dict[str, list[Any]] = {}
    for module in map(import_module, MODULES):
        for name in module.__all__:
            found.setdefault(name, []).append(getattr(module, name))
    return found


def everything() -> list[tuple[str, Any]]:
    return [(name, thing) for name, things in importable().items() for thing in things]


def definitions() -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef]]:
    """Each public function, class and method, as its source has it."""
    for name, thing in everything():
        for kind in thing.__mro__ if inspect.isclass(thing) else (inspect.unwrap(thing),) if callable(thing) else ():
            if not getattr(kind, "__module__", "").startswith("abeyant."):
                continue
            for node in source_of(kind.__module__).body:
                if getattr(node, "name", None) == kind.__name__:
                    public = members(kind) if inspect.isclass(kind) else {}
                    for one in ast.walk(node):
                        if isinstance(one, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and (
                            one is node or one.name in public or one.name == "__init__"
                        ):
                            yield f"{name}: {one.name}", one


def test_what_is_returned_and_raised_can_be_imported_from_a_public_module() -> None:
    hidden = set()
    for where, node in definitions():
        returned = "" if isinstance(node, ast.ClassDef) or node.returns is None else ast.unparse(node.returns)
        raised = re.findall(r"\b[A-Z]\w+Error\b", ast.get_docstring(node) or "")
        for name in {*re.findall(r"(?<!\.)\b[A-Z]\w+", returned), *raised} & classes():
            if name not in importable() and not hasattr(asyncio, name):
                hidden.add((where, name))
    assert sorted(hidden) == []


def test_what_a_docstring_names_is_there() -> None:
    """Constants, `schemas.TABLE`, and `Class.member` of public classes."""
    schemas = vars(import_module("abeyant.pipeline.schemas"))
    wrong = set()
    for where, node in definitions():
        for named in re.findall(r"`([\w.]+)(?:\([^`]*\))?`", ast.get_docstring(node) or ""):
            first, _, last = named.rpartition(".")
            kinds = [one for one in importable().get(first, ()) if inspect.isclass(one)]
            if first == "schemas":
                is_there = last in schemas
            elif kinds:
                is_there = any(hasattr(kind, last) or last in members(kind) for kind in kinds)
            elif named.isupper() and len(named) > 4:
                is_there = named in importable() or named in OTHERS or hasattr(builtins, named)
            else:
                continue
            if not is_there:
                wrong.add((where, named))
    assert sorted(wrong) == []


def test_names_for_annotations_refuse_to_be_made() -> None:
    with pytest.raises(TypeError, match=r"abeyant\.Timer is a base class: create a SystemTimer, a ManualTimer"):
        abeyant.Timer()
    with pytest.raises(TypeError, match=r"abeyant\.Timer is a base class"):
        abeyant.Timer(0.001, 64, 0.0, None)  # type: ignore[arg-type]


def test_every_error_of_the_package_is_an_abeyant_error() -> None:
    errors = [one for _, one in everything() if inspect.isclass(one) and issubclass(one, Exception)]
    assert [one for one in errors if not issubclass(one, abeyant.AbeyantError | Warning)] == []
