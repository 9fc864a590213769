"""The rivals on the JVM: compiled once with Maven, then a fresh JVM for each row."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.effort import FULL, Effort

SOURCES = Path(__file__).parent / "jvm"
# G1 is what Kafka's own start script asks for. The heap is ample and does not grow while anything is measured.
OPTIONS = ["-Xms4g", "-Xmx4g", "-XX:+UseG1GC"]

_ROWS = {
    "kafka": {
        "pair", "start", "stop", "refresh", "expiry", "stall_start", "stall_expiry", "stall_stop", "memory",
        "lateness", "watch", "watch_keys", "watch_hot", "enqueue",
    },
    "jvm-heap": {"pair", "start", "stop", "refresh", "expiry", "memory"},
}  # fmt: skip


class NotHereError(Exception):
    """There is no Maven or no JDK, or Maven could not build; the message says which."""


def measures(rival: str, row: str) -> bool:
    """Whether there is a program for this."""
    return row in _ROWS[rival]


def build(root: Path) -> str:
    """Fetch Kafka's jars, compile the rivals into build/bench/jvm unless they are there; return the class path."""
    for tool in ("mvn", "javac", "java"):
        if shutil.which(tool) is None:
            raise NotHereError(f"no {tool} on this machine (a JDK 17 or newer and Maven are needed)")
    folder = root / "build" / "bench" / "jvm"
    stamp = folder / "classpath.txt"
    newest = max(path.stat().st_mtime for path in SOURCES.rglob("*") if path.is_file())
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        goals = [
            "compile",
            "dependency:build-classpath",
            f"-Dmdep.outputFile={stamp}",
            "-Dmdep.includeScope=runtime",
        ]
        maven = subprocess.run(
            ["mvn", "-q", "-B", "-f", SOURCES / "pom.xml", *goals], capture_output=True, text=True, check=False
        )
        if maven.returncode != 0 or not stamp.exists():
            said = (maven.stdout + maven.stderr).strip().splitlines()
            raise NotHereError(f"Maven could not build benchmarks/jvm: {said[0] if said else 'no message'}")
    return f"{folder / 'classes'}:{stamp.read_text().strip()}"


def command(class_path: str, rival: str, row: str, sizes: Sequence[int], effort: Effort) -> list[str]:
    """The command line that measures a row at each of the sizes, and prints a line for each."""
    warm = 3.0 if effort == FULL else 0.5
    lateness, seconds = effort.lateness
    numbers = [
        effort.rounds, effort.seconds, effort.most, effort.patience, lateness, seconds, effort.enqueue, warm,
    ]  # fmt: skip
    return [
        "java",
        *OPTIONS,
        "-cp",
        class_path,
        "bench.Main",
        rival,
        row,
        ",".join(map(str, sizes)),
        *map(str, numbers),
    ]


def versions() -> dict[str, str]:
    """Of Kafka and of Java."""
    pom = (SOURCES / "pom.xml").read_text()
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    kafka = re.search(r"<kafka.version>(.*)</kafka.version>", pom)
    java = re.search(r'version "(.*?)"', said)
    return {"Apache Kafka": kafka[1] if kafka else "?", "Java": java[1] if java else "?"}
