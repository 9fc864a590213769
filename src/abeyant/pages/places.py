"""A page goes from hand to hand: where things lie on the machine that made it is nobody's business."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["redact_paths"]

_ABSOLUTE: Final = re.compile(r"(?<![\w.:/~-])(?:file:/{0,2})?/(?:[^\s'\":,/]+/)+(?=[^\s'\":,/]|\b|$)")
"""The folders of an absolute path in a text, up to its last name."""


_WHOLE: Final = re.compile(r"(?:file:/{0,2})?/")
"""How a word begins that is an absolute path."""

_NEXT: Final = re.compile(r",(?=(?:file:/{0,2})?/)")
"""Where the next of several paths begins in a word."""


def redact_paths(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a result was made without folders of the machine.

    Files keep their names below the folder that holds all of them, so that they still can be told apart; of other
    absolute paths only the last name is left.
    """
    files = [path for path in _texts(made) if os.path.isabs(path) and "\n" not in path]
    common = os.path.commonpath([os.path.dirname(path) for path in files]) if files else ""

    def shown(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: shown(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [shown(inner) for inner in value]
        if not isinstance(value, str):
            return value
        if value in files and common not in ("", "/"):
            return os.path.relpath(value, common)
        return _last_name(value) if value in files else _ABSOLUTE.sub("", value)

    return {
        name: _in_words(value) if name == "command" and isinstance(value, str) else shown(value)
        for name, value in made.items()
    }


def _in_words(command: str) -> str:
    """Leave the folders out of a command line word by word: only there is it known where a name with blanks ends."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote without its end
        return _ABSOLUTE.sub("", command)
    return shlex.join(",".join(map(_shortened, _NEXT.split(word))) for word in words)


def _shortened(word: str) -> str:
    option, equals, place = word.partition("=") if word.startswith("-") else ("", "", word)
    setting, sets, value = place.partition("=") if not _WHOLE.match(place) else ("", "", place)
    if _WHOLE.match(value):
        return f"{option}{equals}{setting}{sets}{_last_name(value)}"
    return _ABSOLUTE.sub("", word)


def _last_name(place: str) -> str:
    return os.path.basename(place.rstrip("/")) or place


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)
