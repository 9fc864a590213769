"""The project's name: the former one stands in the changelog and nowhere else."""

from __future__ import annotations

import gzip
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORMER = "".join(("abey", "ance"))  # so that this file does not hold it


@cache
def tracked() -> tuple[str, ...]:
    """Return the names of all tracked files; skip the test outside of a git checkout."""
    if not (ROOT / ".git").exists():
        pytest.skip("what is tracked is known in a git checkout only")
    ran = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return tuple(ran.stdout.decode().rstrip("\0").split("\0"))


def content(name: str) -> bytes:
    """Return what a file holds, unpacked where it is compressed."""
    held = (ROOT / name).read_bytes()
    return gzip.decompress(held) if held.startswith(b"\x1f\x8b") else held


def holds(text: bytes, name: str) -> bool:
    """Return whether the text has the name in it, in any case, as UTF-8 or UTF-16."""
    lower = text.lower()
    return any(name.encode(encoding) in lower for encoding in ("utf-8", "utf-16-le", "utf-16-be"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_the_search_finds_a_name_in_any_case(encoding: str) -> None:
    assert holds(f"import {FORMER.title()}".encode(encoding), FORMER)
    assert not holds("import abeyant".encode(encoding), FORMER)


def test_the_former_name_stands_in_the_changelog_only() -> None:
    assert len(tracked()) > 1000
    assert [name for name in tracked() if FORMER in name.lower()] == []
    assert [name for name in tracked() if holds(content(name), FORMER)] == ["CHANGELOG.md"]
