"""Detect line breaks within quotes in CSV (RFC 4180, section 2.6).

With its option for such line breaks, Spark does not split files. So local files are scanned first; Spark reads files
without such line breaks in splits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Final, NamedTuple

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.csv_separator import OPENERS

__all__ = ["quoted_breaks"]

_BLOCK: Final = 16 << 20
_BOM: Final = b"\xef\xbb\xbf"
_CLOSING: Final = re.compile(rb'[^"]*+(?:""[^"]*+)*+"')


def quoted_breaks(files: Iterable[Path], separator: str = ",") -> str | None:
    """Return the line ending of these CSV files if any line ends within quotes; None if no line does.

    Raises `AbeyantError`, which names the file, for a quote that is never closed; and, if there are line breaks within
    quotes, for rows with different line endings, since Spark takes only one. O(bytes) if there are quotes.
    """
    sep = separator.encode()
    looks = {file: _look(file, sep, quick=True) for file in files}
    if not any(look.breaks for look in looks.values()):
        return None
    ends: dict[str, Path] = {}
    for file, look in looks.items():
        ends |= dict.fromkeys(look.ends or _look(file, sep, quick=False).ends, file)
    if len(ends) > 1:
        (one, first), (other, second) = list(ends.items())[:2]
        where = str(first) if first == second else f"{first} and {second}"
        raise AbeyantError(
            f"{where}: there are line breaks within quotes, and rows end with {one!r} and with {other!r}: "
            "end all rows in the same way, or write Parquet"
        )
    return next(iter(ends), "\n")


class _Look(NamedTuple):
    ends: set[str]
    """The line endings that occur in the file."""
    breaks: bool
    """Whether any line ends within quotes."""


def _look(file: Path, separator: bytes, *, quick: bool) -> _Look:
    """Scan a file; if `quick`, do not look for the line endings of a file without quotes."""
    opener = OPENERS.get(file.suffix.lower(), open)
    try:
        with opener(file, "rb") as opened:
            if quick and opener is open and not _has_quote(opened):
                return _Look(set(), breaks=False)
            opened.seek(0)
            return _look_at_lines(opened, file, separator)
    except (OSError, EOFError):
        return _Look(set(), breaks=False)  # Spark will say what is wrong with it


def _has_quote(file: IO[bytes]) -> bool:
    return any(b'"' in block for block in iter(lambda: file.read(_BLOCK), b""))


def _end(line: bytes) -> str:
    return "\r\n" if line.endswith(b"\r\n") else "\r" if line.endswith(b"\r") else "\n"


def _look_at_lines(opened: IO[bytes], file: Path, separator: bytes) -> _Look:
    ends: set[str] = set()
    inside, breaks, opened_at = False, False, 0
    for number, line in enumerate(_lines(opened), 1):
        before = inside
        if inside or b'"' in line:
            inside = _ends_within(line, inside, separator)
            if inside and not before:
                opened_at = number
        if inside:
            breaks |= line.endswith((b"\n", b"\r"))
        elif line.endswith((b"\n", b"\r")):
            ends.add(_end(line))
    if inside:
        raise AbeyantError(
            f"{file}: the quote that begins in line {opened_at} is never closed: close it, or double a quote that is "
            "part of a quoted text"
        )
    return _Look(ends, breaks)


def _lines(opened: IO[bytes]) -> Iterator[bytes]:
    """Yield lines as Spark splits them: at LF, CR, or CR LF."""
    first = True
    for line in opened:
        if first:
            line, first = line.removeprefix(_BOM), False
        if b"\r" in line[:-2]:
            yield from line.splitlines(keepends=True)
        else:
            yield line


@cache
def _whole(separator: bytes) -> re.Pattern[bytes]:
    """Return a pattern that matches a whole line of fields, quoted as in RFC 4180 or with quotes after their start."""
    sep = re.escape(separator)
    field = rb'"[^"]*+(?:""[^"]*+)*+"|[^"%b\r\n][^%b\r\n]*|' % (sep, sep)
    return re.compile(rb"(?:(?:%b)(?:%b|(?=[\r\n])|\Z))*[\r\n]*" % (field, sep))


def _ends_within(line: bytes, inside: bool, separator: bytes) -> bool:
    """Return whether a line ends within quotes; `inside` if it begins so. Quotes open only at the start of a field."""
    if not inside and _whole(separator).fullmatch(line):
        return False
    at = 0
    if not inside and line.startswith(b'"'):
        inside, at = True, 1
    while True:
        if inside:
            closing = _CLOSING.match(line, at)
            if closing is None:
                return True
            at = closing.end()
        at = line.find(separator, at) + 1
        if not at:
            return False
        inside = line.startswith(b'"', at)
        at += inside
