"""What a capture needs from package registries: Kafka's jars (Maven) and Python clients (pip).

Both are fetched once into the work folder and used from there afterwards.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENTS = ("confluent-kafka==2.16.1", "kafka-python==3.0.12")


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Let the kernel kill this process when the capture dies without a chance to tidy up.

    For `preexec_fn`: it runs in the new process, and does nothing but one system call.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class CaptureError(Exception):
    """The capture cannot go on, or its result is not what it must be; the text says why."""


@dataclass(frozen=True)
class Toolchain:
    """The programs that every process of a capture is started with."""

    java: str
    jars: Path
    python: Path
    kafka_version: str

    def kafka_class(self, main_class: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        """Return the command line that runs one of Kafka's main classes."""
        classpath = f"{self.jars}{os.sep}*"
        # Times in the log are in UTC whatever the zone of this machine.
        common = ("-Duser.timezone=UTC", "-Djava.net.preferIPv4Stack=true")
        return [self.java, *common, *options, "-cp", classpath, main_class, *arguments]


def prepare(work: Path) -> Toolchain:
    """Fetch what is not there yet; return the tools."""
    java = shutil.which("java")
    maven = shutil.which("mvn")
    if java is None or maven is None:
        raise CaptureError("a capture needs Java 17 or newer and Maven (mvn) on the PATH")
    return Toolchain(
        java=java,
        jars=_jars(maven, work / "jars"),
        python=_clients(work / "venv"),
        kafka_version=kafka_version(),
    )


def kafka_version() -> str:
    """Return the Kafka version that pom.xml names."""
    found = re.search(r"<kafka\.version>([^<]+)<", (HERE / "pom.xml").read_text())
    if found is None:
        raise CaptureError("pom.xml names no kafka.version")
    return found.group(1)


def _jars(maven: str, folder: Path) -> Path:
    done = folder / f".complete-{kafka_version()}"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        print("fetching Kafka's jars with Maven ...", flush=True)
        _run(
            [
                maven, "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies",
                "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
            ]
        )  # fmt: skip
        done.touch()
    return folder


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
