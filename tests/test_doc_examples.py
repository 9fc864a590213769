"""The examples in docstrings of public modules and names run as they stand; none is there that does not."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.public_names import MODULES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SRC = Path(__file__).parents[1] / "src"
CODE = re.compile(r"\n\n {4,}(?!>>>|\.\.\.)[^\n]*[=(]")  # indented as code is
FLAGS = doctest.ELLIPSIS | doctest.FAIL_FAST


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def docstrings() -> Iterator[tuple[str, str, str]]:
    """Public module, name and docstring: of each public module, name, method and attribute, as the source has it."""
    seen: list[object] = []  # some are in two modules
    for module in MODULES:
        found = import_module(module)
        yield module, module, found.__doc__ or ""
        for name in found.__all__:
            thing = getattr(found, name)
            home = getattr(thing, "__module__", "")
            if not home.startswith("abeyant") or thing in seen:
                continue
            seen.append(thing)
            tree = parsed(SRC.joinpath(*home.split(".")).with_suffix(".py"))
            own = next((node for node in tree.body if getattr(node, "name", None) == thing.__name__), None)
            for node in ast.walk(own) if own is not None else ():
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield module, f"{module}.{name}:{node.name}", ast.get_docstring(node) or ""


EXAMPLES = {name: (module, text) for module, name, text in docstrings() if ">>>" in text}


def run(name: str, **more: Any) -> None:
    module, text = EXAMPLES[name]
    names = {"asyncio": import_module("asyncio")}
    for of in ("abeyant", module):
        names |= {one: getattr(import_module(of), one) for one in import_module(of).__all__}
    names |= more
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.append).failed == 0, "".join(told)


@pytest.mark.parametrize("name", [name for name, (module, _) in EXAMPLES.items() if module != "abeyant.pipeline"])
def test_an_example_shows_what_it_says(name: str) -> None:
    run(name)


def test_examples_on_spark_show_what_they_say(spark: SparkSession) -> None:
    on_spark = [name for name, (module, _) in EXAMPLES.items() if module == "abeyant.pipeline"]
    for name in on_spark:
        run(name, spark=spark)
    assert on_spark


def test_the_main_names_have_an_example() -> None:
    main = {
        "abeyant": "Calendar DelayedOperation IdleDetector ManualTimer Purgatory Resolver SystemTimer",
        "abeyant.aio": "Purgatory Timer run_virtual virtual_time",
        "abeyant.broker": "Cluster",
        "abeyant.metrics": "Collector",
        "abeyant.pipeline": "resolve",
        "abeyant.simulation": "run",
        "abeyant.tables": "resolve",
        "abeyant.window": "serve",
    }
    wanted = {f"{module}.{name}:{name}" for module, names in main.items() for name in names.split()}
    assert wanted - EXAMPLES.keys() == set()


def test_no_example_is_there_that_is_not_run() -> None:
    assert [name for _, name, text in docstrings() if CODE.search(text)] == []
