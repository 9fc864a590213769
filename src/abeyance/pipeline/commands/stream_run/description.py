"""What a stream is, written beside its result: a checkpoint must not be gone on with by another query."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from abeyance.errors import AbeyanceError
from abeyance.pipeline.results.local_claims import CLAIM

__all__ = ["DESCRIPTION", "check", "claim"]

DESCRIPTION: Final = "abeyance-stream.json"
_TOOL: Final = {"tool": "abeyance stream"}


def claim(out: Path, checkpoint: str, query: Mapping[str, Any]) -> None:
    """Make `out` this query's, or find that it is already; raises what `check` does."""
    check(out, checkpoint, query)
    if not (out / DESCRIPTION).exists():
        _write(out / DESCRIPTION, _described(checkpoint, query))


def check(out: Path, checkpoint: str, query: Mapping[str, Any]) -> None:
    """Find whether `out` is this query's, or may become so; nothing is written.

    `query` is what has to stay the same. Raises `AbeyanceError` for a directory of something else, for another query's
    (naming what differs), and for a checkpoint whose result is not here.
    """
    described = _described(checkpoint, query)
    before = _read(out / DESCRIPTION)
    if before is None:
        if out.exists() and (not out.is_dir() or any(file.name != CLAIM for file in out.iterdir())):
            raise AbeyanceError(f"{out} exists and is not a result of abeyance stream: it is left alone")
        if "://" not in checkpoint and (Path(checkpoint) / "metadata").exists():
            raise AbeyanceError(f"{checkpoint} is the checkpoint of another stream: its result is not in {out}")
        return
    for name in sorted({*before, *described}):
        was, now = before.get(name), described.get(name)
        if was != now:
            raise AbeyanceError(
                f"{out} is of another stream: {name} was {_shown(was)}, is {_shown(now)}; "
                "go on as it was, or name another --out"
            )


def _described(checkpoint: str, query: Mapping[str, Any]) -> dict[str, Any]:
    return _TOOL | {"checkpoint": checkpoint} | dict(query)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise AbeyanceError(f"{file.parent} is not a directory") from error
    except (OSError, ValueError) as error:
        raise AbeyanceError(f"cannot read {file}: {error}") from error
    return found if isinstance(found, dict) else {}


def _write(file: Path, described: Mapping[str, Any]) -> None:
    aside = file.with_name(f".{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(aside, file)
    except OSError as error:
        raise AbeyanceError(f"cannot write {file}: {error.strerror or error}") from error


def _shown(value: Any) -> str:
    return "not given" if value is None else json.dumps(value, ensure_ascii=False)
