"""The machine and the versions that a result belongs to."""

from __future__ import annotations

import functools
import os
import platform
import re
from pathlib import Path

import abeyance
from abeyance.engine import is_compiled


@functools.cache
def machine() -> str:
    """Processor, cores, memory and system."""
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    return f"{_processor()}, {_cores()} cores, {_memory_gib():.0f} GiB, {system}"


@functools.cache
def version() -> str:
    """Of abeyance and of Python."""
    how = "compiled" if is_compiled() else "interpreted"
    return f"abeyance {abeyance.__version__} {how}, Python {platform.python_version()}"


def _cores() -> int:
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
