"""Private, interpreted copies of the rivals, with a deliberate mistake in one of them: see engine/source_copy.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import abeyance.lab.rivals
from engine.source_copy import Edit, engine_copy

MODULES = (
    "precision", "rival", "heap", "delay_queue", "indexed_heap", "lazy_heap", "hashed_wheel", "kernel_wheel", "ring",
    "sorted_list", "unsorted_list",
)  # fmt: skip


@contextmanager
def rivals_copy(*edits: Edit) -> Iterator[Any]:
    """The copied modules as attributes: `copy.ring.Ring`, ..."""
    folder = Path(abeyance.lab.rivals.__file__).parent
    with engine_copy() as engine:
        package = str(engine.wheel.__name__).partition(".")[0]
        copies = SimpleNamespace()
        try:
            for name in MODULES:
                path = folder / f"{name}.py"
                text = path.read_text()
                for edit in edits:
                    if edit.module == name:
                        assert text.count(edit.old) == 1, f"{name}.py has changed: look for {edit.old!r} anew"
                        text = text.replace(edit.old, edit.new)
                text = text.replace("from abeyance.lab.rivals.", f"from {package}.")
                text = text.replace("from abeyance.engine.", f"from {package}.")
                module = ModuleType(f"{package}.{name}")
                module.__file__ = str(path)
                sys.modules[module.__name__] = module
                exec(compile(text, str(path), "exec"), module.__dict__)
                setattr(copies, name, module)
            yield copies
        finally:
            for name in MODULES:
                sys.modules.pop(f"{package}.{name}", None)
