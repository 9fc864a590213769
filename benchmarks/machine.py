"""The machine and the versions that figures belong to."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from importlib import metadata
from pathlib import Path

import abeyant
from abeyant.engine import is_compiled


def machine() -> dict[str, str]:
    """Processor, cores, memory, system."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _memory(),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}, {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """What was measured, the JVM's apart."""
    found = {
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "abeyant": f"{abeyant.__version__}, {'compiled' if is_compiled() else 'interpreted'}",
    }
    with contextlib.suppress(metadata.PackageNotFoundError):
        found["uvloop"] = metadata.version("uvloop")
    return found


def load() -> float:
    """How many processes wanted a core over the last minute."""
    return os.getloadavg()[0]


def _processor() -> str:
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    model = re.search(r"^model name\s*:\s*(.+)$", described, re.MULTILINE)
    return model[1].strip() if model else platform.processor() or "unknown"


def _memory() -> str:
    try:
        total = re.search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return "unknown"
    return f"{int(total[1]) / 2**20:.0f} GiB" if total else "unknown"
