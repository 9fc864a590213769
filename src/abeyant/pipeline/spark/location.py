"""Convert local paths and URIs to the form that Hadoop takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["is_text", "is_uri", "literal", "location", "plain"]

_SPECIAL: Final = re.compile(r"([][{}*?\\])")


def is_uri(place: str) -> bool:
    """Return whether `place` is a URI; otherwise it is a local path."""
    return "://" in place


def is_text(path: str) -> bool:
    """Return whether a path is valid UTF-8. Python decodes other bytes as lone surrogates, which Spark refuses."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def location(path: str) -> str:
    """Return a URI for reading. Globs in a URI are kept; a path without scheme is local, and its globs are escaped."""
    return path if is_uri(path) else f"file://{_escaped(str(Path(path).resolve()))}"


def plain(path: str) -> str:
    """Return a URI for writing; Hadoop expands no globs in it."""
    return path if is_uri(path) else f"file://{Path(path).resolve()}"


def literal(path: str) -> str:
    """Return a URI for reading in which globs are escaped, for example the URI of a result."""
    return _escaped(plain(path))


def _escaped(name: str) -> str:
    """Escape a name's globs."""
    return _SPECIAL.sub(r"\\\1", name)
