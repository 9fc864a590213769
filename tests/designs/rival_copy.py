"""Private, interpreted copies of the rivals, with a deliberate mistake in one of them: see engine/source_copy.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lab.rivals  # noqa: F401  copied by its name below
from engine.source_copy import Edit, engine_copy, modules_copy

MODULES = (
    "precision", "rival", "heap", "delay_queue", "indexed_heap", "lazy_heap", "hashed_wheel", "kernel_wheel", "ring",
    "sorted_list", "unsorted_list",
)  # fmt: skip


@contextmanager
def rivals_copy(*edits: Edit) -> Iterator[Any]:
    """The copied modules as attributes: `copy.ring.Ring`, ..."""
    with engine_copy() as engine, modules_copy(engine.package, "lab.rivals", MODULES, edits) as copies:
        yield copies
