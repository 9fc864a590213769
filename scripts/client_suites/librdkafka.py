"""librdkafka's own test-runner: each test that needs a broker, in a process of its own beside three fresh brokers."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from abeyant.broker import Cluster
from abeyant.broker import genuine as kafkas
from scripts.client_suites.kafka_scripts import write_tools
from scripts.client_suites.results import Result
from scripts.client_suites.source import run, take, take_from_npm

# The newest librdkafka that a package registry has with its tests.
NPM_PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
_NPM_FOLDER = "deps/librdkafka"
# As its own clusters for tests have them, and Kafka's default where ours differs: members meet in the first rebalance.
_BROKERS = {
    "num.partitions": 4, "default.replication.factor": 3, "group.initial.rebalance.delay.ms": 3000,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,  # and no super user: some of its tests deny rights to all
}  # fmt: skip
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_LEFT_OUT = ("TEST_F_LOCAL", "TEST_F_MANUAL")  # flags of tests without a broker, and of tests for people


def prepare(source: str | None, folder: Path) -> str:
    """Take and build it; returns its version."""
    version = take(source, folder) if source else take_from_npm(NPM_PACKAGE, _NPM_FOLDER, folder)
    run(["bash", "./configure", "--disable-gssapi"], folder)
    run(["make", "-j2", "libs"], folder)
    run(["make", "-C", "tests", "-j2", "build"], folder)
    return version


def tests(folder: Path) -> dict[str, str]:
    """All that need a broker, with their scenario; but those of share groups, which no broker before 4.2 has."""
    source = (folder / "tests" / "test.c").read_text()
    table = source[source.index("struct test tests[]") :]
    found = {}
    for entry in table[: table.index("{NULL}")].split(" _TEST(")[1:]:
        name = entry.partition(",")[0]
        scenario = re.search(r'\.scenario = "(\w+)', entry)
        if not any(flag in entry for flag in _LEFT_OUT) and "share" not in name:
            found[name] = scenario[1] if scenario else "default"
    return found


def results(folder: Path, only: str, timeout: float, *, genuine: bool) -> Iterator[Result]:
    """Run them, one after the other; `timeout` in seconds for each. Raises `ClusterError` without genuine Kafka."""
    kafka = folder / "kafka"  # where some tests find Kafka's own tools
    tool = {"KAFKA_PATH": str(kafka)} if write_tools(kafka / "bin") else {}
    for name, scenario in tests(folder).items():
        if re.search(only, name):
            began = time.monotonic()
            settings = _BROKERS | {"auto.create.topics.enable": scenario != "noautocreate"}
            with _genuine(settings) if genuine else _ours(settings) as bootstrap:
                outcome, said = _run(folder / "tests", name, {**tool, "TEST_SCENARIO": scenario}, bootstrap, timeout)
            yield Result(name, outcome, time.monotonic() - began, said)


@contextmanager
def _ours(settings: Mapping[str, object]) -> Iterator[str]:
    with Cluster(brokers=3, settings=settings) as kafka:
        yield kafka.bootstrap


@contextmanager
def _genuine(settings: Mapping[str, object]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: str(value).lower() for name, value in settings.items()}
        cluster = kafkas.Cluster(kafkas.fetch(), Path(folder), kafkas.free_ports(), settings=texts, heap_mb=400)
        with cluster.running():
            yield cluster.bootstrap


def _run(folder: Path, name: str, variables: dict[str, str], bootstrap: str, timeout: float) -> tuple[str, str]:
    """One of them: its outcome, and what it says of it."""
    config = folder / "test-abeyant.conf"
    # A busy machine makes its tests' own limits too short.
    config.write_text(f"metadata.broker.list={bootstrap}\ntest.timeout.multiplier=3\n")
    own = {
        "BROKERS": bootstrap,
        "RDKAFKA_TEST_CONF": str(config),
        "LD_LIBRARY_PATH": f"{folder.parent / 'src'}:{folder.parent / 'src-cpp'}",
        "TESTS": name,
        "TEST_KAFKA_VERSION": "4.1.0",
    }
    try:
        done = subprocess.run(
            ["./test-runner", "-p1", "-L"], cwd=folder, env={**os.environ, **variables, **own}, capture_output=True,
            timeout=timeout, check=False,
        )  # fmt: skip
        output = done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        output = (expired.stdout or b"") + (expired.stderr or b"")
    text = _COLOURS.sub("", output.decode(errors="replace"))
    told = re.search(rf"^\| {re.escape(name)} +\| +(\w+) \| +\S+ \|(.*)", text, re.MULTILINE)
    if told and told[1] in ("PASSED", "SKIPPED"):
        return told[1].lower(), told[2].strip(" |")
    said = re.findall(r"^### Test .*\n(.*)", text, re.MULTILINE)
    return "failed", said[0] if said else f"not done after {timeout:.0f} s"
