"""Write and check a stream's description: a file beside its result that names the checkpoint and the query's options.

It keeps other queries from continuing from the checkpoint. The result is in a local folder, or on a store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from abeyant.errors import AbeyantError
from abeyant.former import check_former
from abeyant.pipeline.results.directory import STREAM
from abeyant.pipeline.results.leases.local import LEASE_FILE
from abeyant.pipeline.results.manifests import LEASES
from abeyant.pipeline.results.sink import Folder, Out

__all__ = ["DESCRIPTION", "check", "describe"]

DESCRIPTION: Final = STREAM
_TOOL: Final = {"tool": "abeyant stream"}


def describe(folder: Folder, checkpoint: str, query: Mapping[str, Any]) -> None:
    """Write the query's description into a folder that `check` accepted, unless the folder has one already."""
    if folder.read(DESCRIPTION) is None:
        description = _described(checkpoint, query)
        folder.put(DESCRIPTION, json.dumps(description, indent=2, ensure_ascii=False) + "\n")


def check(folder: Folder, out: Out, checkpoint: str, query: Mapping[str, Any], *, begun: bool) -> None:
    """Raise `AbeyantError` unless this query may write to `out`, whose files `folder` reads. Writes nothing.

    `query` has the options that must stay the same; `begun` says whether the checkpoint has been used. Refuses a
    directory that is not a stream's result, the result of another query (the error names the option that differs),
    and a used checkpoint whose result is in another directory.
    """
    expected = _described(checkpoint, query)
    before = _read(folder, out)
    if before is None:
        names = folder.names("")
        check_former(out, names, DESCRIPTION, "start a new stream, with another --out and checkpoint")
        if any(name not in (LEASE_FILE, LEASES) for name in names):
            raise AbeyantError(
                f"{out} exists and is not a result of abeyant stream: it is left alone; name another --out"
            )
        if begun:
            raise AbeyantError(
                f"{checkpoint} is the checkpoint of another stream: its result is not in {out}; "
                "name the --out of that stream, or another --checkpoint"
            )
        return
    for name in sorted({*before, *expected}):
        was, now = before.get(name), expected.get(name)
        if was != now:
            raise AbeyantError(
                f"{out} belongs to another stream: {name} was {_shown(was)}, is now {_shown(now)}; "
                "use the earlier value, or name another --out"
            )


def _described(checkpoint: str, query: Mapping[str, Any]) -> dict[str, Any]:
    return _TOOL | {"checkpoint": checkpoint} | dict(query)


def _read(folder: Folder, out: Out) -> dict[str, Any] | None:
    text = folder.read(DESCRIPTION)
    if text is None:
        return None
    try:
        description = json.loads(text)
    except ValueError as error:
        raise AbeyantError(f"cannot read {out}/{DESCRIPTION}: {error}") from error
    return description if isinstance(description, dict) else {}


def _shown(value: Any) -> str:
    return "not given" if value is None else json.dumps(value, ensure_ascii=False)
