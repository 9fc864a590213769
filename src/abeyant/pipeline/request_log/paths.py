"""Which files a path names: a file, a glob, a folder that is searched for logs, or a URI."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Callable
from typing import Final

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.remote_files import Reach, system_of

__all__ = ["NAME", "expand", "is_remote"]

NAME: Final = "kafka-request"
"""How a request log's name begins: `kafka-request.log` in Kafka's own log4j2.yaml; rotated files add to it, at its end
or before `.log`."""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_remote(path: str) -> bool:
    """Return whether a path has a scheme."""
    return _URI.match(path) is not None


def expand(path: str, reach: Reach, left_out: Callable[[str], None]) -> list[str]:
    """Return the files of a log that a path names: see `find_logs`."""
    if is_remote(path):
        return _expand_uri(path, reach)
    if os.path.isdir(path):
        found, others = _search(path)
        if not found:
            raise AbeyantError(f"no {NAME}* in {path}{_others(path, others)}")
        return found
    if os.path.lexists(path):
        if not os.path.isfile(path):
            raise AbeyantError(f"cannot read {path}: not a file" if os.path.exists(path) else _missing(path))
        return [os.path.realpath(path)]
    if not glob.has_magic(path):
        raise AbeyantError(_missing(path))
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise AbeyantError(f"nothing matches {path}")
    found = []
    empty: dict[str, int] = {}
    for match in matches:
        if os.path.isdir(match):
            mine, others = _search(match)
            if not mine:
                empty[match] = others
            found += mine
        else:
            found.append(os.path.realpath(match))
    if not found:
        folder, others = max(empty.items(), key=lambda one: one[1])
        raise AbeyantError(f"no {NAME}* in {folder}{_others(folder, others)}")
    for folder, others in empty.items():
        if others:
            left_out(f"no {NAME}* in {folder}{_others(folder, others)}")
    return found


def _others(folder: str, number: int) -> str:
    """Return how to name the files of a folder that are not called as a log is; nothing where there are none."""
    if not number:
        return ""
    pattern = shlex.quote(os.path.join(glob.escape(folder), "*"))
    return f": {number:,} other file{'' if number == 1 else 's'} left out; name them: {pattern}"


def _missing(path: str) -> str:
    return f"no such file or directory: {path}"


def _search(directory: str) -> tuple[list[str], int]:
    """Return the files of a folder that are called as a log is, and how many others it has."""

    def refuse(error: OSError) -> None:
        raise AbeyantError(f"cannot read {error.filename}: {error.strerror}") from error

    found, others = list[str](), 0
    for folder, _, names in os.walk(directory, onerror=refuse):
        for name in names:
            if name.startswith(NAME):
                found.append(os.path.realpath(os.path.join(folder, name)))
            else:
                others += 1
    return found, others


def _expand_uri(path: str, reach: Reach) -> list[str]:
    from pyarrow import fs

    try:
        system, name = system_of(path, reach)
        info = system.get_file_info(name)
        if info.type == fs.FileType.NotFound:
            raise AbeyantError(_missing(path))
        if info.type != fs.FileType.Directory:
            return [path]
        inside = system.get_file_info(fs.FileSelector(name, recursive=True))
    except (OSError, ValueError) as error:
        raise AbeyantError(f"cannot read {path}: {error}") from error
    root = path.rstrip("/")
    found = [
        root + entry.path[len(name.rstrip("/")) :]
        for entry in inside
        if entry.type == fs.FileType.File and entry.base_name.startswith(NAME)
    ]
    if not found:
        raise AbeyantError(f"no {NAME}* in {path}")
    return found
