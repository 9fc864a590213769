"""What aiokafka's tests ask of Docker: "a container with Kafka at this port". They get `abeyance broker` at that port.

Nothing runs inside the container, so what a test orders there (users, ACLs, Kerberos) does nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
from types import SimpleNamespace
from typing import Any


class Container:
    """A broker in a process of its own."""

    def __init__(self, port: int, partitions: int) -> None:
        command = [os.environ["ABEYANCE"], "broker", f"--port={port}", "--set", f"num.partitions={partitions}"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def exec_run(self, *_: Any, **__: Any) -> tuple[int, bytes]:
        """Nothing."""
        return 0, b""

    def stop(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)


def _run(environment: dict[str, Any] | None = None, **_: Any) -> Container:
    asked = environment or {}
    if "ADVERTISED_PORT" not in asked:  # the container that makes certificates
        return SimpleNamespace(exec_run=lambda *_, **__: (0, b""), stop=lambda: None)  # type: ignore[return-value]
    return Container(int(asked["ADVERTISED_PORT"]), int(asked["NUM_PARTITIONS"]))


models = SimpleNamespace(containers=SimpleNamespace(Container=Container))


def from_env() -> Any:
    """The client."""
    return SimpleNamespace(containers=SimpleNamespace(run=_run), close=lambda: None)
