"""Files of settings as Java reads them (`java.util.Properties`), and so all tools of Kafka's."""

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
    r"""Return the settings in a text; of two of one name the last counts.

    A name ends at `=`, `:` or a blank. A line goes on in the next where it ends with a backslash. Lines that begin with
    `#` or `!` are comments. \t, \n, \r, \f and \uXXXX are Java's, and \ before another letter is dropped.
    """
    found = {}
    for line in _logical_lines(text):
        name = _NAME.match(line)
        assert name is not None, "it matches nothing, too"
        separator = _SEPARATOR.match(line, name.end())
        assert separator is not None, "so does it"
        found[_plain(name[0])] = _plain(line[separator.end() :])
    return found


def _logical_lines(text: str) -> list[str]:
    """Return lines, those that go on joined, without comments and empty ones."""
    lines: list[str] = []
    waiting: str | None = None
    natural_lines = re.split(r"\r\n|\r|\n", text)
    if not natural_lines[-1]:
        natural_lines.pop()  # what follows the last end of a line is none
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
