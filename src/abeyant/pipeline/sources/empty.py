"""The error for files without columns: of Spark's sources, and before Spark starts. Imports nothing heavy."""

from __future__ import annotations

from abeyant.errors import AbeyantError

__all__ = ["no_columns"]


def no_columns(name: str, called: str) -> AbeyantError:
    """Return the error for a path that has no file with columns, of the format `called` so."""
    return AbeyantError(f"{name}: found no {called} file with columns (names that begin with _ or . are ignored)")
