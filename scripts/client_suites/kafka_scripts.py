"""The scripts of Kafka's distribution that suites call: Kafka's own tools, and what starts a broker, ours or Kafka's.

`kafka-run-class.sh kafka.Kafka PROPERTIES` serves until it is ended, as the properties and KAFKA_OPTS say. What
`kafka-storage.sh format` makes ready for it, ours does not need.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from pathlib import Path

from abeyant.broker import Cluster
from abeyant.broker.definitions import definitions
from abeyant.broker.genuine import ClusterError, die_with_parent, fetch
from scripts.client_suites.source import run
from scripts.set_up import ROOT

_TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}
_STORAGE = "kafka.tools.StorageTool"
_OPTIONS = ("-Xmx400m", "-Dorg.apache.logging.log4j.level=INFO")  # log to standard output


def write_tools(folder: Path) -> bool:
    """Write Kafka's own tools into `folder`; False, and it says why, where Java or Maven is missing."""
    try:
        kafka = fetch()
    except ClusterError as error:
        print(f"without {' and '.join(_TOOLS)}: {error}", flush=True)
        return False
    for name, tool in _TOOLS.items():
        _write(folder / name, shlex.join(kafka.command(tool)))
    return True


def write_starters(folder: Path, *, genuine: bool) -> None:
    """Write what starts a broker. Raises `ClusterError` where genuine Kafka is wanted and cannot be had."""
    if genuine:
        java, *options, _ = fetch().command("", options=_OPTIONS)
        start = f"{shlex.quote(java)} $KAFKA_OPTS {shlex.join(options)}"
        storage = f"{start} {_STORAGE}"
    else:
        start = f"env PYTHONPATH={shlex.quote(str(ROOT))} {shlex.join([sys.executable, '-m', __spec__.name])}"
        storage = "true"
    _write(folder / "kafka-run-class.sh", start)
    _write(folder / "kafka-storage.sh", storage)


def _write(path: Path, command: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


def _serve(properties: Path) -> None:
    given = dict(re.findall(r"^([\w.]+)=(.*)$", properties.read_text(), re.MULTILINE))
    protocol, port = re.findall(r"^(\w+)://[^,]*?:(\d+)", given["listeners"])[0]
    known = definitions("broker")
    settings = {name: value for name, value in given.items() if name in known and not known[name].unsupported}
    if "ssl.keystore.location" in given:
        keystore = Path(given["ssl.keystore.location"])
        settings["ssl.keystore.location"] = str(_as_pem(keystore, given["ssl.keystore.password"]))
    users = _users() if protocol.startswith("SASL") else None
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with Cluster(port=int(port), settings=settings, security=protocol, users=users):
        for user in users or ():
            print(f"Replayed UserScramCredentialRecord creating new entry for {user}")
        print(f"[KafkaRaftServer nodeId={given['node.id']}] Kafka Server started", flush=True)
        ended.wait()


def _users() -> dict[str, str]:
    """From the file of JAAS that KAFKA_OPTS names."""
    found = re.search(r"java\.security\.auth\.login\.config=(\S+)", os.environ["KAFKA_OPTS"])
    assert found is not None
    return dict(re.findall(r'username="([^"]*)" password="([^"]*)"', Path(found[1]).read_text()))


def _as_pem(keystore: Path, password: str) -> Path:
    """A Java keystore's key and certificates, as the broker reads them."""
    packed, pem = keystore.with_suffix(".p12"), keystore.with_suffix(".pem")
    secret = ["-deststoretype", "PKCS12", "-srcstorepass", password, "-deststorepass", password, "-noprompt"]
    run(["keytool", "-importkeystore", "-srckeystore", str(keystore), "-destkeystore", str(packed), *secret])
    run(["openssl", "pkcs12", "-in", str(packed), "-nodes", "-passin", f"pass:{password}", "-out", str(pem)])
    return pem


if __name__ == "__main__":
    die_with_parent()
    _serve(Path(sys.argv[2]))
