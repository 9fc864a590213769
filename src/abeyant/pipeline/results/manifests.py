"""Manifests: small files, written last, that name all files of a result or of a stream's batch.

An object store cannot create a directory atomically. So readers take only the files that a manifest names. A truncated
manifest is ignored, because its JSON cannot be parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from abeyant.former import is_former, written_before

__all__ = ["BATCHES", "LEASES", "batch_manifest", "files_of", "manifest", "read_manifest"]

BATCHES: Final = "batches"
"""The folder of a stream's manifests, one for each batch."""

LEASES: Final = "claims"
"""The folder of the leases on a store (see `leases.store`)."""

_TOOL: Final = "abeyant"


def batch_manifest(batch: int) -> str:
    """Return the name of a batch's manifest."""
    return f"{BATCHES}/{batch}.json"


def manifest(entries: Mapping[str, Any], tables: Mapping[str, Mapping[str, int]]) -> str:
    """Return the text of a manifest: each table's files, relative to the result, and their sizes in bytes."""
    files = {name: [{"file": file, "bytes": size} for file, size in table.items()] for name, table in tables.items()}
    return json.dumps({"tool": _TOOL, **entries, "files": files}, indent=1, ensure_ascii=False) + "\n"


def read_manifest(text: str | None, place: object) -> dict[str, Any] | None:
    """Parse the manifest at `place`; return None for a text that is truncated or was not written by abeyant.

    Raises `AbeyantError` for a manifest that was written under the program's former name.
    """
    try:
        contents = json.loads(text or "")
    except ValueError:
        return None
    if isinstance(contents, dict) and is_former(contents.get("tool")):
        raise written_before(place, "name another place for the result, and begin a new checkpoint")
    if not isinstance(contents, dict) or contents.get("tool") != _TOOL or not isinstance(contents.get("files"), dict):
        return None
    return contents


def files_of(manifest: Mapping[str, Any], table: str) -> list[str]:
    """Return the files of one table that a manifest names."""
    return [str(entry["file"]) for entry in manifest["files"].get(table, [])]
