"""Parse durations for argparse, in the units and forms of `tables.durations`."""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Final

from abeyant.tables.durations import exact_microseconds

__all__ = ["duration", "duration_or", "milliseconds"]

_DAY_MS: Final = 86_400_000
_LONGEST_DAYS: Final = 3_652_500


def milliseconds(text: str) -> Fraction:
    """Parse a duration; return it in milliseconds, exactly.

    Raises argparse's error, with examples, for a text that is no duration, or one of more than ten thousand years.
    """
    exact = exact_microseconds(text)
    if exact is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 500ms, 10s, 5m, 2h or 1d")
    ms = exact / 1000
    if ms > _LONGEST_DAYS * _DAY_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than ten thousand years ({_LONGEST_DAYS}d)")
    return ms


def duration(text: str) -> float:
    """Parse a duration; return it in seconds, correctly rounded. Raises as `milliseconds` does."""
    return float(milliseconds(text) / 1000)


class duration_or:  # noqa: N801 - argparse shows the name of a type
    """Parser of a duration or of one word, such as `off`. The word becomes None."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __call__(self, text: str) -> float | None:
        """Return the duration in seconds, or None for the word."""
        ms = self.exactly(text)
        return None if ms is None else float(ms / 1000)

    def exactly(self, text: str) -> Fraction | None:
        """Return the duration in milliseconds, exactly, or None for the word."""
        if text.strip() == self._word:
            return None
        try:
            return milliseconds(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, or {self._word}") from None
