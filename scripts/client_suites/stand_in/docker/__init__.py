"""What aiokafka's tests ask of Docker: "a container with Kafka at these ports". They get `abeyant broker` at each.

Kafka has one broker behind all four ports; these are four, for ours has one kind of listener. In the container that
makes certificates their script runs; what a test orders in the other one (users, ACLs, Kerberos) does nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PORTS = {
    "PLAINTEXT": "ADVERTISED_PORT",
    "SSL": "ADVERTISED_SSL_PORT",
    "SASL_PLAINTEXT": "ADVERTISED_SASL_PLAINTEXT_PORT",
    "SASL_SSL": "ADVERTISED_SASL_SSL_PORT",
}
_USERS = [f"--user={name}:{name}" for name in ("admin", "test", "test2")]  # of their kafka_server_jaas.conf


class Container:
    """Brokers in processes of their own."""

    def __init__(self, asked: dict[str, Any], certificates: Path) -> None:
        key, chain, store = (certificates / name for name in ("server.key", "server.crt", "server.pem"))
        store.write_text(key.read_text() + chain.read_text())
        self._processes = []
        for protocol, port in _PORTS.items():
            command = [os.environ["ABEYANT"], "broker", f"--port={asked[port]}", f"--security={protocol}"]
            command += ["--set", f"num.partitions={asked['NUM_PARTITIONS']}", "--set", "node.id=0"]
            command += ["--set", f"ssl.keystore.location={store}"] if protocol.endswith("SSL") else []
            command += _USERS if protocol.startswith("SASL") else []
            self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))

    def exec_run(self, *_: Any, **__: Any) -> tuple[int, bytes]:
        """Nothing."""
        return 0, b""

    def stop(self) -> None:
        """End them."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(30)


class Workshop:
    """Runs commands with the folders of this machine that were given."""

    def __init__(self, folders: dict[str, str], place: str) -> None:
        self._folders, self._place = folders, place

    def exec_run(self, command: Sequence[str], **_: Any) -> tuple[int, bytes]:
        """Run one."""
        here = [self._folders.get(word, word) for word in command]
        done = subprocess.run(
            here, cwd=self._folders[self._place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.returncode, done.stdout

    def stop(self) -> None:
        """Nothing runs."""


def _run(
    environment: dict[str, Any] | None = None, volumes: dict[Any, dict[str, str]] | None = None,
    working_dir: str = "/", **_: Any,
) -> Container | Workshop:  # fmt: skip
    folders = {bound["bind"]: str(path) for path, bound in (volumes or {}).items()}
    if environment is None:
        return Workshop(folders, working_dir)
    return Container(environment, Path(folders["/ssl_cert"]))


models = SimpleNamespace(containers=SimpleNamespace(Container=Container))


def from_env() -> Any:
    """The client."""
    return SimpleNamespace(containers=SimpleNamespace(run=_run), close=lambda: None)
