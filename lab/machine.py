"""Describe the machine and the versions of a result, and measure the CPU share of other processes."""

from __future__ import annotations

import functools
import os
import platform
import re
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

import abeyant
from abeyant.engine import is_compiled
from lab import jvm

BUSY: Final = 0.1
"""CPU share of other processes from which the machine counts as busy."""


class Others:
    """Meter of the CPU share that other processes and virtual machines use from its construction on."""

    def __init__(self) -> None:
        self._all, self._ours, self._began = _busy_s(), _ours_s(), time.monotonic()

    def share(self) -> float | None:
        """Return the share of all CPU time since the construction, 0 to 1; None without /proc/stat."""
        now, capacity = _busy_s(), (time.monotonic() - self._began) * (os.cpu_count() or 1)
        if self._all is None or now is None or capacity <= 0:
            return None
        return min(max((now - self._all - (_ours_s() - self._ours)) / capacity, 0.0), 1.0)


def _busy_s() -> float | None:
    """Return the machine's busy CPU seconds since boot, including seconds stolen by other virtual machines."""
    try:
        first, *ticks = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        user, nice, system, _, _, irq, softirq, steal, *_ = map(int, ticks)
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") if first == "cpu" else None


def _ours_s() -> float:
    """Return the CPU seconds of this process and its finished children."""
    return sum(os.times()[:4])


@functools.cache
def machine() -> dict[str, str]:
    """Return the processor, cores, memory and system."""
    return {
        "processor": _processor(),
        "cores": str(cores()),
        "memory": f"{_memory_gib():.0f} GiB",
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}, {platform.machine()}",
    }


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and abeyant, and of the peers that are installed."""
    found = {
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "abeyant": f"{abeyant.__version__}, {'compiled' if is_compiled() else 'interpreted'}",
    }
    with suppress(metadata.PackageNotFoundError):
        found["uvloop"] = metadata.version("uvloop")
    return found | jvm.versions()


def load() -> float:
    """Return the load average: how many processes wanted a core over the last minute."""
    return os.getloadavg()[0]


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _memory_gib() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError):
        return 0.0
