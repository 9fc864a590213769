"""Private, interpreted copies of the kernels, with a deliberate mistake in one of them: see engine/source_copy.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import abeyant.kernels  # noqa: F401  copied by its name below
from engine.source_copy import Edit, engine_copy, modules_copy

# In the order of import.
MODULES = ("buffers", "bulk", "rows", "resolve")


@contextmanager
def kernels_copy(*edits: Edit) -> Iterator[Any]:
    """The copied modules as attributes (`copy.bulk.BulkWheel`, ...), on a copy of the engine; edits may be of both."""
    with (
        engine_copy(*edits) as engine,
        modules_copy(engine.package, "abeyant.kernels", MODULES, edits) as copies,
    ):
        yield copies
