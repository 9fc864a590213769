"""Write docs/reference/names.md: every public name, how it is called, and what it has.

    python -m scripts.public_names          write the page
    python -m scripts.public_names --print  print it

The page is committed, so a change shows what it does to the surface; tests/test_public_names.py compares both.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Never, Self, get_args, get_type_hints, is_typeddict

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "names.md"
MODULES: Final = (
    "abeyant",
    "abeyant.aio",
    "abeyant.broker",
    "abeyant.broker.checks",
    "abeyant.broker.control",
    "abeyant.broker.simulation",
    "abeyant.broker.simulation.strategies",
    "abeyant.metrics",
    "abeyant.pipeline",
    "abeyant.resolver",
    "abeyant.simulation",
    "abeyant.tables",
    "abeyant.window",
)
"""The public modules. What is not in their `__all__` may change at any time."""

_SHORT: Final = re.compile(r"[^<>]{0,40}")  # the text of a default
_INTERNAL: Final = "Not for users."
_FORMER: Final = "Former name of "
_SOURCES: Final = Path(__file__).resolve().parents[1] / "src"
_PLUGINS: Final = ("pytest_abeyant", "pytest_abeyant_kafka")
_HEAD: Final = """\
# All names

Every public name: how it is called, the first sentence of what it says, and its methods and attributes. Types are on
the page of each name. Former names, which go on working, are at the end.
"""


def names(module: ModuleType) -> list[str]:
    """Return the public names of a module, sorted without regard to case."""
    public = [name for name in module.__all__ if not name.startswith("_")]
    return sorted(public, key=lambda name: (name.lower(), name))


def signature(thing: Any) -> inspect.Signature | None:
    """Return how a function or class is called; None for what is not: a constant, an enum, an abstract class.

    Raises ValueError or TypeError for a callable that does not say so.
    """
    if not _is_called(thing):
        return None
    if is_typeddict(thing):
        parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in thing.__annotations__]
        return inspect.Signature(parameters)
    return inspect.signature(thing)


def _is_called(thing: Any) -> bool:
    if not inspect.isclass(thing):
        return inspect.isroutine(thing)
    if issubclass(thing, BaseException):
        return inspect.isfunction(thing.__init__)
    if _INTERNAL in _docstring_of_init(thing):
        return False
    made = thing.__init__ is not object.__init__ or thing.__new__ is not object.__new__
    return made and not (issubclass(thing, enum.Enum) or inspect.isabstract(thing))


def members(kind: type[Any]) -> dict[str, Any]:
    """Return the public methods and attributes of a class, inherited from other classes of the package included.

    An attribute of instances is public if a docstring follows where it is declared; its value here is None.
    """
    found = dict.fromkeys(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else {}
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "abeyant":
            found |= {name: getattr(kind, name) for name in vars(base) if name[0] != "_" and name not in found}
            described = () if is_typeddict(kind) else _described(base)
            found |= dict.fromkeys(name for name in described if name not in found)
    return {
        name: found[name]
        for name in sorted(found, key=str.lower)
        if not any(mark in _docstring(kind, name) for mark in (_INTERNAL, _FORMER))
    }


def _docstring(kind: type[Any], name: str) -> str:
    """Return the docstring of a method or property, as the source has it: a compiled class may have none."""
    for base in kind.__mro__:
        for one in _source(base):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == name:
                return ast.get_docstring(one) or ""
    return ""


@cache
def source_of(module: str) -> ast.Module:
    """Return the source of a module: a compiled one does not tell all."""
    path = _SOURCES.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def _source(kind: type[Any]) -> list[ast.stmt]:
    """Return the body of a class, as its source has it: a compiled class does not tell."""
    tree = source_of(kind.__module__) if kind.__module__.partition(".")[0] == "abeyant" else ast.Module([], [])
    return next((node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__), [])


def _init(kind: type[Any]) -> ast.FunctionDef | None:
    functions = (one for one in _source(kind) if isinstance(one, ast.FunctionDef))
    return next((one for one in functions if one.name == "__init__"), None)


def _docstring_of_init(kind: type[Any]) -> str:
    init = _init(kind)
    return (ast.get_docstring(init) or "") if init is not None else ""


def _described(kind: type[Any]) -> Iterator[str]:
    """Yield the public attributes below which the class or its `__init__` has a docstring."""
    init = _init(kind)
    for body in (_source(kind), [] if init is None else init.body):
        for one, below in pairwise(body):
            if not isinstance(one, ast.Assign | ast.AnnAssign) or not isinstance(below, ast.Expr):
                continue
            said = below.value.value if isinstance(below.value, ast.Constant) else None
            target = one.target if isinstance(one, ast.AnnAssign) else one.targets[0]
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "_")
            if isinstance(said, str) and _INTERNAL not in said and not name.startswith("_"):
                yield name


def _plain(thing: Any) -> str:
    """Return a signature without types. Options that are typed one by one (PEP 692) are listed, with their defaults."""
    of = signature(thing)
    if of is None:
        return ""
    shown = [
        one.replace(annotation=inspect.Parameter.empty, default=_default(thing, one))
        for one in of.parameters.values()
        if one.annotation not in ("Never", Never)  # there for the error message
    ]
    text = str(of.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    hints = get_type_hints(thing) if text.endswith(", **options)") else {}
    options = get_args(hints.get("options")) or (hints.get("options"),)
    listed = getattr(options[0], "__annotations__", None)
    if not listed:
        return text
    return text.removesuffix("**options)") + f"*, {', '.join(_with_default(thing, name) for name in listed)})"


def _with_default(thing: Any, option: str) -> str:
    """Return an option that a function passes on, with the default of the function that it is passed to."""
    homes = {"abeyant.pipeline": ("resolve_stream", "tables.resolve"), "abeyant.simulation": ("run",)}
    package = next(name for name in homes if thing.__module__.startswith(name))
    of = [getattr(import_module(package), name) for name in homes[package] if "." not in name]
    if package == "abeyant.pipeline":
        of.append(import_module("abeyant.pipeline.resolver.tables").resolve)
    found = [one for function in of for name, one in inspect.signature(function).parameters.items() if name == option]
    return f"{option}={found[0].default!r}"


def _default(thing: Any, one: inspect.Parameter) -> Any:
    """Return a default for the page: as it is, as a name of what has one, or elided."""
    default = one.default
    if default is one.empty or _SHORT.fullmatch(repr(default)):
        return default
    fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
    for field in fields:
        if field.name == one.name and field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    name = getattr(default, "__name__", "...")
    return _Text(name if name.isidentifier() else "...")


class _Text:
    """A default whose own text would say nothing, or too much."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def summary(thing: Any) -> str:
    """Return the first paragraph of its docstring on one line, or the value of a constant."""
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return f"`{thing!r}`"


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield _HEAD
    former: list[str] = []
    for module in map(import_module, MODULES):
        yield f"## `{module.__name__}`\n"
        for name in names(module):
            thing = getattr(module, name)
            known = getattr(thing, "__name__", name)
            if known != name and known in module.__all__:
                former.append(f"- `{module.__name__}.{name}`: `{known}`")
                continue
            line = f"- `{name}{_plain(thing)}`: {summary(thing)}"
            if inspect.isclass(thing) and (has := members(thing)):
                line += f" *{', '.join(has)}*"
            yield line
            former += _former_members(module.__name__, thing)
        yield ""
    yield from _schemas()
    yield from _pytest()
    yield "## Former names\n\nPrograms that use them go on working.\n"
    yield from dict.fromkeys(former)


def _former_members(module: str, thing: Any) -> Iterator[str]:
    for name in dir(thing) if inspect.isclass(thing) else ():
        said = _docstring(thing, name)
        if said.startswith(_FORMER):
            yield f"- `{module}.{thing.__name__}.{name}`: {said.removeprefix(_FORMER).rstrip('.')}"


def _schemas() -> Iterator[str]:
    """Yield the tables of the pipeline: Spark schemas, by name, with their columns."""
    schemas = import_module("abeyant.pipeline.schemas")
    yield "## `abeyant.pipeline.schemas`\n"
    for name, schema in sorted(vars(schemas).items()):
        if name.isupper() and not name.startswith("_") and hasattr(schema, "fieldNames"):
            yield f"- `{name}`: {', '.join(schema.fieldNames())}"
    yield ""


def _pytest() -> Iterator[str]:
    """Yield the markers, fixtures and options of the plugins, which every pytest run has where abeyant is installed."""
    yield "## pytest\n"
    for plugin in map(import_module, _PLUGINS):
        marker, _, said = plugin._MARKER.partition(": ")
        yield f"- marker `{marker}`: {said}"
        for node in source_of(plugin.__name__).body:
            if isinstance(node, ast.FunctionDef) and "pytest.fixture" in map(ast.unparse, node.decorator_list):
                yield f"- fixture `{node.name}`: {(ast.get_docstring(node) or '').partition(chr(10))[0]}"
        options = _Options()
        getattr(plugin, "pytest_addoption", lambda _: None)(options)
        yield from options.lines
    yield ""


class _Options:
    """What a plugin adds its options to."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def getgroup(self, _: str) -> Self:
        return self

    def addoption(self, name: str, *, help: str, metavar: str = "", **_: object) -> None:  # noqa: A002  pytest's
        if help != argparse.SUPPRESS:
            self.lines.append(f"- option `{f'{name} {metavar}'.rstrip()}`: {help}")


def main() -> None:
    """Write or print the page."""
    text = "\n".join(page()).rstrip() + "\n"
    if "--print" in sys.argv:
        sys.stdout.write(text)
    else:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
