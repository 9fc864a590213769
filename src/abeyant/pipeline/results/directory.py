"""Write a result that appears whole or not at all: write a hidden directory beside its place, then rename that.

A killed run leaves at most the hidden directory, which the next run removes.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from abeyant.errors import AbeyantError
from abeyant.former import check_former
from abeyant.pipeline.results.leases.local import check_free, leased, result_lease

__all__ = [
    "MARKER",
    "REPORT",
    "STREAM",
    "check_target",
    "is_result",
    "new_result",
    "read_marker",
    "title_entry",
    "write_marker",
]

MARKER: Final = "abeyant-analysis.json"
STREAM: Final = "abeyant-stream.json"
"""The file in a stream's result that describes the stream: see `stream_run.description`."""

REPORT: Final = "report.html"

_TOOL: Final = "abeyant"
_LOCK: Final = ".lock"


def check_target(out: Path, *, overwrite: bool) -> None:
    """Raise `AbeyantError` unless a result may be put at `out`.

    With `overwrite`, a directory may be replaced if it holds a result of abeyant, and no other process writes there.
    Without, `out` must be missing or an empty directory.
    """
    check_free(result_lease(out), out)
    if out.is_symlink() or out.exists():
        if out.is_dir() and not any(out.iterdir()):
            _check_not_working_directory(out)
            return
        if out.is_dir():
            check_former(out, os.listdir(out), MARKER, "name another place, or remove it and run this again")
        if not is_result(out):
            raise AbeyantError(f"{out} exists and is not a result of abeyant: it is left alone; name another place")
        if not overwrite:
            raise AbeyantError(f"{out} already holds a result; use --overwrite to replace it")
        _check_not_working_directory(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AbeyantError(f"cannot write {out}: {error.strerror or error}") from error
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise AbeyantError(f"cannot write {out}: no permission in {out.parent}")


def _check_not_working_directory(out: Path) -> None:
    """Raise `AbeyantError` if a result would replace the working directory.

    The user's shell would otherwise be left in a directory that no longer exists.
    """
    target = Path(os.path.realpath(out))
    working_directory = Path(os.path.realpath(os.curdir))
    if target == working_directory or target in working_directory.parents:
        raise AbeyantError(
            f"{out} is or contains the working directory, which a result cannot replace: name a directory in it, "
            "or run this elsewhere"
        )


def is_result(directory: Path) -> bool:
    """Return whether a directory holds a finished result of abeyant."""
    return directory.is_dir() and not directory.is_symlink() and read_marker(directory).get("tool") == _TOOL


def read_marker(directory: Path) -> Mapping[str, Any]:
    """Return the contents of a result's marker file; {} if it is missing or unreadable."""
    try:
        marker = json.loads((directory / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return marker if isinstance(marker, dict) else {}


def title_entry(title: str | None) -> dict[str, str]:
    """Return the marker's entry for the user's title of the report; {} without a title."""
    return {} if title is None else {"title": title}


def write_marker(directory: Path, entries: Mapping[str, Any]) -> None:
    """Write the marker file, which makes a directory a result of abeyant."""
    text = json.dumps({"tool": _TOOL} | dict(entries), indent=2, ensure_ascii=False)
    (directory / MARKER).write_text(text + "\n", encoding="utf-8")


@contextmanager
def new_result(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a directory to write into; when the block succeeds it becomes `out`, else it is removed.

    Raises `AbeyantError` if `out` cannot be written, another process is writing it, or the disk is full.
    """
    out = Path(os.path.abspath(out))
    with leased(result_lease(out), out), _new_result(out, overwrite=overwrite) as staging:
        yield staging


@contextmanager
def _new_result(out: Path, *, overwrite: bool) -> Iterator[Path]:
    _remove_abandoned(out)
    check_target(out, overwrite=overwrite)
    try:
        staging = Path(tempfile.mkdtemp(prefix=_prefix(out), dir=out.parent))
    except OSError as error:
        raise AbeyantError(f"cannot write {out}: {error.strerror or error}") from error
    import fcntl  # not on Windows, where the rest of the package runs

    try:
        # Locked while this process lives, so that the next run can tell an abandoned directory from one in use.
        with open(staging / _LOCK, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield staging
                _put_in_place(staging, out, overwrite=overwrite)
            except ConnectionError:
                raise  # Spark's JVM has ended: not an error of `out`
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise AbeyantError(f"the disk is full: {out} was not written") from error
                raise AbeyantError(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _put_in_place(staging: Path, out: Path, *, overwrite: bool) -> None:
    # Check again: what appeared since the first check must not be lost.
    check_target(out, overwrite=overwrite)
    (staging / _LOCK).unlink()
    staging.chmod(0o777 & ~_umask())
    backup = None
    if out.exists():
        backup = Path(tempfile.mkdtemp(prefix=_prefix(out), dir=out.parent))
        out.rename(backup / "replaced")
    try:
        staging.rename(out)
    except OSError:
        if backup is not None:
            (backup / "replaced").rename(out)
        raise
    finally:
        if backup is not None:
            shutil.rmtree(backup, ignore_errors=True)


def _prefix(out: Path) -> str:
    return f".{out.name}.abeyant-"


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _remove_abandoned(out: Path) -> None:
    """Remove hidden directories that killed runs left beside `out`."""
    import fcntl

    for directory in out.parent.glob(f"{glob.escape(_prefix(out))}*"):
        with suppress(OSError):
            if directory.is_symlink() or not directory.is_dir():
                continue
            if (directory / "replaced").is_dir() and not out.exists():
                # Killed between the two renames: the old result is the only one.
                (directory / "replaced").rename(out)
            lock = directory / _LOCK
            if lock.exists():
                with open(lock, "rb") as lock_file:
                    fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            elif not (directory / "replaced").exists() and any(directory.iterdir()):
                continue
            shutil.rmtree(directory, ignore_errors=True)
