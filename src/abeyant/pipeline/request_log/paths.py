"""Find the files that a path names: a file, a glob, a folder that is searched for logs, or a URI."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable
from typing import Final

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.remote_files import Reach, system_of

__all__ = ["NAME", "NoLogYetError", "expand", "is_remote"]

NAME: Final = "kafka-request"
"""The start of a request log's file name: `kafka-request.log` in Kafka's own log4j2.yaml; rotated files add to it, at
its end or before `.log`."""

_Depths = Counter[int]
"""Number of files by depth below a folder; depth 1 is directly in the folder."""
_TO_A_FILE: Final = "write it to a file first, as in: kubectl logs POD > broker-1/kafka-request.log"

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class NoLogYetError(AbeyantError):
    """Raised for a path without a log, if a log may still appear there."""


def is_remote(path: str) -> bool:
    """Return whether a path is a URI with a scheme, such as `s3://`."""
    return _URI.match(path) is not None


def expand(path: str, reach: Reach, left_out: Callable[[str], None]) -> list[str]:
    """Return the files of a log that a path names: see `find_logs`."""
    if is_remote(path):
        return _expand_uri(path, reach)
    if os.path.isdir(path):
        files, others = _search(path)
        if not files:
            raise NoLogYetError(f"no {NAME}* in {path}{_others(glob.escape(path), others)}")
        return files
    if os.path.lexists(path):
        return [_file(path)]
    if path == "-":
        raise AbeyantError(f"cannot read the log from standard input: {_TO_A_FILE}")
    if not glob.has_magic(path):
        is_awaited = os.path.isdir(os.path.dirname(path) or ".")
        raise (NoLogYetError if is_awaited else AbeyantError)(_missing(path))
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise NoLogYetError(f"nothing matches {path}")
    files = []
    empty: dict[str, _Depths] = {}
    for match in matches:
        if os.path.isdir(match):
            folder_files, others = _search(match)
            if not folder_files:
                empty[match] = others
            files += folder_files
        else:
            files.append(_file(match))
    messages = [f"no {NAME}* in {folder}{_others(glob.escape(folder), others)}" for folder, others in empty.items()]
    with_others = [number for number, others in enumerate(empty.values()) if others]
    if not files and len(with_others) > 1:
        raise NoLogYetError(f"no {NAME}* in {path}{_others(path, sum(empty.values(), _Depths()))}")
    if not files:
        raise NoLogYetError(messages[with_others[0] if with_others else 0])
    for number in with_others:
        left_out(messages[number])
    return files


def _file(path: str) -> str:
    if not os.path.exists(path):
        raise AbeyantError(_missing(path))
    if not os.path.isfile(path):
        raise AbeyantError(f"cannot read {path}: not a file; {_TO_A_FILE}")
    return os.path.realpath(path)


def _others(folder: str, others: _Depths) -> str:
    """Return a note on a folder's files that are not named like a log, with a glob for these files; "" without any.

    `folder` is itself a glob. The returned glob has the depth at which most of the files are.
    """
    if not others:
        return ""
    number, [(depth, _)] = others.total(), others.most_common(1)
    pattern = shlex.quote(os.path.join(folder, *["*"] * depth))
    return f": {number:,} other file{'' if number == 1 else 's'} left out; to read them, name them: {pattern}"


def _missing(path: str) -> str:
    return f"no such file or directory: {path}"


def _search(directory: str) -> tuple[list[str], _Depths]:
    """Return the files below a folder that are named like a log, and the number of other files at each depth."""

    def refuse(error: OSError) -> None:
        raise AbeyantError(f"cannot read {error.filename}: {error.strerror}") from error

    files, others = list[str](), _Depths()
    for folder, _, names in os.walk(directory, onerror=refuse):
        depth = 1 if folder == directory else 1 + len(os.path.relpath(folder, directory).split(os.sep))
        for name in names:
            if name.startswith(NAME):
                files.append(os.path.realpath(os.path.join(folder, name)))
            else:
                others[depth] += 1
    return files, others


def _expand_uri(path: str, reach: Reach) -> list[str]:
    from pyarrow import fs

    try:
        system, name = system_of(path, reach)
        info = system.get_file_info(name)
        if info.type == fs.FileType.NotFound:
            raise AbeyantError(_missing(path))
        if info.type != fs.FileType.Directory:
            return [path]
        entries = system.get_file_info(fs.FileSelector(name, recursive=True))
    except (OSError, ValueError) as error:
        raise AbeyantError(f"cannot read {path}: {error}") from error
    root = path.rstrip("/")
    files = [
        root + entry.path[len(name.rstrip("/")) :]
        for entry in entries
        if entry.type == fs.FileType.File and entry.base_name.startswith(NAME)
    ]
    if not files:
        raise AbeyantError(f"no {NAME}* in {path}")
    return files
