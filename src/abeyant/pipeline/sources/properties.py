"""Parse Java properties (`java.util.Properties`), the format of settings of Kafka's tools."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["parse_properties"]

_BLANK: Final = " \t\f"
_NAME: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPED: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.?))", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the settings in a text; if a name occurs twice, the last one.

    A name ends at `=`, `:` or a blank. A backslash at the end of a line continues it. Lines that begin with `#` or `!`
    are comments. \t, \n, \r, \f and \uXXXX are as in Java, and \ before another letter is dropped.
    """
    found = {}
    for line in _logical_lines(text):
        name = _NAME.match(line)
        assert name is not None, "it matches an empty text, too"
        separator = _SEPARATOR.match(line, name.end())
        assert separator is not None, "it matches an empty text, too"
        found[_plain(name[0])] = _plain(line[separator.end() :])
    return found


def _logical_lines(text: str) -> list[str]:
    """Return lines with continued ones joined, without comments and empty lines."""
    lines: list[str] = []
    waiting: str | None = None
    natural_lines = re.split(r"\r\n|\r|\n", text)
    if not natural_lines[-1]:
        natural_lines.pop()  # nothing follows the last line's end
    for natural in natural_lines:
        line = natural.lstrip(_BLANK)
        if not waiting and (not line or line[0] in "#!"):  # after a backslash alone, too
            waiting = None
            continue
        whole = line if waiting is None else waiting + line
        backslashes = len(line) - len(line.rstrip("\\"))
        waiting = whole[:-1] if backslashes % 2 else None
        if waiting is None:
            lines.append(whole)
    return lines if waiting is None else [*lines, waiting]


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[2], found[2]), text)
