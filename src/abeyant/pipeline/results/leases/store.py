"""A lease on a store: one run at a time writes a result there, and a dead run's lease expires.

An object store has no locks. So a run writes a small file and rewrites it every few seconds while it lives. A later run
fails if it finds such a file that is fresh by the store's own clock (Gray and Cheriton, 1989). Each run writes its own
lease before it looks for other leases, so of two runs that start at once at most one goes on.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from uuid import uuid4

from abeyant.errors import AbeyantError
from abeyant.pipeline.results.leases.local import describe_owner, this_owner
from abeyant.pipeline.results.manifests import LEASES
from abeyant.pipeline.spark.store import Store

__all__ = ["LEASE_SECONDS", "StoreLease"]

LEASE_SECONDS: Final = 60.0
"""Seconds after which a lease expires unless it is renewed, if its process runs on another machine."""

_RENEW_SECONDS: Final = 10.0
_LOOKS: Final = 20
_LOOK_SECONDS: Final = 0.05


class StoreLease:
    """A lease on the result below a store's root, renewed by a thread until `close` or the end of the process.

    Raises `AbeyantError` if another run is alive, and names that run. `expired` lists the leases of runs that ended
    without `close`; the directories of files that these runs left have the same names as the leases.
    """

    def __init__(self, store: Store, what: str) -> None:
        self._store: Final = store
        self.name: Final = f"{what}-{uuid4().hex[:12]}"
        self._text: Final = json.dumps({**this_owner(), "started": _started(os.getpid())})
        self._closed: Final = threading.Event()
        self._renewing: Final = threading.Lock()
        store.put(self._file(self.name), self._text)
        try:
            self.expired: Final = self._others()
        except BaseException:
            store.remove(self._file(self.name))
            raise
        threading.Thread(target=self._renew, name="abeyant-lease", daemon=True).start()

    def __enter__(self) -> StoreLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        """Raise `AbeyantError` if another run has removed this lease as expired, and so has taken over."""
        if self._store.read(self._file(self.name)) is None:
            raise AbeyantError(
                f"{self._store.root}: another run has taken over, because this one did not renew its lease for "
                f"{LEASE_SECONDS:.0f} s"
            )

    def close(self) -> None:
        """Release the lease."""
        if self._closed.is_set():
            return
        self._closed.set()
        # Not during a renewal, which would write the file again. Where this fails, the next run finds the lease of an
        # ended process.
        with self._renewing, suppress(Exception):
            self._store.remove(self._file(self.name))

    def remove_expired(self, name: str) -> None:
        """Remove another run's expired lease. That run fails if it is still alive and checks its lease."""
        self._store.remove(self._file(name))

    def _others(self) -> list[str]:
        own_changed_ms = self._store.changed_ms(self._file(self.name)) or 0
        expired = []
        for file in self._store.names(LEASES):
            name = file.removesuffix(".json")
            changed_ms = self._store.changed_ms(self._file(name))
            if file.startswith((".", "_")) or name == self.name or changed_ms is None:
                continue
            text = self._read(name)
            if text is None:
                continue
            owner = _owner_in(text)
            age = (own_changed_ms - changed_ms) / 1000
            if age >= LEASE_SECONDS or _has_ended(owner):
                expired.append(name)
            else:
                raise AbeyantError(
                    f"{self._store.root} is being written by {describe_owner(owner)}; if that process has died, "
                    f"its lease expires in {LEASE_SECONDS - age:.0f} s"
                )
        return expired

    def _read(self, name: str) -> str | None:
        """Return the text of another run's lease; None if the lease is gone. Waits while it is being renewed."""
        text: str | None = None
        for _ in range(_LOOKS):
            text = self._store.read(self._file(name))
            if text is None or _owner_in(text):
                break
            time.sleep(_LOOK_SECONDS)  # it is being renewed
        return text

    def _renew(self) -> None:
        while not self._closed.wait(_RENEW_SECONDS):
            # After an error, the store may respond again before the lease expires.
            with self._renewing, suppress(Exception):
                if not self._closed.is_set() and self._store.exists(self._file(self.name)):
                    self._store.renew(self._file(self.name), self._text)

    @staticmethod
    def _file(name: str) -> str:
        return f"{LEASES}/{name}.json"


def _owner_in(text: str | None) -> dict[str, Any]:
    try:
        owner = json.loads(text or "")
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _has_ended(owner: dict[str, Any]) -> bool:
    """Return whether the lease's process ran on this machine and has ended. False for processes elsewhere."""
    if owner.get("host") != socket.gethostname() or not isinstance(owner.get("process"), int):
        return False
    return owner.get("started") is not None and _started(owner["process"]) != owner["started"]


def _started(process: int) -> str | None:
    """Return the start time and boot id of a process (Linux). They tell it from a later process with the same number.

    None if the process has ended.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}/{fields[18]}"
