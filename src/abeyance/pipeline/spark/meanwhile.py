"""Import what a command will need while its JVM starts: the process has nothing to do for two seconds then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final

__all__ = ["importing"]

_NEEDED: Final = ("pandas", "pyarrow.parquet", "pyarrow.compute", "pyspark.sql.functions")
"""Modules of others that every command needs, and that take long: half a second together."""


@contextmanager
def importing() -> Iterator[None]:
    """Import them in a thread while the block runs, and wait for it at its end."""
    thread = threading.Thread(target=_import, name="abeyance-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import() -> None:
    for name in _NEEDED:
        with suppress(Exception):  # told where it is needed
            import_module(name)
