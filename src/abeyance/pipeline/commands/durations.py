"""Durations as people write them on a command line: 500ms, 10s, 5m, 2h, 1d."""

from __future__ import annotations

import argparse
import re
from typing import Final

__all__ = ["duration", "duration_or"]

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_FORM: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def duration(text: str) -> float:
    """Return a duration in seconds. For argparse: raises its error, which names the text and what it may be."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 500ms, 10s, 5m, 2h or 1d")
    return float(found[1]) * _UNITS[found[2]]


class duration_or:  # noqa: N801 - argparse shows the name of a type
    """Reads a duration, or one word, which becomes None."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __call__(self, text: str) -> float | None:
        """Return seconds, or None for the word."""
        if text.strip() == self._word:
            return None
        try:
            return duration(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, or {self._word}") from None
