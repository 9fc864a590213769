"""Call every method of every compiled class on an object that `__new__` made and `__init__` never saw.

Run as a program, in a process of its own: what goes wrong here is a segmentation fault. Prints a line before each call,
so that the last one names the culprit, and after it what the call said.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import types
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import abeyant

PACKAGE = Path(abeyant.__file__).parent
# Of the methods with underscores those that the language calls; others are called by what has looked.
ASKED_BY_PYTHON = {"__bool__", "__call__", "__contains__", "__enter__", "__exit__", "__len__", "__reduce__", "__repr__"}


def modules() -> Iterator[types.ModuleType]:
    """Those that are compiled, or would be: with a .pxd and a .py."""
    for path in sorted(PACKAGE.rglob("*.pxd")):
        name = ".".join(("abeyant", *path.relative_to(PACKAGE).with_suffix("").parts))
        if path.with_suffix(".py").exists():
            yield importlib.import_module(name)


def classes() -> Iterator[type[Any]]:
    """Those of the modules that C made: no named tuples, and nobody else's in new clothes."""
    for module in modules():
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == module.__name__:
                bases = [base for base in kind.__mro__ if base is not object]
                if all(base.__module__.startswith("abeyant.") for base in bases):
                    yield kind


def arguments() -> list[Any]:
    """One of each kind of thing that the methods take."""
    timer = abeyant.ManualTimer()
    return [
        1, 0.5, None, "key", ["key"], print, array("q", [1, 2, 3, 4]), bytearray(4), timer, timer.call_later(1, print),
        abeyant.DelayedOperation(1),
    ]  # fmt: skip


def calls(method: Any) -> Iterator[list[Any]]:
    """Arguments for it: of every kind, and as many as its signature says, or up to two where it tells none."""
    try:
        least = [one for one in inspect.signature(method).parameters.values() if one.default is one.empty]
        counts = [sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in least)]
    except (TypeError, ValueError):
        counts = [0, 1, 2]
    for count in counts:
        if count <= 2:
            yield from map(list, itertools.product(arguments(), repeat=count))
        else:
            yield from ([one] * count for one in arguments())


def new(kind: Any) -> Any:
    return kind.__new__(kind)


def main() -> None:
    for kind in classes():
        for name in sorted(name for name in dir(kind) if name in ASKED_BY_PYTHON or not name.startswith("_")):
            print(kind.__module__, kind.__qualname__, name, flush=True)
            said: dict[str, None] = {}
            method = getattr(new(kind), name, None) if callable(getattr(kind, name)) else None
            for given in [[]] if method is None else calls(method):
                fresh = new(kind)
                try:
                    answer = getattr(fresh, name)
                    if method is not None:
                        answer = answer(*given)
                except Exception as error:  # noqa: BLE001  which kind of it is what the test looks at
                    said[f"{type(error).__name__}: {error}"] = None
                else:
                    said[f"returned {type(answer).__name__}"] = None
            for each in said:
                print(f"    {each}", flush=True)
    print("alive", flush=True)


if __name__ == "__main__":
    main()
