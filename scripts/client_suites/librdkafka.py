"""librdkafka's own test-runner: each test that needs a broker, in a process of its own beside three fresh brokers."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.client_suites.results import Result
from scripts.client_suites.source import run, take, take_from_npm

from abeyance.broker import Cluster
from abeyance.broker.genuine import ClusterError, fetch

# The newest librdkafka that a package registry has with its tests.
NPM_PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
_NPM_FOLDER = "deps/librdkafka"
_BROKERS = {"num.partitions": 4, "default.replication.factor": 3}  # as its own clusters for tests have them
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_LEFT_OUT = ("TEST_F_LOCAL", "TEST_F_MANUAL")  # flags of tests without a broker, and of tests for people


def prepare(source: str | None, folder: Path) -> str:
    """Take and build it; returns its version."""
    version = take(source, folder) if source else take_from_npm(NPM_PACKAGE, _NPM_FOLDER, folder)
    run(["sh", "./configure", "--disable-gssapi"], folder)
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


def results(folder: Path, only: str, timeout: float) -> Iterator[Result]:
    """Run them, one after the other; `timeout` in seconds for each."""
    tool = _kafka_topics(folder)
    for name, scenario in tests(folder).items():
        if re.search(only, name):
            yield _run(folder / "tests", name, scenario, tool, timeout)


def _kafka_topics(folder: Path) -> dict[str, str]:
    """Where some tests find Kafka's own tool for topics; nowhere, where Java or Maven are missing."""
    try:
        kafka = fetch()
    except ClusterError as error:
        print(f"without kafka-topics.sh: {error}")
        return {}
    script = folder / "kafka" / "bin" / "kafka-topics.sh"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec {shlex.join(kafka.command("org.apache.kafka.tools.TopicCommand"))} "$@"\n')
    script.chmod(0o755)
    return {"KAFKA_PATH": str(script.parent.parent)}


def _run(folder: Path, name: str, scenario: str, tool: dict[str, str], timeout: float) -> Result:
    began = time.monotonic()
    settings = _BROKERS | {"auto.create.topics.enable": scenario != "noautocreate"}
    with Cluster(brokers=3, settings=settings) as kafka:
        config = folder / "test-abeyance.conf"
        config.write_text(f"metadata.broker.list={kafka.bootstrap}\n")
        variables = {
            **tool,
            "BROKERS": kafka.bootstrap,
            "RDKAFKA_TEST_CONF": str(config),
            "LD_LIBRARY_PATH": f"{folder.parent / 'src'}:{folder.parent / 'src-cpp'}",
            "TESTS": name,
            "TEST_SCENARIO": scenario,
            "TEST_KAFKA_VERSION": "4.1.0",
        }
        try:
            done = subprocess.run(
                ["./test-runner", "-p1", "-L"], cwd=folder, env={**os.environ, **variables}, capture_output=True,
                timeout=timeout, check=False,
            )  # fmt: skip
            output = done.stdout + done.stderr
        except subprocess.TimeoutExpired as expired:
            output = (expired.stdout or b"") + (expired.stderr or b"")
    text = _COLOURS.sub("", output.decode(errors="replace"))
    seconds = time.monotonic() - began
    told = re.search(rf"^\| {re.escape(name)} +\| +(\w+) \| +\S+ \|(.*)", text, re.MULTILINE)
    if told and told[1] in ("PASSED", "SKIPPED"):
        return Result(name, told[1].lower(), seconds, told[2].strip(" |"))
    said = re.findall(r"^### Test .*\n(.*)", text, re.MULTILINE)
    return Result(name, "failed", seconds, said[0] if said else f"not done after {seconds:.0f} s")
