"""Measure what a block of code costs this process and all its descendants: Spark's JVM, its Python workers.

On a machine with other work, processor time tells two methods apart; seconds on the wall clock do not.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PAUSE = 1.0  # seconds between two looks at the memory


class _Process(NamedTuple):
    parent: int
    cpu: float  # seconds, its ended children included


class Cost:
    """Context manager that measures its block: `wall` and `cpu` in seconds, `memory` as the most resident bytes."""

    def __enter__(self) -> Self:
        self.memory, self._most = 0, 0.0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        self._cpu, self._wall = _family_cpu(), time.perf_counter()
        self._most = self._cpu
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, self.so_far() - self._cpu
        self._over.set()
        self._watch.join()

    def so_far(self) -> float:
        """Return the processor seconds so far. They never fall, even if a process has ended since the last look."""
        self._most = max(self._most, _family_cpu())
        return self._most

    def _look(self) -> None:
        while True:
            self.memory = max(self.memory, sum(resident(pid) for pid in _family()))
            self.so_far()
            if self._over.wait(_PAUSE):
                return


def _family_cpu() -> float:
    """Return the processor seconds of this process and its descendants, including their ended children."""
    return sum(process.cpu for process in _family().values())


def _family() -> dict[int, _Process]:
    """Return this process and its descendants, by process id."""
    everyone = dict(_everyone())
    children: dict[int, list[int]] = {}
    for pid, process in everyone.items():
        children.setdefault(process.parent, []).append(pid)
    found, look_at = {}, [os.getpid()]
    while look_at:
        pid = look_at.pop()
        if pid in everyone:
            found[pid] = everyone[pid]
        look_at += children.get(pid, [])
    return found


def _everyone() -> Iterator[tuple[int, _Process]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), _Process(int(fields[1]), sum(map(int, fields[11:15])) / _TICKS)


def resident(pid: int) -> int:
    """Return a process's proportional set size in bytes: shared memory is divided among the processes that share it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def live_heap(jvm: int) -> int | None:
    """Return the bytes of the objects that a JVM can still reach, after a full collection; None without a JDK's jcmd.

    Resident memory says little about a JVM: it takes all of its heap's size before it has to collect.
    """
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        return None
    asked = subprocess.run([jcmd, str(jvm), "GC.class_histogram"], capture_output=True, text=True, check=False)
    total = re.search(r"^Total\s+\d+\s+(\d+)", asked.stdout, re.MULTILINE)
    return int(total[1]) if total else None
