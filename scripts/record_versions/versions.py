"""Every minor version of Kafka whose broker runs on Java 17: from 0.8.2 on."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from abeyant.broker.genuine import ClusterError

if TYPE_CHECKING:
    from pathlib import Path

# One broker a minor version: Scala's version, and a patch that Maven Central has. 0.10.2 is missing: it starts on Java
# 17, and answers no request.
VERSIONS: Final = {
    "0.8.2": ("2.10", "0.8.2.2"),
    "0.9.0": ("2.11", "0.9.0.1"),
    "0.10.0": ("2.11", "0.10.0.1"),
    "0.10.1": ("2.11", "0.10.1.1"),
    "0.11.0": ("2.12", "0.11.0.3"),
    "1.0": ("2.12", "1.0.2"),
    "1.1": ("2.12", "1.1.1"),
    "2.0": ("2.12", "2.0.1"),
    "2.1": ("2.12", "2.1.1"),
    "2.2": ("2.12", "2.2.2"),
    "2.3": ("2.12", "2.3.1"),
    "2.4": ("2.13", "2.4.1"),
    "2.5": ("2.13", "2.5.1"),
    "2.6": ("2.13", "2.6.3"),
    "2.7": ("2.13", "2.7.2"),
    "2.8": ("2.13", "2.8.2"),
    "3.0": ("2.13", "3.0.2"),
    "3.1": ("2.13", "3.1.2"),
    "3.2": ("2.13", "3.2.3"),
    "3.3": ("2.13", "3.3.2"),
    "3.4": ("2.13", "3.4.1"),
    "3.5": ("2.13", "3.5.2"),
    "3.6": ("2.13", "3.6.2"),
    "3.7": ("2.13", "3.7.2"),
    "3.8": ("2.13", "3.8.1"),
    "3.9": ("2.13", "3.9.1"),
    "4.0": ("2.13", "4.0.1"),
    "4.1": ("2.13", "4.1.1"),
    "4.2": ("2.13", "4.2.0"),
    "4.3": ("2.13", "4.3.1"),
}

_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>abeyant.scripts</groupId><artifactId>kafka-{version}</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions>{}</exclusions></dependency>"
)
# The bindings that an older broker brings itself come from log4j 1; reload4j has its API, and starts on Java 17.
_EXCLUDED: Final = "".join(
    f"<exclusion><groupId>{group}</groupId><artifactId>{artifact}</artifactId></exclusion>"
    for group, artifact in (("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12"), ("org.slf4j", "slf4j-api"))
)


@dataclass(frozen=True)
class Release:
    """A release of Kafka, and the folder with its jars."""

    minor: str
    version: str
    jars: Path

    @property
    def number(self) -> tuple[int, ...]:
        """Return the version as numbers, for comparisons."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def has_zookeeper(self) -> bool:
        """Return whether it runs on ZooKeeper here: all before 4.0."""
        return self.number < (4,)


def fetch_release(minor: str, folder: Path) -> Release:
    """Fetch a release's jars with Maven, unless they are there. Raises ClusterError."""
    scala, version = VERSIONS[minor]
    release = Release(minor, version, folder / version / "jars")
    done = folder / version / ".complete"
    if done.exists():
        return release
    done.parent.mkdir(parents=True, exist_ok=True)
    logging = (
        [("ch.qos.reload4j", "reload4j", "1.2.26"), ("org.slf4j", "slf4j-reload4j", "1.7.36")]
        if release.has_zookeeper
        else [
            ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.1"),
            ("org.apache.logging.log4j", "log4j-core", "2.25.1"),
        ]
    )
    needed = [("org.apache.kafka", f"kafka_{scala}", version), *logging]
    if release.number < (1,):
        needed.append(("javax.xml.bind", "jaxb-api", "2.3.1"))  # which Java 17 no longer has
    elif (2,) <= release.number < (2, 4):
        # Its own, 3.4.13, takes addresses for unresolved on Java 14 and newer (ZOOKEEPER-3779).
        needed.append(("org.apache.zookeeper", "zookeeper", "3.4.10"))
    dependencies = "".join(
        _DEPENDENCY.format(*one, _EXCLUDED if one[1].startswith("kafka") and release.has_zookeeper else "")
        for one in needed
    )
    pom = done.parent / "pom.xml"
    pom.write_text(_POM.format(version=version, dependencies=dependencies))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={release.jars}"]
    result = subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        tail = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
        raise ClusterError(f"mvn cannot fetch Kafka {version}:\n{tail}")
    done.touch()
    return release
