"""Paths of this machine and URIs, as Hadoop takes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["is_text", "is_uri", "literal", "location", "plain"]

_SPECIAL: Final = re.compile(r"([][{}*?\\])")


def is_uri(place: str) -> bool:
    """Return whether a place is named by a URI; otherwise it is a path of this machine."""
    return "://" in place


def is_text(path: str) -> bool:
    """Return whether a path has bytes of UTF-8 only: Python gives others as lone surrogates, and Spark takes none."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def location(path: str) -> str:
    """Return a path as Hadoop takes it: without a scheme it is this machine's, blanks, brackets and all."""
    return path if is_uri(path) else f"file://{_escaped(str(Path(path).resolve()))}"


def plain(path: str) -> str:
    """Return a path or a URI as a URI whose letters are no patterns: as Hadoop takes it where it writes."""
    return path if is_uri(path) else f"file://{Path(path).resolve()}"


def literal(path: str) -> str:
    """Return a path or a URI as Hadoop takes it where it reads, and no letter is to be a pattern: that of a result."""
    return _escaped(plain(path))


def _escaped(name: str) -> str:
    """Return a name that Hadoop, which takes every name for a pattern, reads as it is."""
    return _SPECIAL.sub(r"\\\1", name)
