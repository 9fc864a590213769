"""What a capture needs from package registries: Kafka's jars (Maven) and Python clients (pip).

Both are fetched once into the work folder and used from there afterwards.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from abeyant.broker.genuine import ClusterError, Kafka, fetch

HERE = Path(__file__).resolve().parent
CLIENTS = ("confluent-kafka==2.16.1", "kafka-python==3.0.12")


class CaptureError(ClusterError):
    """The capture cannot go on, or its result is not what it must be; the text says why."""


@dataclass(frozen=True)
class Toolchain:
    """The programs that every process of a capture is started with."""

    kafka: Kafka
    python: Path


def prepare(work: Path) -> Toolchain:
    """Fetch what is not there yet; return the tools."""
    return Toolchain(kafka=fetch(work), python=_clients(work / "venv"))


def _clients(folder: Path) -> Path:
    python = folder / "bin" / "python"
    done = folder / (".complete-" + "-".join(CLIENTS))
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        print("installing the Python clients into a virtual environment ...", flush=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "-q", *CLIENTS])
        done.touch()
    return python


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        tail = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
        raise CaptureError(f"{Path(command[0]).name} failed:\n{tail}")
