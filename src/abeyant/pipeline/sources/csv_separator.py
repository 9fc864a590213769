"""What separates the columns of CSV: a comma; if the header has none, a semicolon, a tab or a bar.

Excel writes semicolons where the comma is the decimal mark. Imports no PySpark.
"""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

__all__ = ["OPENERS", "separator_in", "separator_of"]

OPENERS: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open}
_MOST_BYTES: Final = 1 << 16


def separator_of(header: str) -> str:
    """Return what separates the columns of a header."""
    return "," if "," in header else max(",;\t|", key=header.count)


def separator_in(files: Iterable[Path]) -> str:
    """Return what separates the columns of local files, by the header of the first that is not empty."""
    for file in files:
        with suppress(OSError, EOFError), OPENERS.get(file.suffix.lower(), open)(file, "rb") as opened:
            if header := opened.readline(_MOST_BYTES):
                return separator_of(header.decode("latin-1"))
    return ","
