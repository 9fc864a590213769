"""Base classes of this package's errors, and parts of messages. The command line prints only an error's message."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["AbeyantError", "RejectedRowsWarning", "SchemaError", "did_you_mean", "listed"]


class AbeyantError(Exception):
    """The base class of this package's errors. Most messages are one line that says what to fix, such as a wrong path.

    Wrong types and values of arguments raise Python's own TypeError and ValueError.
    """


class SchemaError(AbeyantError):
    """A table lacks a column, or a column has a wrong type. The message names the column and both types."""


class RejectedRowsWarning(UserWarning):
    """All rows of a table were rejected, or nearly all; the message has the reason, an example, and what to do."""


def did_you_mean(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return `; did you mean X?` for the known name most similar to `word`, ignoring case; '' if none is similar.

    `alike` is the minimum similarity, from 0 to 1: `cutoff` of `difflib.get_close_matches`.
    """
    from difflib import get_close_matches  # only for mistakes

    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1, cutoff=alike)
    return f"; did you mean {names[close[0]]}?" if close else ""


def listed(columns: Iterable[str]) -> str:
    """Return column names joined by commas, or "none" if empty. Names with spaces around them stand in backticks."""
    return ", ".join(f"`{column}`" if column != column.strip() else column for column in columns) or "none"
