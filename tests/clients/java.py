"""Kafka's own client, in one JVM for all tests: `java/Driver.java` does what it is told."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from abeyance.broker.genuine import Kafka, die_with_parent
from clients.toolchains import HERE

SMALL = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_DRIVER = str(HERE / "java" / "Driver.java")


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
        kafka.command(_DRIVER, options=SMALL), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
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
