"""The project's name and home: the former name stands in the changelog only, the home in pyproject.toml only."""

from __future__ import annotations

import gzip
import re
import subprocess
import tomllib
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


_HOST = r"(?:[\w-]+\.)+(?:com|org|io|net|dev)"
_HOME = re.compile(rf"{_HOST}[/:][\w.-]+/abeyant\b|\babeyant\.(?:github|gitlab|readthedocs)\.io", re.IGNORECASE)
_FROM_AN_INDEX = re.compile(r"""(?:pip install|micropip\.install\()[^\n]*?[\s"']abeyant(?:[\[\s"'`]|$)""", re.MULTILINE)


def texts() -> list[tuple[str, str]]:
    return [(name, content(name).decode(errors="replace")) for name in tracked() if not name.endswith((".gz", ".png"))]


def test_the_searches_find_what_they_look_for() -> None:
    for host in ("github.com", "gitlab.com", "codeberg.org"):
        assert _HOME.search(f"https://{host}/somebody/abeyant/issues")
    for line in ("pip install abeyant", "pip install -U 'abeyant[spark]'", 'micropip.install("abeyant")'):
        assert _FROM_AN_INDEX.search(line)
    for line in ("pip install .", "pip install '.[spark]'", "pip install dist/abeyant-*.whl numpy"):
        assert not _FROM_AN_INDEX.search(line)


def test_the_address_of_the_home_stands_in_one_place() -> None:
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["abeyant"]["home"]
    found = [name for name, text in texts() if _HOME.search(text) or (home and home in text)]
    assert [name for name in found if name not in ("tests/test_name.py", "pyproject.toml")] == []
    assert ("pyproject.toml" in found) == bool(home)


def test_until_there_is_a_home_no_line_installs_from_an_index() -> None:
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["abeyant"]["home"]
    ours = ("tests/test_name.py", "tests/test_installation.py")
    found = [name for name, text in texts() if name not in ours and _FROM_AN_INDEX.search(text)]
    assert home or found == []
