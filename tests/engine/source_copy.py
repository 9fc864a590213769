"""Private, interpreted copies of the engine, made from its source text.

For two uses. Compiled, the inner structures have no Python surface, so the tests of these take a copy. And a copy
may be made with a deliberate mistake in it, to see whether the tests notice.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import abeyant.engine  # noqa: F401  found by its name below

# In the order of import, so that each finds the copies of those below it.
MODULES = ("memory", "collector", "slab", "delay_queue", "wheel")

_numbers = itertools.count()


class Edit(NamedTuple):
    module: str
    old: str
    new: str


@contextmanager
def engine_copy(*edits: Edit) -> Iterator[Any]:
    """The copied modules as attributes: `copy.wheel.TimingWheel`, `copy.slab.Slab`, ..."""
    package = f"engine_copy_{next(_numbers)}"
    parent = ModuleType(package)
    parent.__path__ = []
    sys.modules[package] = parent
    try:
        with modules_copy(package, "abeyant.engine", MODULES, edits) as copies:
            yield copies
    finally:
        del sys.modules[package]


@contextmanager
def modules_copy(package: str, original: str, names: Sequence[str], edits: Sequence[Edit]) -> Iterator[Any]:
    """Copies of the modules `names` of `original`, in `package`; importing one another, and the engine, from there."""
    folder = Path(str(sys.modules[original].__file__)).parent
    copies = SimpleNamespace(package=package)
    try:
        for name in names:
            path = folder / f"{name}.py"
            text = path.read_text()
            for edit in edits:
                if edit.module == name:
                    assert text.count(edit.old) == 1, f"{name}.py has changed: look for {edit.old!r} anew"
                    text = text.replace(edit.old, edit.new)
            for imported in ("abeyant.engine", original):
                text = text.replace(f"from {imported}.", f"from {package}.")
            spec = spec_from_file_location(f"{package}.{name}", path)
            assert spec is not None
            module = module_from_spec(spec)
            sys.modules[module.__name__] = module
            exec(compile(text, str(path), "exec"), module.__dict__)
            setattr(copies, name, module)
        yield copies
    finally:
        for name in names:
            sys.modules.pop(f"{package}.{name}", None)
