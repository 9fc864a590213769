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
    r"""Return the settings in a text by name; if a name occurs twice, the last value counts.

    A name ends at `=`, `:` or a blank. A backslash at the end of a line continues the line. Lines that begin with `#`
    or `!` are comments. \t, \n, \r, \f and \uXXXX are as in Java; \ before any other letter is dropped.
    """
    properties = {}
    for line in _logical_lines(text):
        name = _NAME.match(line)
        assert name is not None, "the pattern matches an empty text, too"
        separator = _SEPARATOR.match(line, name.end())
        assert separator is not None, "the pattern matches an empty text, too"
        properties[_plain(name[0])] = _plain(line[separator.end() :])
    return properties


def _logical_lines(text: str) -> list[str]:
    """Return the lines of a text, with continued lines joined, without comments and empty lines."""
    lines: list[str] = []
    pending: str | None = None
    natural_lines = re.split(r"\r\n|\r|\n", text)
    if not natural_lines[-1]:
        natural_lines.pop()  # nothing follows the last line's end
    for natural in natural_lines:
        line = natural.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):  # after a backslash alone, too
            pending = None
            continue
        logical = line if pending is None else pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        pending = logical[:-1] if backslashes % 2 else None
        if pending is None:
            lines.append(logical)
    return lines if pending is None else [*lines, pending]


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else _LETTERS.get(match[2], match[2]), text)
