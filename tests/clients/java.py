"""Kafka's own client: `java/Driver.java` in one JVM for all tests does what it is told; others have their own."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from abeyant.broker.genuine import Kafka, die_with_parent
from clients.toolchains import HERE

SMALL = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SILENT = (*SMALL, "-Dlog4j2.level=OFF")  # what is logged would come between what our programs say
_DRIVER = str(HERE / "java" / "Driver.java")


class Programs(NamedTuple):
    """Our programs, compiled."""

    kafka: Kafka
    searched: tuple[Path, ...]
    """Where our classes are, and what they need beside Kafka's jars."""

    def command(self, name: str, *arguments: str) -> list[str]:
        """The command line that runs one."""
        return self.kafka.command(name, *arguments, options=_SILENT, also=self.searched)


def compiled(kafka: Kafka, folder: Path, *names: str, also: tuple[Path, ...] = ()) -> Programs:
    """Compile them into a folder; `also` is searched beside Kafka's jars."""
    sources = [str(HERE / "java" / f"{name}.java") for name in names]
    searched = os.pathsep.join([*map(str, also), f"{kafka.jars}/*"])
    line = ["javac", "-cp", searched, "-d", str(folder), *sources]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Programs(kafka, (folder, *also))


class Driver:
    """The program, as it runs. One thing at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._pool = ThreadPoolExecutor(1)
        self._lock = threading.Lock()

    def begin(self, **asked: Any) -> Future[dict[str, Any]]:
        """Ask for something; its answer is in the future."""
        return self._pool.submit(self._ask, asked)

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Ask for something, and wait for it."""
        return self.begin(**asked).result(120)

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"error": "the JVM has ended"}')
        return answer


@contextmanager
def driving(kafka: Kafka) -> Iterator[Driver]:
    """Start it and, at the end, end it."""
    process = subprocess.Popen(
        kafka.command(_DRIVER, options=_SILENT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, preexec_fn=die_with_parent,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            assert process.stdout.readline() == "ready\n", "it did not compile, or did not start"
            yield Driver(process)
        finally:
            process.stdin.close()
