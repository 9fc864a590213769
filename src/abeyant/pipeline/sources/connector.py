"""Start Spark with its Kafka connector, which PySpark does not ship: from Maven Central, or from given jars.

Spark's resolver (Ivy) fetches the connector for the installed version of Spark. If Ivy finds none (a lagging mirror, a
company's repository) and `mvn` is on the PATH, Maven copies the jars that connector.pom.xml lists into a cache, once.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abeyant.cache import cache_folder
from abeyant.errors import AbeyantError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ConnectorError", "coordinate", "maven_jars", "start_with_connector"]

_POM: Final = Path(__file__).with_name("connector.pom.xml")
_NOWHERE: Final = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "none"}


class ConnectorError(AbeyantError):
    """Raised if Spark's Kafka connector is not available; the message says what was tried, and what to do."""


def coordinate() -> str:
    """Return the connector's Maven coordinate for the installed version of Spark."""
    from abeyant.pipeline.spark.versions import installed_spark

    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{installed_spark()}"


def start_with_connector(
    master: str, app_name: str, *, jars: str | None = None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark with the connector, or return the active session if it has the connector.

    `jars` are jars (files or folders, separated by commas) or a Maven coordinate; by default the connector is fetched
    as the module's docstring says. Raises `ConnectorError` if it cannot be found or fetched, else as `spark_session`.
    """
    from abeyant.pipeline.spark.errors import lacks_packages
    from abeyant.pipeline.spark.session import spark_session

    attempts: list[str] = []
    for settings in _named_jars(jars) if jars else _found_jars(attempts):
        try:
            spark = spark_session(master, app_name, config=settings | dict(config or {}))
        except ConnectorError:
            raise
        except AbeyantError as error:
            reason = lacks_packages(error)
            if reason is None:
                raise
            attempts.append(f"Spark's resolver: {reason}")
            continue
        return _checked(spark)
    raise ConnectorError(
        f"no Kafka connector for Spark: {'; '.join(attempts)}. If you have its jars, name them: --connector JARS"
    )


def _named_jars(names: str) -> Iterator[dict[str, str]]:
    if names.count(":") >= 2 and "/" not in names:
        yield {"spark.jars.packages": names}
        return
    jars: list[Path] = []
    for name in names.split(","):
        path = Path(name)
        if not path.exists():
            raise ConnectorError(f"--connector: no such file or directory: {name}")
        jars += sorted(path.glob("*.jar")) if path.is_dir() else [path]
    yield _of(jars)


def _found_jars(attempts: list[str]) -> Iterator[dict[str, str]]:
    folder = _folder()
    if not (folder / ".complete").exists():
        yield {"spark.jars.packages": coordinate()}
    try:
        yield _of(maven_jars())
    except ConnectorError as error:
        attempts.append(str(error))


def _of(jars: list[Path]) -> dict[str, str]:
    return {"spark.jars": ",".join(path.resolve().as_uri() for path in jars)}


def maven_jars() -> list[Path]:
    """Return the connector's jars; let Maven copy them unless cached. Raise `ConnectorError` if Maven fails."""
    import fcntl  # not on Windows

    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            _copy(folder)
            (folder / ".complete").touch()
    return sorted(folder.glob("*.jar"))


def _copy(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ConnectorError("mvn is not on the PATH")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    # Use a copy: Maven reads further files beside its pom.xml.
    pom = shutil.copy(_POM, folder / "pom.xml")
    print("fetching Spark's Kafka connector with Maven ...", file=sys.stderr, flush=True)
    process = subprocess.run([maven, "-q", "-B", "-f", pom, *goal], capture_output=True, text=True, check=False)
    if process.returncode:
        lines = [line for line in (process.stdout + process.stderr).splitlines() if "ERROR" in line]
        raise ConnectorError(f"Maven failed: {lines[0] if lines else 'it printed no error'}")


def _folder() -> Path:
    """Return the folder that caches Maven's jars; each pom.xml and version of Spark has a folder of its own."""
    version = _POM.read_bytes() + coordinate().encode()
    return cache_folder() / "abeyant" / f"kafka-connector-{hashlib.sha256(version).hexdigest()[:12]}"


def _checked(spark: SparkSession) -> SparkSession:
    from pyspark.errors import AnalysisException

    try:
        # Loads the connector, and reads nothing yet.
        _ = spark.readStream.format("kafka").options(**_NOWHERE).load().schema
    except AnalysisException as error:
        raise ConnectorError(
            f"this Spark session was started without the Kafka connector: start it with --packages {coordinate()}"
        ) from error
    return spark
