"""What a stream is, written beside its result: a checkpoint must not be gone on with by another query.

The result is in a folder of this machine, or on a store that Spark reaches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from abeyant.errors import AbeyantError
from abeyant.former import check_former
from abeyant.pipeline.results.directory import STREAM
from abeyant.pipeline.results.leases.local import LEASE_FILE
from abeyant.pipeline.results.manifests import LEASES

__all__ = ["DESCRIPTION", "Folder", "LocalFolder", "check", "describe"]

DESCRIPTION: Final = STREAM
_TOOL: Final = {"tool": "abeyant stream"}


class Folder(Protocol):
    """Where a stream's result is, and its small files; a `Store` is one."""

    def read(self, name: str) -> str | None:
        """Return a file's text; None where there is none."""

    def put(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""

    def names(self, name: str) -> list[str]:
        """Return what is in a folder of it."""

    def make_directory(self, name: str) -> None:
        """Make a folder of it, unless it is there."""


class LocalFolder:
    """One of this machine."""

    def __init__(self, root: Path) -> None:
        self._root: Final = root

    def read(self, name: str) -> str | None:
        """Return a file's text; None where there is none."""
        file = self._root / name
        try:
            return file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise AbeyantError(f"{file.parent} is not a directory") from error
        except (OSError, ValueError) as error:
            raise AbeyantError(f"cannot read {file}: {error}") from error

    def put(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""
        file = self._root / name
        aside = file.with_name(f".{file.name}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            aside.write_text(text, encoding="utf-8")
            os.replace(aside, file)
        except OSError as error:
            raise AbeyantError(f"cannot write {file}: {error.strerror or error}") from error

    def names(self, name: str) -> list[str]:
        """Return what is in a folder of it; a file in its place is itself."""
        folder = self._root / name
        if folder.is_dir():
            return sorted(file.name for file in folder.iterdir())
        return [folder.name] if folder.exists() else []

    def make_directory(self, name: str) -> None:
        """Make a folder of it, unless it is there."""
        (self._root / name).mkdir(parents=True, exist_ok=True)


def describe(folder: Folder, out: Path | str, checkpoint: str, query: Mapping[str, Any], *, begun: bool) -> None:
    """Make `out` this query's, or find that it is already; raises what `check` does."""
    check(folder, out, checkpoint, query, begun=begun)
    if folder.read(DESCRIPTION) is None:
        described = _described(checkpoint, query)
        folder.put(DESCRIPTION, json.dumps(described, indent=2, ensure_ascii=False) + "\n")


def check(folder: Folder, out: Path | str, checkpoint: str, query: Mapping[str, Any], *, begun: bool) -> None:
    """Find whether `out`, which is `folder`, is this query's, or may become so; nothing is written.

    `query` is what has to stay the same; `begun` whether the checkpoint has been used. Raises `AbeyantError` for a
    directory of something else, for another query's (naming what differs), and for a checkpoint whose result is not
    here.
    """
    described = _described(checkpoint, query)
    before = _read(folder, out)
    if before is None:
        there = folder.names("")
        check_former(out, there, DESCRIPTION, "begin the stream anew, with another --out and checkpoint")
        if any(name not in (LEASE_FILE, LEASES) for name in there):
            raise AbeyantError(f"{out} exists and is not a result of abeyant stream: it is left alone")
        if begun:
            raise AbeyantError(f"{checkpoint} is the checkpoint of another stream: its result is not in {out}")
        return
    for name in sorted({*before, *described}):
        was, now = before.get(name), described.get(name)
        if was != now:
            raise AbeyantError(
                f"{out} is of another stream: {name} was {_shown(was)}, is {_shown(now)}; "
                "go on as it was, or name another --out"
            )


def _described(checkpoint: str, query: Mapping[str, Any]) -> dict[str, Any]:
    return _TOOL | {"checkpoint": checkpoint} | dict(query)


def _read(folder: Folder, out: Path | str) -> dict[str, Any] | None:
    text = folder.read(DESCRIPTION)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise AbeyantError(f"cannot read {out}/{DESCRIPTION}: {error}") from error
    return found if isinstance(found, dict) else {}


def _shown(value: Any) -> str:
    return "not given" if value is None else json.dumps(value, ensure_ascii=False)
