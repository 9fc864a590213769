"""Print, as JSON, how each public class, method and property of the core looks to those who ask Python about it.

Run as a program: in a process of its own, so that it sees the compiled modules or, with ABEYANT_PURE=1, their source.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pydoc
from collections.abc import Iterator
from typing import Any

ROOMS = ("abeyant", "abeyant.engine", "abeyant.timer", "abeyant.purgatory", "abeyant.aio")


def classes() -> Iterator[type[Any]]:
    """What the rooms export, and what those classes inherit from our own."""
    found: dict[type[Any], None] = {}
    for room in map(importlib.import_module, ROOMS):
        for name in room.__all__:
            kind = getattr(room, name)
            if inspect.isclass(kind):
                found.update({base: None for base in kind.__mro__ if base.__module__.startswith("abeyant.")})
    yield from found


def is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__init__"


def parameters(thing: Any) -> list[list[str]] | None:
    """Name, kind and default of each; None where there is nothing to tell, as of most exceptions."""
    if inspect.isclass(thing) and thing.__init__ is object.__init__:
        return None  # an abstract base
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return None
    return [[one.name, one.kind.name, repr(one.default)] for one in signature.parameters.values()]


def look() -> dict[str, dict[str, Any]]:
    looks: dict[str, dict[str, Any]] = {}
    for kind in classes():
        name = f"{kind.__module__}.{kind.__qualname__}"
        looks[name] = {"signature": parameters(kind), "doc": kind.__doc__, "help": pydoc.plain(pydoc.render_doc(kind))}
        for member, thing in vars(kind).items():
            if inspect.ismemberdescriptor(thing) or not is_public(member):
                continue
            if inspect.isroutine(thing) or inspect.isdatadescriptor(thing):
                signature = None
                if inspect.isroutine(thing):
                    signature = parameters(getattr(kind, member))
                    if signature and signature[0][0] == "self":
                        signature[0][1] = "SELF"  # which C takes by place only
                looks[f"{name}.{member}"] = {"signature": signature, "doc": thing.__doc__}
    return looks


if __name__ == "__main__":
    print(json.dumps(look()))
