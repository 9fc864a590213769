"""The error that a user caused or can mend: the command line shows its message alone, in one line."""

from __future__ import annotations

__all__ = ["AbeyantError", "SchemaError"]


class AbeyantError(Exception):
    """Something the user can mend: a wrong path, no Java, a full disk. The message is one line."""


class SchemaError(AbeyantError):
    """A table lacks a column, or has one of another type; the message names it, what it is and should be."""
