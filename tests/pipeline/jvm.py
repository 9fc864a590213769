"""The JVM of a command under test: to be spared much of its work, or to be killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

from abeyant.pipeline.spark.session import BRIEF_COLLECTOR, BRIEF_JAVA, INTERPRETED

__all__ = ["BRIEF", "BRIEF_OPTIONS", "kill_jvm"]

BRIEF: Final = {"spark.driver.defaultJavaOptions": " ".join([*BRIEF_JAVA, BRIEF_COLLECTOR]), **INTERPRETED}
"""What halves the processor time of a minute's work, where Spark prepares for hours: see `brief` sessions."""

BRIEF_OPTIONS: Final = [f"--conf={name}={value}" for name, value in BRIEF.items()]
"""The same for a command."""


def kill_jvm(parent: int) -> None:
    """Kill -9 the JVM that a process has started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (java,) = (int(child) for child in children if Path(f"/proc/{child}/comm").read_text() == "java\n")
    os.kill(java, signal.SIGKILL)
