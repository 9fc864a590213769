"""Clients of other languages: fetched and built once, by each language's own tool, or a reason why not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from abeyant.broker.genuine import ClusterError, Kafka, fetch

HERE = Path(__file__).resolve().parent
_PATIENCE = 900.0  # seconds, for what is fetched and compiled


def go_clients() -> Path:
    """The program of `go/`, built."""
    built = _cache() / "go-clients"
    _run(["go", "build", "-o", str(built), "."], HERE / "go")
    return built


def node_clients() -> Path:
    """A folder that has the packages of `node/package.json`, and our programs."""
    folder = _cache() / "node-clients"
    shutil.copytree(HERE / "node", folder, dirs_exist_ok=True)
    _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
    return folder


def confluent_javascript() -> Path:
    """The same with Confluent's client, compiled once: minutes, for librdkafka is in it."""
    folder = _cache() / "confluent-javascript"
    shutil.copytree(HERE / "node", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json"))
    lock, built = HERE / "node" / "confluent" / "package-lock.json", folder / "built.json"
    if not built.exists() or built.read_bytes() != lock.read_bytes():
        for name in ("package.json", "package-lock.json"):
            shutil.copy(lock.with_name(name), folder)
        _run(["npm", "ci", "--no-audit", "--no-fund"], folder, CKJS_LINKING="dynamic")
        shutil.copy(lock, built)
    return folder


def rust_clients() -> Path:
    """The program of `rust/`, built; librdkafka is in it."""
    target = _cache() / "rust-clients"
    _run(["cargo", "build", "--release", "--locked", "--quiet"], HERE / "rust", CARGO_TARGET_DIR=str(target))
    return target / "release" / "clients"


def example(source: Path) -> tuple[list[str], Path]:
    """The command that runs an example of `examples/languages`, fetched and built, and the folder to run it in."""
    folder = _cache() / f"example-{source.name}"
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "target"))
    fetch, line = {
        "javascript": ("npm ci --no-audit --no-fund --ignore-scripts", "npm test"),
        "go": ("go test -c -o orders.test .", f"{folder / 'orders.test'} -test.timeout 60s"),
        "java": ("mvn -q -B test -DskipTests", "mvn -q -B test"),
        "rust": ("cargo test --locked --quiet --no-run", "cargo test --locked --quiet"),
    }[source.name]
    _run(fetch.split(), folder)
    return line.split(), folder


def kafka_jars() -> Kafka:
    """Kafka's own jars, its clients and command-line tools among them, and a JDK that compiles a single file."""
    if shutil.which("javac") is None:
        pytest.skip("no Java clients here: there is no javac on the PATH")
    try:
        return fetch()
    except ClusterError as error:
        pytest.skip(f"no Java clients here: {' '.join(str(error).split())}")


def streams_jars(kafka: Kafka) -> tuple[Path, ...]:
    """What Kafka Streams needs beside Kafka's own jars, of the same version."""
    folder = _cache() / f"kafka-streams-{kafka.version}"
    if not (folder / "complete").exists():
        wanted = ["-DincludeArtifactIds=kafka-streams,rocksdbjni", f"-Dkafka.version={kafka.version}"]
        goal = ["dependency:copy-dependencies", *wanted, f"-DoutputDirectory={folder}"]
        _run(["mvn", "-q", "-B", *goal], HERE / "java")
        (folder / "complete").touch()
    return (folder / "*",)


def spring_jars() -> tuple[Path, ...]:
    """spring-kafka and what it needs, without Kafka's own jars."""
    folder = _cache() / "spring-kafka-4.1.0"
    if not (folder / "complete").exists():
        groups = "org.springframework,org.springframework.kafka,io.micrometer,commons-logging,org.jspecify"
        goal = ["dependency:copy-dependencies", f"-DincludeGroupIds={groups}", f"-DoutputDirectory={folder}"]
        _run(["mvn", "-q", "-B", *goal], HERE / "java" / "spring")
        (folder / "complete").touch()
    return (folder / "*",)


def command(name: str) -> str:
    """A program of the system."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} on the PATH")
    return found


def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "abeyant-clients"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(line: list[str], folder: Path, **variables: str) -> None:
    program = command(line[0])
    try:
        done = subprocess.run(
            [program, *line[1:]],
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(line)} took more than {_PATIENCE:g} s")
    if done.returncode:
        pytest.skip(f"{' '.join(line)} failed: {' '.join((done.stderr or done.stdout).split())[-500:]}")
