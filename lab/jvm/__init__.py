"""Run genuine Kafka and the JDK's timer: the programs are compiled with Maven once; every run has a fresh JVM."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from abeyant.errors import AbeyantError

_SOURCES = Path(__file__).parent
_BUILT = _SOURCES.parents[1] / "build" / "jvm"


class NoJvmError(AbeyantError):
    """Raised if this machine has no Maven or no JDK, or if Maven's build failed."""


def why_no_jvm() -> str | None:
    """Return why nothing can be measured on a JVM on this machine; None if it can."""
    try:
        _class_path()
    except NoJvmError as error:
        return str(error)
    return None


def command(main_class: str, heap: str, *arguments: object) -> list[str]:
    """Return the command line of a JVM whose heap does not grow, with the collector of Kafka's own start script."""
    options = [f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-cp", _class_path()]
    return ["java", *options, main_class, *map(str, arguments)]


def versions() -> dict[str, str]:
    """Return the versions of Kafka and of Java; {} without Java."""
    if shutil.which("java") is None:
        return {}
    kafka = re.search(r"<kafka\.version>(.*?)<", (_SOURCES / "pom.xml").read_text(encoding="utf-8"))
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    java = re.search(r'version "(.*?)"', said)
    return {"Apache Kafka": kafka[1] if kafka else "?", "Java": java[1] if java else "?"}


@functools.cache
def _class_path() -> str:
    """Compile the programs unless they are compiled already; return the class path."""
    for tool in ("mvn", "javac", "java"):
        if shutil.which(tool) is None:
            raise NoJvmError(f"there is no {tool}: the JVM's rivals need a JDK 17 or newer and Maven")
    stamp = _BUILT / "classpath.txt"
    newest = max(path.stat().st_mtime for path in _SOURCES.rglob("*") if path.suffix in (".xml", ".java"))
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        _BUILT.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={stamp}", "-Dmdep.includeScope=runtime"]
        maven = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(_SOURCES / "pom.xml"), *goals], capture_output=True, text=True, check=False
        )
        if maven.returncode or not stamp.exists():
            stamp.unlink(missing_ok=True)
            said = (maven.stdout + maven.stderr).strip().splitlines()
            raise NoJvmError(f"Maven could not build lab/jvm: {said[0] if said else 'it said nothing'}")
    return f"{_BUILT / 'classes'}{os.pathsep}{stamp.read_text(encoding='utf-8').strip()}"
