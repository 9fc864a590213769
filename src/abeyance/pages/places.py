"""A page goes from hand to hand: where things lie on the machine that made it is nobody's business."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["without_places"]

_ABSOLUTE: Final = re.compile(r"(?<![\w.:/~-])(?:file:/{0,2})?/(?:[^\s'\":,/]+/)+(?=[^\s'\":,/]|\b|$)")
"""The folders of an absolute path in a text, up to its last name."""


def without_places(made: Mapping[str, Any]) -> dict[str, Any]:
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
        return _ABSOLUTE.sub("", value)

    return {name: shown(value) for name, value in made.items()}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)
