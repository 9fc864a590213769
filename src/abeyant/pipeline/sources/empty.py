"""The error for files without columns, raised by Spark's sources or before Spark starts. Imports nothing heavy."""

from __future__ import annotations

from abeyant.errors import AbeyantError

__all__ = ["no_columns"]


def no_columns(name: str, called: str) -> AbeyantError:
    """Return the error for a path where no file has columns; `called` is the format's name in messages."""
    return AbeyantError(f"{name}: found no {called} file with columns (names that begin with _ or . are ignored)")
