"""Redact the folders of this machine from a page, which may be shared."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["redact_paths"]

_ABSOLUTE: Final = re.compile(r"(?<![\w.:/~-])(?:file:/{0,2})?/(?:[^\s'\":,/]+/)+(?=[^\s'\":,/]|\b|$)")
"""Matches the folders of an absolute path in a text, up to its last name."""


_WHOLE: Final = re.compile(r"(?:file:/{0,2})?/")
"""Matches the beginning of a word that is an absolute path."""

_NEXT: Final = re.compile(r",(?=(?:file:/{0,2})?/)")
"""Matches the comma between several absolute paths in a word."""


def redact_paths(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of how a result was made, with the folders of this machine redacted.

    Files keep their path below their common folder, so that they remain distinct. Other absolute paths keep only their
    last name.
    """
    files = [path for path in _texts(made) if os.path.isabs(path) and "\n" not in path]
    common = os.path.commonpath([os.path.dirname(path) for path in files]) if files else ""

    def redact(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: redact(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [redact(inner) for inner in value]
        if not isinstance(value, str):
            return value
        if value in files and common not in ("", "/"):
            return os.path.relpath(value, common)
        return _last_name(value) if value in files else _ABSOLUTE.sub("", value)

    return {
        name: _redact_command(value) if name == "command" and isinstance(value, str) else redact(value)
        for name, value in made.items()
    }


def _redact_command(command: str) -> str:
    """Redact the paths in a command line, word by word, since a path may contain blanks."""
    try:
        words = shlex.split(command)
    except ValueError:  # an unclosed quote
        return _ABSOLUTE.sub("", command)
    return shlex.join(",".join(map(_redact_word, _NEXT.split(word))) for word in words)


def _redact_word(word: str) -> str:
    option, equals, path = word.partition("=") if word.startswith("-") else ("", "", word)
    setting, sets, value = path.partition("=") if not _WHOLE.match(path) else ("", "", path)
    if _WHOLE.match(value):
        return f"{option}{equals}{setting}{sets}{_last_name(value)}"
    return _ABSOLUTE.sub("", word)


def _last_name(path: str) -> str:
    return os.path.basename(path.rstrip("/")) or path


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)
