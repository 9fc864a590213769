"""Fetch Kafka's jars with Maven, once, and build the command lines that run them."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from abeyant.cache import cache_folder

HERE = Path(__file__).resolve().parent

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


class ClusterError(Exception):
    """Genuine Kafka cannot be fetched or started, or has failed. The message says why."""


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent dies.

    Pass this function as `preexec_fn`: it runs in the new process, and makes only one system call.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True)
class Kafka:
    """An installation of Apache Kafka: the Java command, the folder of the jars, and the version."""

    java: str
    jars: Path
    version: str
    also: tuple[Path, ...] = ()
    """Further class paths: plugins of brokers."""

    def command(
        self, main_class: str, *arguments: str, options: tuple[str, ...] = (), also: tuple[Path, ...] = ()
    ) -> list[str]:
        """Return the command line that runs the Java class `main_class` from Kafka's jars or the class paths `also`."""
        # Write logs in UTC, whatever the time zone of this machine.
        common = ("-Duser.timezone=UTC", "-Djava.net.preferIPv4Stack=true")
        searched = os.pathsep.join([*map(str, (*also, *self.also)), f"{self.jars}{os.sep}*"])
        return [self.java, *common, *options, "-cp", searched, main_class, *arguments]


def fetch(folder: Path | None = None) -> Kafka:
    """Fetch the jars into `folder`, by default in the user's cache, unless they are there already.

    Raises ClusterError without Java or Maven, or if Maven fails, and AbeyantError without a cache folder.
    """
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        raise ClusterError(f"Kafka needs Java 17 or newer and Maven: {'mvn' if java else 'java'} is not on the PATH")
    folder = folder or cache_folder() / "abeyant-kafka-capture"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "fetching").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return Kafka(java, _jars(maven, folder / "jars"), _version())


def _version() -> str:
    found = re.search(r"<kafka\.version>([^<]+)<", (HERE / "pom.xml").read_text())
    if found is None:
        raise ClusterError("pom.xml names no kafka.version")
    return found.group(1)


def _jars(maven: str, folder: Path) -> Path:
    done = folder / f".complete-{_version()}"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        print("fetching Kafka's jars with Maven ...", flush=True)
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        command = [maven, "-q", "-B", "-f", str(HERE / "pom.xml"), *goal]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            tail = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
            raise ClusterError(f"mvn failed:\n{tail}")
        done.touch()
    return folder
