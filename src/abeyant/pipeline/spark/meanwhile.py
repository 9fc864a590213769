"""Work for a time in which this process only waits for its JVM.

So a command imports what it will need while its JVM starts, which takes two seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from typing import Final

__all__ = ["importing", "meanwhile"]

_NEEDED: Final = ("pandas", "pyarrow.parquet", "pyarrow.compute", "pyspark.sql.functions")
"""Modules of others that every command needs, and that take long: half a second together."""


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Do `work` in a thread while the block runs, and wait for it at its end."""
    thread = threading.Thread(target=work, name="abeyant-meanwhile", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def importing() -> AbstractContextManager[None]:
    """Import them while the block runs."""
    return meanwhile(_import)


def _import() -> None:
    for name in _NEEDED:
        with suppress(Exception):  # told where it is needed
            import_module(name)
