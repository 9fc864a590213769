"""The JVM of a command under test, to be killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

__all__ = ["kill_jvm"]


def kill_jvm(parent: int) -> None:
    """Kill -9 the JVM that a process has started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (java,) = (int(child) for child in children if Path(f"/proc/{child}/comm").read_text() == "java\n")
    os.kill(java, signal.SIGKILL)
