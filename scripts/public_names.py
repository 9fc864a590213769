"""Write docs/reference/names.md: every public name, how it is called, and what it has.

    python -m scripts.public_names          write the page
    python -m scripts.public_names --print  print it

The page is committed, so a change shows what it does to the surface; tests/test_public_names.py compares both.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Never, get_args, get_type_hints, is_typeddict

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "names.md"
MODULES: Final = (
    "abeyant",
    "abeyant.aio",
    "abeyant.broker",
    "abeyant.broker.checks",
    "abeyant.broker.control",
    "abeyant.broker.simulation",
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
_HEAD: Final = """\
# All names

Every public name: how it is called, the first sentence of what it says, and its methods and attributes. Types are on
the page of each name.
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
    made = thing.__init__ is not object.__init__ or thing.__new__ is not object.__new__
    return made and not (issubclass(thing, enum.Enum) or inspect.isabstract(thing))


def members(kind: type[Any]) -> dict[str, Any]:
    """Return the public methods and attributes of a class, inherited from other classes of the package included."""
    found = dict.fromkeys(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else {}
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "abeyant":
            found |= {name: getattr(kind, name) for name in vars(base) if name[0] != "_" and name not in found}
    return {
        name: found[name]
        for name in sorted(found, key=str.lower)
        if _INTERNAL not in (getattr(found[name], "__doc__", None) or "")
    }


def _plain(thing: Any) -> str:
    """Return a signature without types. Options that are typed one by one (PEP 692) are listed."""
    of = signature(thing)
    if of is None:
        return ""
    shown = []
    for one in of.parameters.values():
        if one.annotation in ("Never", Never):  # there for the error message
            continue
        plain = one.replace(annotation=inspect.Parameter.empty)
        if one.default is not one.empty and not _SHORT.fullmatch(repr(one.default)):
            plain = plain.replace(default=_Elided())
        shown.append(plain)
    text = str(of.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    hints = get_type_hints(thing) if text.endswith(", **options)") else {}
    options = get_args(hints.get("options")) or (hints.get("options"),)
    listed = getattr(options[0], "__annotations__", None)
    return text.removesuffix("**options)") + f"*, {', '.join(listed)})" if listed else text


class _Elided:
    """A default whose text would say nothing, or too much."""

    def __repr__(self) -> str:
        return "..."


def summary(thing: Any) -> str:
    """Return the first paragraph of its docstring on one line, or the value of a constant."""
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return f"`{thing!r}`"


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield _HEAD
    for module in map(import_module, MODULES):
        yield f"## `{module.__name__}`\n"
        for name in names(module):
            thing = getattr(module, name)
            known = getattr(thing, "__name__", name)
            if known != name and known in module.__all__:
                yield f"- `{name}`: Another name of `{known}`."
                continue
            line = f"- `{name}{_plain(thing)}`: {summary(thing)}"
            if inspect.isclass(thing) and (has := members(thing)):
                line += f" *{', '.join(has)}*"
            yield line
        yield ""


def main() -> None:
    """Write or print the page."""
    text = "\n".join(page()).rstrip() + "\n"
    if "--print" in sys.argv:
        sys.stdout.write(text)
    else:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
