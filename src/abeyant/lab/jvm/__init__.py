"""The genuine Kafka purgatory, on a JVM: built with Maven once, then a fresh JVM for every run."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from abeyant.cache import cache_folder
from abeyant.errors import AbeyantError
from abeyant.lab.experiment import Measure, Parameters
from abeyant.lab.experiments.workload import LOADS

_SOURCES = Path(__file__).parent
_WARM_SECONDS = 2.0  # the JVM's compiler needs a while before it is measured


class NoKafkaError(AbeyantError):
    """There is no Maven or no JDK here, or Maven could not build."""


def why_no_kafka() -> str | None:
    """Why the genuine Kafka cannot be measured on this machine; None where it can."""
    try:
        _class_path()
    except NoKafkaError as error:
        return str(error)
    return None


def kafka_version() -> str:
    """The version that pom.xml names."""
    found = re.search(r"<kafka\.version>(.*?)<", (_SOURCES / "pom.xml").read_text(encoding="utf-8"))
    return found[1] if found else "?"


def measure_kafka(parameters: Parameters) -> list[Measure]:
    """One run of the benchmark in a JVM of its own. Raises AbeyantError with the first thing it said if it fails."""
    load = LOADS[str(parameters["load"])]
    heap = f"{parameters['memory_mb']}m"
    command = [
        "java", f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-cp", _class_path(), "lab.Enqueue",
        *(str(value) for value in (
            parameters["requests"], parameters["rate"], load.p50, load.p75, parameters["size"],
            parameters["purge_interval"], parameters["seconds"], _WARM_SECONDS,
        )),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if "OutOfMemoryError" in ran.stderr:
        return [Measure("out of memory", 1, "runs")]
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    if ran.returncode or not rows:
        said = (ran.stderr or ran.stdout).strip().splitlines()
        raise AbeyantError(f"the JVM ended with status {ran.returncode}: {said[0] if said else 'it said nothing'}")
    return [Measure(metric, float(value), unit) for metric, value, unit in rows]


@functools.cache
def _class_path() -> str:
    """Compile the program unless it is there; return the class path."""
    for tool in ("mvn", "javac", "java"):
        if shutil.which(tool) is None:
            raise NoKafkaError(f"there is no {tool}: the genuine Kafka needs a JDK 17 or newer and Maven")
    folder = _cache() / f"kafka-{kafka_version()}"
    stamp = folder / "classpath.txt"
    newest = max(path.stat().st_mtime for path in _SOURCES.rglob("*") if path.suffix in (".xml", ".java"))
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={stamp}", "-Dmdep.includeScope=runtime"]
        maven = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(_SOURCES / "pom.xml"), f"-Dfolder={folder}", *goals],
            capture_output=True,
            text=True,
            check=False,
        )
        if maven.returncode or not stamp.exists():
            stamp.unlink(missing_ok=True)
            said = (maven.stdout + maven.stderr).strip().splitlines()
            raise NoKafkaError(f"Maven could not build the Kafka program: {said[0] if said else 'it said nothing'}")
    return f"{folder / 'classes'}{os.pathsep}{stamp.read_text(encoding='utf-8').strip()}"


def _cache() -> Path:
    return cache_folder() / "abeyant" / "lab"
