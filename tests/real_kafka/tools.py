"""Kafka's command-line tools in one JVM, against genuine Kafka and against ours, and what they print without names."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from abeyant.broker.genuine import Kafka, die_with_parent
from broker.conformance.client import ClosedError, Connection
from broker.conformance.messages import Plain
from broker.conformance.scenario import versions
from broker.conformance.settings import ADMIN, PASSWORDS

_TOOLS = "org.apache.kafka.tools."
CLASSES = {
    "kafka-acls": f"{_TOOLS}AclCommand",
    "kafka-client-metrics": f"{_TOOLS}ClientMetricsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": f"{_TOOLS}consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": f"{_TOOLS}DelegationTokenCommand",
    "kafka-delete-records": f"{_TOOLS}DeleteRecordsCommand",
    "kafka-features": f"{_TOOLS}FeatureCommand",
    "kafka-get-offsets": f"{_TOOLS}GetOffsetShell",
    "kafka-groups": f"{_TOOLS}GroupsCommand",
    "kafka-leader-election": f"{_TOOLS}LeaderElectionCommand",
    "kafka-log-dirs": f"{_TOOLS}LogDirsCommand",
    "kafka-metadata-quorum": f"{_TOOLS}MetadataQuorumCommand",
    "kafka-reassign-partitions": f"{_TOOLS}reassign.ReassignPartitionsCommand",
    "kafka-share-groups": f"{_TOOLS}consumer.group.ShareGroupCommand",
    "kafka-streams-groups": f"{_TOOLS}streams.StreamsGroupCommand",
    "kafka-topics": f"{_TOOLS}TopicCommand",
    "kafka-transactions": f"{_TOOLS}TransactionsCommand",
}
_OPTIONS = ("-Xmx200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF")
_MASKS = (
    (re.compile(r"[ \t]+"), " "),  # columns are as wide as what is in them
    (re.compile(r"^\d till \d+|\btill \d \d+", re.MULTILINE), "coordinator till producer"),
    (re.compile(r"/(memory|[^\s\",=]*)/broker-(\d)(/data)?(?=[\"\s,])"), r"/data-\2"),
    (re.compile(r"\bport\d \(\d\)"), "port (coordinator)"),  # a group's is another one in each cluster
    (re.compile(r"[\w+/]{86}=="), "HMAC"),
    (re.compile(r"Epoch: \d+|[cC]ontroller \d"), "EPOCH"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "ID"),
    (re.compile(r"\b1[789]\d{11}\b"), "MS"),
    (re.compile(r"MS \d+ texts-0"), "MS texts-0"),  # a transaction's age
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(\.\d+)?Z?"), "TIME"),
)
_LOADING = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS")


class Side:
    """Three brokers, genuine or ours, with SASL and an administrator."""

    def __init__(self, bootstrap: str, config: Path) -> None:
        """`config` is the administrator's file of properties."""
        self.bootstrap, self.config = bootstrap, config
        self.ports = [int(one.rpartition(":")[2]) for one in bootstrap.split(",")]
        self.topics: dict[str, str] = {}
        """Their ids by name."""
        self.classic = ""
        """The id of the member of the classic protocol."""
        self._open: dict[int, Connection] = {}

    def ask(self, api: str, body: Mapping[str, Plain], to: int = 1, version: int | None = None) -> dict[str, Plain]:
        """Ask a broker, by default in the highest version."""
        version = versions(api)[-1] if version is None else version
        if to in self._open:
            with suppress(ClosedError):  # it was idle for too long
                return self._open[to].ask(api, version, dict(body))
            self._open.pop(to).close()
        self._open[to] = Connection("127.0.0.1", self.ports[to - 1]).log_in(ADMIN, PASSWORDS[ADMIN])
        return self._open[to].ask(api, version, dict(body))

    def ask_coordinator(
        self, key: str, api: str, body: Mapping[str, Plain], *, kind: int = 0, version: int | None = None
    ) -> dict[str, Plain]:
        """Ask who coordinates a group, or with `kind` 1 a transactional id, once that one is ready."""
        for _ in range(300):
            (row,) = self.ask("FindCoordinator", {"coordinator_keys": [key], "key_type": kind})["coordinators"]
            if row["error_code"] == "NONE":
                said = self.ask(api, body, row["node_id"], version)
                if said.get("error_code") not in _LOADING:
                    return said
            time.sleep(0.1)
        raise TimeoutError(f"nobody coordinates {key!r}")

    def mask(self, text: str) -> list[str]:
        """The lines of what a tool printed, without ports, folders, ids and times."""
        for number, port in enumerate(self.ports, 1):
            text = re.sub(rf"\b{port}\b", f"port{number}", text)
        for pattern, name in _MASKS:
            text = pattern.sub(name, text)
        text = re.sub(r"(?<=Isr: )[\d,]+", lambda found: ",".join(sorted(found[0].split(","))), text)
        return [line.strip() for line in text.splitlines()]

    def close(self) -> None:
        for one in self._open.values():
            one.close()


class Printed(NamedTuple):
    """What a tool printed, and its exit status."""

    out: str
    err: str
    status: int

    @property
    def text(self) -> str:
        return f"{self.out}\n{self.err}\nstatus {self.status}"


class Tools:
    """The JVM."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, side: Side, tool: str, *arguments: str) -> Printed:
        """Run a tool as the administrator."""
        place = ["--bootstrap-server", side.bootstrap]
        option = "--admin.config" if tool == "kafka-leader-election" else "--command-config"
        line = [CLASSES[tool], *place, option, str(side.config), *arguments]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline() or '{"out": "", "err": "the JVM has ended", "status": -1}')
        return Printed(**said)


@contextmanager
def tools(kafka: Kafka) -> Iterator[Tools]:
    """Start the JVM and, at the end, end it."""
    program = str(Path(__file__).parent / "java" / "Tools.java")
    process = subprocess.Popen(
        kafka.command(program, options=_OPTIONS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, preexec_fn=die_with_parent,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n", "it did not compile, or did not start"
            yield Tools(process)
        finally:
            process.stdin.close()
