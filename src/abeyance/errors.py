"""The error that a user caused or can mend: the command line shows its message alone, in one line."""

from __future__ import annotations

__all__ = ["AbeyanceError"]


class AbeyanceError(Exception):
    """Something the user can mend: a wrong path, no Java, a full disk. The message is one line."""
