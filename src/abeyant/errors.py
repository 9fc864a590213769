"""The error that a user caused or can mend: the command line shows its message alone, in one line."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["AbeyantError", "SchemaError", "did_you_mean"]


class AbeyantError(Exception):
    """Something the user can mend: a wrong path, no Java, a full disk. The message is one line."""


class SchemaError(AbeyantError):
    """A table lacks a column, or has one of another type; the message names it, what it is and should be."""


def did_you_mean(given: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return `; did you mean X?` for the known name most like `given`, in any case of letters; '' where none is.

    `alike` is the least ratio of common letters, from 0 to 1.
    """
    from difflib import get_close_matches  # only for mistakes

    names = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), names, n=1, cutoff=alike)
    return f"; did you mean {names[close[0]]}?" if close else ""
