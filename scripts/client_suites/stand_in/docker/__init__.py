"""What aiokafka's tests ask of Docker: "a container with Kafka at these ports". They get `abeyant broker` at each.

Kafka has one broker behind all four ports; these are four, for ours has one kind of listener. In the container that
makes certificates their script runs. In the other one kafka-acls.sh sets ACLs of the broker at the port of
SASL_PLAINTEXT, by Kafka's own tool; what else a test orders there (users, Kerberos) does nothing.
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
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin",
}  # as their start-kafka.sh has them
_ADMIN = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin";
"""
_USERS = [f"--user={name}:{name}" for name in ("admin", "test", "test2")]  # of their kafka_server_jaas.conf


class Container:
    """Brokers in processes of their own."""

    def __init__(self, asked: dict[str, Any], certificates: Path) -> None:
        key, chain, store = (certificates / name for name in ("server.key", "server.crt", "server.pem"))
        store.write_text(key.read_text() + chain.read_text())
        self._admin = certificates / "admin.properties"
        self._admin.write_text(_ADMIN)
        self._guarded = f"127.0.0.1:{asked[_PORTS['SASL_PLAINTEXT']]}"
        self._processes = []
        for protocol, port in _PORTS.items():
            command = [os.environ["ABEYANT"], "broker", f"--port={asked[port]}", f"--security={protocol}"]
            command += ["--set", f"num.partitions={asked['NUM_PARTITIONS']}", "--set", "node.id=0"]
            command += ["--set", f"ssl.keystore.location={store}"] if protocol.endswith("SSL") else []
            command += [word for name, value in _AUTHORIZER.items() for word in ("--set", f"{name}={value}")]
            command += _USERS if protocol.startswith("SASL") else []
            self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))

    def exec_run(self, command: str | Sequence[str], **_: Any) -> tuple[int, bytes]:
        """Run kafka-acls.sh, with a broker in place of ZooKeeper; nothing else."""
        words = command.split() if isinstance(command, str) else list(command)
        tools = os.environ.get("KAFKA_TOOLS")
        if tools is None or not words[0].endswith("/kafka-acls.sh"):
            return 0, b""
        at = words.index("--authorizer-properties")
        del words[at : at + 2]
        where = ["--bootstrap-server", self._guarded, "--command-config", str(self._admin)]
        done = subprocess.run(
            [f"{tools}/kafka-acls.sh", *where, *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout

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
