"""Who writes a result on a store: one at a time, and what a dead run left gives way.

An object store has no locks. So a run puts a small file there, a *claim*, and puts it again every few seconds for as
long as it lives. Whoever comes then finds a claim that is fresh, by the store's own clock, and is refused. A lease, in
short (Gray and Cheriton, 1989). Each puts its claim before it looks for others, so of two that come at once at most one
stays.
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
from abeyant.pipeline.results.manifests import CLAIMS
from abeyant.pipeline.results.writer import about_us, named
from abeyant.pipeline.spark.store import Store

__all__ = ["ALIVE_SECONDS", "Claim"]

ALIVE_SECONDS: Final = 60.0
"""For so long after it was last put, a claim of another machine counts."""

_RENEW_SECONDS: Final = 10.0
_LOOKS: Final = 20
_LOOK_SECONDS: Final = 0.05


class Claim:
    """A claim to the result below a store's root, renewed by a thread until `close`, or until the process ends.

    Raises `AbeyantError` that names the other run where one is alive. `dead` are the claims' names of runs that
    ended without `close`: what they left behind bears them.
    """

    def __init__(self, store: Store, what: str) -> None:
        self._store: Final = store
        self.name: Final = f"{what}-{uuid4().hex[:12]}"
        self._text: Final = json.dumps({**about_us(), "started": _started(os.getpid())})
        self._closed: Final = threading.Event()
        self._renewing: Final = threading.Lock()
        store.put(self._file(self.name), self._text)
        try:
            self.dead: Final = self._others()
        except BaseException:
            store.remove(self._file(self.name))
            raise
        threading.Thread(target=self._renew, name="abeyant-claim", daemon=True).start()

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        """Raise `AbeyantError` where another run has taken this one for dead, and its place."""
        if self._store.read(self._file(self.name)) is None:
            raise AbeyantError(
                f"{self._store.root}: another run has taken over, since this one was not heard of for "
                f"{ALIVE_SECONDS:.0f} s"
            )

    def close(self) -> None:
        """Give it up."""
        if self._closed.is_set():
            return
        self._closed.set()
        # Not while it is being renewed: it would come back, and stay. Where this fails the next run finds a claim of a
        # process that has ended.
        with self._renewing, suppress(Exception):
            self._store.remove(self._file(self.name))

    def forget(self, name: str) -> None:
        """Remove the claim of a run that is dead, when what it left behind is gone."""
        self._store.remove(self._file(name))

    def _others(self) -> list[str]:
        mine = self._store.changed_ms(self._file(self.name)) or 0
        dead = []
        for file in self._store.names(CLAIMS):
            name = file.removesuffix(".json")
            when = self._store.changed_ms(self._file(name))
            if file.startswith((".", "_")) or name == self.name or when is None:
                continue
            text = self._read(name)
            if text is None:
                continue
            told = _told(text)
            age = (mine - when) / 1000
            if age >= ALIVE_SECONDS or _has_ended(told):
                dead.append(name)
            else:
                raise AbeyantError(
                    f"{self._store.root} is being written by {named(told)}; if that is dead, "
                    f"it gives way {ALIVE_SECONDS - age:.0f} s from now"
                )
        return dead

    def _read(self, name: str) -> str | None:
        """Return what another's claim says; None where it is gone."""
        text: str | None = None
        for _ in range(_LOOKS):
            text = self._store.read(self._file(name))
            if text is None or _told(text):
                break
            time.sleep(_LOOK_SECONDS)  # it is being renewed
        return text

    def _renew(self) -> None:
        while not self._closed.wait(_RENEW_SECONDS):
            # The store may answer again before the claim is old.
            with self._renewing, suppress(Exception):
                if not self._closed.is_set() and self._store.exists(self._file(self.name)):
                    self._store.renew(self._file(self.name), self._text)

    @staticmethod
    def _file(name: str) -> str:
        return f"{CLAIMS}/{name}.json"


def _told(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _has_ended(told: dict[str, Any]) -> bool:
    """Whether a claim is of a process of this machine that has ended; of another machine's nobody knows."""
    if told.get("host") != socket.gethostname() or not isinstance(told.get("process"), int):
        return False
    return told.get("started") is not None and _started(told["process"]) != told["started"]


def _started(process: int) -> str | None:
    """Return what tells a process from a later one of its number: when it began, and at which boot (Linux)."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}/{fields[18]}"
