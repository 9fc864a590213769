"""Run a standalone Spark cluster on this machine, from PySpark's own jars: a master and workers, each a process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark

from abeyant.pipeline.spark.archive import archive_options
from abeyant.pipeline.spark.java import find_java
from abeyant.pipeline.spark.session import BRIEF_COLLECTOR, BRIEF_JAVA

__all__ = ["SETTINGS", "Cluster", "brief_java", "cluster"]

SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
}
"""The Spark settings that a session on such a cluster needs."""

_START_SECONDS: Final = 120.0


def brief_java() -> str:
    """Return the options of a JVM that lives for a minute or does little: one compiler, and an archive of classes."""
    return " ".join([*BRIEF_JAVA, BRIEF_COLLECTOR, *archive_options(find_java(), _spark() / "jars", "", write=False)])


class Cluster:
    """A running cluster; `master` is its URL."""

    def __init__(self, master: str, workers: list[int]) -> None:
        self.master: Final = master
        self._workers: Final = workers

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now."""
        return [
            pid
            for pid, parent in _parents().items()
            if parent in self._workers and b"CoarseGrainedExecutorBackend" in _command(pid)
        ]

    def python_workers(self) -> list[int]:
        """Return the process ids of the Python workers below the executors."""
        parents, found, look_at = _parents(), [], self.executors()
        while look_at:
            above = look_at.pop()
            below = [pid for pid, parent in parents.items() if parent == above]
            found += below
            look_at += below
        return found


@contextmanager
def cluster(folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """Run a master and `workers` workers of `cores` cores each during the block; their files are below `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(_start(folder / "master.log", "master.Master", "--port", str(port)))
        _wait(folder / "master.log", "New state: ALIVE", 1)
        for number in range(workers):
            work = ["--work-dir", str(folder / f"worker-{number}"), "--cores", str(cores), "--memory", memory, url]
            started.append(_start(folder / f"worker-{number}.log", "worker.Worker", *work))
        _wait(folder / "master.log", "Registering worker", workers)
        yield Cluster(url, [process.pid for process in started[1:]])
    finally:
        # Workers first, with a chance to end their executors.
        for process in reversed(started):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _spark() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _start(log: Path, what: str, *arguments: str) -> subprocess.Popen[bytes]:
    spark = _spark()
    environment = os.environ | {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(spark),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": brief_java(),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    call = [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}"]
    call += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
    with log.open("wb") as out:
        return subprocess.Popen(call, stdout=out, stderr=out, env=environment, start_new_session=True)


def _wait(log: Path, said: str, times: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while log.read_text(errors="replace").count(said) < times:
        if time.monotonic() > end:
            raise TimeoutError(f"the cluster did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def _parents() -> dict[int, int]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it ended meanwhile
                found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
