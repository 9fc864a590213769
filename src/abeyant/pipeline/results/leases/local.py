"""A lease on a local path: one process at a time writes there.

A small file beside a result, or in a stream's folder, names the process that holds the lease. The process locks the
file (`flock`); the kernel releases the lock when the process ends, in whatever way. (For stores without locks see
`store`.)
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from abeyant.errors import AbeyantError
from abeyant.former import former, written_before

__all__ = ["LEASE_FILE", "acquire", "check_free", "leased", "release", "result_lease", "stream_lease"]

LEASE_FILE: Final = ".abeyant-claim"
"""Name of the lease's file in a stream's folder."""

_UNLOCKABLE: Final = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
"""Error numbers of file systems without locks. There no lease is held."""


class _Holding:
    def __init__(self, lock: int, holder: str) -> None:
        self.lock, self.holders = lock, {holder}


_ours: Final[dict[Path, _Holding]] = {}
"""The leases that this process holds, by path; each has a lock and holders (threads and queries of the process)."""

_guard: Final = threading.Lock()

_THREAD: Final = "thread "
"""Prefix of the name of a holder that shares the lease with no other thread."""


def result_lease(out: Path) -> Path:
    """Return the path of the lease on a result that appears whole: a file beside the result's directory."""
    home = Path(os.path.realpath(out.parent))
    return home / f".{out.name}{LEASE_FILE}"


def stream_lease(out: Path) -> Path:
    """Return the path of the lease on a stream's directory: a file in it, which all who share the directory see."""
    return Path(os.path.realpath(out)) / LEASE_FILE


@contextmanager
def leased(lease: Path, out: Path) -> Iterator[None]:
    """Hold the lease on `out` while the block runs. Reentrant in a thread.

    Creates the lease's folder, and removes it if it stays empty. Raises `AbeyantError` that names the process that
    holds the lease; that may be this process.
    """
    holder = f"{_THREAD}{threading.get_ident()}"
    with _guard:
        is_held = lease in _ours and holder in _ours[lease].holders
    if is_held:
        yield
        return
    _acquire(lease, out, holder, share=False)
    try:
        yield
    finally:
        release(lease, holder)


def acquire(lease: Path, out: Path, holder: str) -> bool:
    """Hold the lease on `out` until `release`. Return whether `holder` is new; False on file systems without locks.

    Holders of one process share the lease. Raises `AbeyantError` if another process holds it, and names that process.
    """
    return _acquire(lease, out, holder, share=True)


def release(lease: Path, holder: str) -> None:
    """Remove a holder of the lease. Release the lease if this was its last holder."""
    with _guard:
        holding = _ours.get(lease)
        if holding is None:
            return
        holding.holders.discard(holder)
        if holding.holders:
            return
        del _ours[lease]
        with suppress(OSError):
            lease.unlink()
        os.close(holding.lock)
        if lease.name == LEASE_FILE:
            with suppress(OSError):
                lease.parent.rmdir()  # only if it is empty


def check_free(lease: Path, out: Path) -> None:
    """Raise `AbeyantError` if another process holds the lease on `out`. Creates no file."""
    import fcntl  # not on Windows, where the rest of the package runs

    with _guard:
        if lease in _ours:
            return
    _check_former(lease, out)
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), open(lease, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _UNLOCKABLE:
                raise AbeyantError(_held_by(lease, out)) from error


def _acquire(lease: Path, out: Path, holder: str, *, share: bool) -> bool:
    with _guard:
        holding = _ours.get(lease)
        if holding is not None:
            # A query that has just ended in this process may still be among them: it is no other writer.
            if not share and any(name.startswith(_THREAD) for name in holding.holders):
                raise AbeyantError(_held_by(lease, out))
            fresh = holder not in holding.holders
            holding.holders.add(holder)
            return fresh
        _check_former(lease, out)
        lock = _locked(lease, out)
        if lock is not None:
            _ours[lease] = _Holding(lock, holder)
        return lock is not None


def _check_former(lease: Path, out: Path) -> None:
    before = lease.with_name(former(lease.name))
    if before != lease and before.exists():
        raise written_before(out, f"end the process that writes there; if there is none, remove {before}")


def _locked(lease: Path, out: Path) -> int | None:
    """Create, lock and fill a lease's file. Return the file descriptor; None on file systems without locks."""
    import fcntl

    last_error: OSError | None = None
    tries = 3  # `check_free` of another process locks it for an instant, too
    for _ in range(1000):
        try:
            lease.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(lease, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            # A holder may remove the empty folder between two of our calls.
            if isinstance(error, FileNotFoundError | FileExistsError) and not lease.parent.is_file():
                last_error = error
                continue
            raise AbeyantError(f"cannot write {out}: {error.strerror or error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if error.errno in _UNLOCKABLE:
                return None
            if tries := tries - 1:
                time.sleep(0.02)
                continue
            raise AbeyantError(_held_by(lease, out)) from error
        if _is_still(lease, lock):
            os.ftruncate(lock, 0)
            os.write(lock, json.dumps(this_owner()).encode())
            return lock
        last_error = None
        os.close(lock)  # its holder released and removed it between our two calls
    if last_error is not None:  # it could never be created, as in /proc
        raise AbeyantError(f"cannot write {out}: {last_error.strerror or last_error}")
    raise AbeyantError(_held_by(lease, out))


def _is_still(lease: Path, lock: int) -> bool:
    with suppress(OSError):
        path_stat, lock_stat = os.stat(lease), os.fstat(lock)
        return (path_stat.st_ino, path_stat.st_dev) == (lock_stat.st_ino, lock_stat.st_dev)
    return False


def _held_by(lease: Path, out: Path) -> str:
    for _ in range(20):
        with suppress(OSError, ValueError):
            owner = describe_owner(json.loads(lease.read_text(encoding="utf-8")))
            break
        time.sleep(0.01)  # it is being written
    else:
        owner = "a process that has just started"
    return f"{out} is being written by {owner}: wait until it ends, or name another place"


def this_owner() -> dict[str, Any]:
    """Return the contents of this process's lease: host, process id, and the time since when it holds the lease."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "process": os.getpid(), "since": since}


def describe_owner(owner: Mapping[str, Any]) -> str:
    """Describe the process that holds a lease, for messages; `owner` is empty if the lease's file is truncated."""
    if not owner:
        return "a run whose lease is truncated (it may have been killed while renewing it)"
    return f"process {owner.get('process')} on {owner.get('host')}, since {owner.get('since')}"
