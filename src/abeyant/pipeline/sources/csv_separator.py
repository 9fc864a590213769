"""Find the separator of CSV columns: a comma; if the header has none outside quotes, a semicolon, a tab or a bar.

Excel writes semicolons where the comma is the decimal mark. The separator of a file named .tsv is a tab. Imports no
PySpark.
"""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from abeyant.errors import AbeyantError

__all__ = ["OPENERS", "check_utf_8", "separator_in", "separator_of"]

OPENERS: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open}
_MOST_BYTES: Final = 1 << 16
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_TABS: Final = re.compile(r"\.tsv(\.(gz|bz2|zst))?\Z", re.IGNORECASE)
_QUOTED: Final = re.compile(r'(?<![^,;\t|\ufeff])"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')


def separator_of(header: str, name: str = "") -> str:
    """Return the column separator of a file, from its name and its header line."""
    if _TABS.search(name):
        return "\t"
    bare = _QUOTED.sub("", header)
    return "," if "," in bare else max(",;\t|", key=bare.count)


def check_utf_8(header: bytes, file: Path | str) -> None:
    """Raise `AbeyantError` for a file that begins as UTF-16, which PowerShell and Excel (`Unicode Text`) write."""
    if header.startswith(_UTF_16):
        raise AbeyantError(f"{file} is UTF-16: save it as UTF-8, or convert it (iconv -f UTF-16 -t UTF-8)")


def separator_in(files: Iterable[Path]) -> str:
    """Return the column separator of local files, from the first line that is not blank."""
    for file in files:
        with suppress(OSError, EOFError), OPENERS.get(file.suffix.lower(), open)(file, "rb") as opened:
            while header := opened.readline(_MOST_BYTES):
                check_utf_8(header, file)
                if header.strip():
                    return separator_of(header.decode(errors="replace"), file.name)
    return ","
